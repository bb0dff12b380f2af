import type { SearchDialect } from './search-providers.ts';

/** Source: Tavily's own client. The basic depth is the cheaper one, and the quick one. */
export const tavilyDialect: SearchDialect = {
  contentType: 'application/json',
  body: (query, { results }) => JSON.stringify({ query, max_results: results, search_depth: 'basic' }),
};
