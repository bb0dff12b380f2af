import type { EndpointRoute } from './endpoint.ts';

/** In a separate file: every function needs all routes, but bundles only the endpoints that it serves. */
export const chatRoute = {
  name: 'chat',
  method: 'POST',
  path: '/v1/chat/completions',
} as const satisfies EndpointRoute;

/** In a separate file: every function needs all routes, but bundles only the endpoints that it serves. */
export const responsesRoute = {
  name: 'responses',
  method: 'POST',
  path: '/v1/responses',
} as const satisfies EndpointRoute;

/** What a client does that wants OpenAI's compaction: Codex does where it believes to speak to OpenAI. */
export const compactByClient =
  'Codex compacts by itself if the name of its model provider in config.toml is not "OpenAI".';
