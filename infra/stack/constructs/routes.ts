/**
 * Maps each path to the function that answers it. The first matching pattern wins; a path without a match
 * goes to the default function. Paths whose answer is the same for everybody may be cached at the edge for a
 * few seconds; others are never cached.
 */
import type { FunctionName } from './function-descriptions.ts';

export interface Route {
  /** A CloudFront path pattern; `*` matches any text. */
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
  { path: '/hooks/payments/stripe', function: 'payments', cached: false },
  { path: '/health', function: 'catalog', cached: true },
];

/** Answers all other paths: `/` with the page, unknown paths with a helpful 404. */
export const defaultFunction: FunctionName = 'catalog';
