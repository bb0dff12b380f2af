import type { EndpointRoute } from '../endpoint.ts';

/** In a separate file: every function needs all routes, but bundles only the endpoints that it serves. */
export const chatRoute = {
  name: 'chat',
  method: 'POST',
  path: '/v1/chat/completions',
} as const satisfies EndpointRoute;
