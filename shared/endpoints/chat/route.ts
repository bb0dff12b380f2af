import type { EndpointRoute } from '../endpoint.ts';

/** In a file of its own: every function knows all routes, but carries no endpoint that it does not serve. */
export const chatRoute = {
  name: 'chat',
  method: 'POST',
  path: '/v1/chat/completions',
} as const satisfies EndpointRoute;
