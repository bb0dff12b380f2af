import type { SearchDialect } from './search-providers.ts';

/** Source: docs.searxng.org, "Search API". The instance has to allow the format `json`. */
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
