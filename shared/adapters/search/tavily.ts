/** Requests to Tavily. Source: Tavily's own client. Basic depth is cheaper and faster than advanced depth. */
import type { SearchDialect } from './search-dialect.ts';

export const tavilyDialect: SearchDialect = {
  contentType: 'application/json',
  body: (query, { results }) => JSON.stringify({ query, max_results: results, search_depth: 'basic' }),
};
