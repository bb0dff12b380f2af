import type { EndpointRoute } from './endpoint.ts';

/** The endpoints, a line each. In a file of their own: every function needs all routes, but bundles only what it serves. */
export const endpointRoutes = {
  chat: { name: 'chat', method: 'POST', path: '/v1/chat/completions' },
  responses: { name: 'responses', method: 'POST', path: '/v1/responses' },
  messages: { name: 'messages', method: 'POST', path: '/v1/messages' },
  embeddings: { name: 'embeddings', method: 'POST', path: '/v1/embeddings' },
} as const satisfies Record<string, EndpointRoute>;

/** Where clients of an endpoint ask for the tokens of an input alone: another path of the endpoint. */
export const countingRoutes = {
  messages: { ...endpointRoutes.messages, path: '/v1/messages/count_tokens' },
  responses: { ...endpointRoutes.responses, path: '/v1/responses/input_tokens' },
} as const satisfies Record<string, EndpointRoute>;

/** Where clients of Responses ask for a conversation to be compacted. */
export const compactRoute = { ...endpointRoutes.responses, path: '/v1/responses/compact' } as const;

/** Of clients of Messages, which read lists in a form of their own. */
export const listHeaders = ['anthropic-version', 'x-api-key'] as const;
