/** Reads the results of any search provider's reply. */
import type { SearchResult } from '../../relay/ports/search-provider.ts';
import { SearchFailure } from './json-reply.ts';

type Fields = Record<string, unknown>;

/** The usable results, in the reply's order. Throws SearchFailure when the reply has no list of results. */
export function readResults(answer: unknown): SearchResult[] {
  const results = isFields(answer) ? answer['results'] : undefined;
  if (!Array.isArray(results)) throw new SearchFailure('The search provider answered without results.');
  return results.flatMap((result: unknown) => (isFields(result) ? readResult(result) : []));
}

/** SearXNG writes `publishedDate`, Tavily `published_date`. */
function readResult(fields: Fields): SearchResult[] {
  const url = URL.parse(textAt(fields, 'url'));
  const text = textAt(fields, 'content');
  const title = textAt(fields, 'title');
  if (!url || !/^https?:$/.test(url.protocol) || (text === '' && title === '')) return [];
  const date = textAt(fields, 'publishedDate') || textAt(fields, 'published_date');
  return [{ title, url: url.href, text, ...(date !== '' && { date }) }];
}

const textAt = (fields: Fields, name: string): string => {
  const value = fields[name];
  return typeof value === 'string' ? value.trim() : '';
};

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
