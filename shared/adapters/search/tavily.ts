/** Tavily. Source: Tavily's own client. The basic depth is the cheaper and the faster one. */
import type { SearchDialect } from './search-dialect.ts';

export const tavilyDialect: SearchDialect = {
  contentType: 'application/json',
  body: (query, { results }) => JSON.stringify({ query, max_results: results, search_depth: 'basic' }),
};
