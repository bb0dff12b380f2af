import type { EndpointRoute } from '../endpoint.ts';

/** In a separate file: every function needs all routes, but bundles only the endpoints that it serves. */
export const responsesRoute = {
  name: 'responses',
  method: 'POST',
  path: '/v1/responses',
} as const satisfies EndpointRoute;

/** The paths of one stored response, with the method that each takes. `{id}` is one segment. */
export const storedResponseRoutes = [
  { name: 'response', method: 'GET', path: '/v1/responses/{id}' },
  { name: 'response_delete', method: 'DELETE', path: '/v1/responses/{id}' },
  { name: 'response_input_items', method: 'GET', path: '/v1/responses/{id}/input_items' },
  { name: 'response_cancel', method: 'POST', path: '/v1/responses/{id}/cancel' },
] as const;
