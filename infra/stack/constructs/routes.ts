/**
 * Which function answers which path. The first pattern that fits wins; what fits none goes to the default. Paths
 * that answer everybody the same may be cached at the edge for a few seconds; all others never are.
 */
import type { FunctionName } from './function-descriptions.ts';

export interface Route {
  /** A CloudFront path pattern: `*` stands for any text. */
  path: string;
  function: FunctionName;
  cached: boolean;
}

export const routes: readonly Route[] = [
  { path: '/v1/chat/*', function: 'chat', cached: false },
  { path: '/v1/responses*', function: 'responses', cached: false },
  { path: '/v1/models*', function: 'catalog', cached: true },
  { path: '/v1/charge', function: 'catalog', cached: true },
  { path: '/v1/plans', function: 'catalog', cached: true },
  { path: '/v1/account*', function: 'catalog', cached: false },
  { path: '/health', function: 'catalog', cached: true },
];

/** Answers what no route names: the page at `/`, and unknown paths with a helpful 404. */
export const defaultFunction: FunctionName = 'catalog';
