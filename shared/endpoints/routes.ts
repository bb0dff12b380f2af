/** The paths of all endpoints, apart from their code: every function needs all paths, but bundles only the endpoints that it serves. */
import type { EndpointRoute } from './endpoint.ts';

export const endpointRoutes = {
  chat: { name: 'chat', method: 'POST', path: '/v1/chat/completions' },
  responses: { name: 'responses', method: 'POST', path: '/v1/responses' },
  messages: { name: 'messages', method: 'POST', path: '/v1/messages' },
  embeddings: { name: 'embeddings', method: 'POST', path: '/v1/embeddings' },
} as const satisfies Record<string, EndpointRoute>;

/** The paths on which clients count the tokens of an input. */
export const countingRoutes = {
  messages: { ...endpointRoutes.messages, path: '/v1/messages/count_tokens' },
  responses: { ...endpointRoutes.responses, path: '/v1/responses/input_tokens' },
} as const satisfies Record<string, EndpointRoute>;

/** The path on which clients of Responses compact a conversation. */
export const compactRoute = { ...endpointRoutes.responses, path: '/v1/responses/compact' } as const;

/** Headers of Messages clients, which read lists in a form of their own. */
export const listHeaders = ['anthropic-version', 'x-api-key'] as const;
