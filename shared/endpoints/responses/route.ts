import type { EndpointRoute } from '../endpoint.ts';

/** In a separate file: every function needs all routes, but bundles only the endpoints that it serves. */
export const responsesRoute = {
  name: 'responses',
  method: 'POST',
  path: '/v1/responses',
} as const satisfies EndpointRoute;
