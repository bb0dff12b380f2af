/** Requests to SearXNG. Source: docs.searxng.org, "Search API". The instance must allow the format `json`. */
import type { SearchDialect } from './search-dialect.ts';

export const searxngDialect: SearchDialect = {
  contentType: 'application/x-www-form-urlencoded',
  body: (query, { language }) =>
    new URLSearchParams({
      q: query,
      format: 'json',
      categories: 'general',
      ...(language !== undefined && { language }),
    }).toString(),
};
