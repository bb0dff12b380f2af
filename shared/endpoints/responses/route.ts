import type { EndpointRoute } from '../endpoint.ts';

/** In a file of its own: every function knows all routes, but carries no endpoint that it does not serve. */
export const responsesRoute = {
  name: 'responses',
  method: 'POST',
  path: '/v1/responses',
} as const satisfies EndpointRoute;
