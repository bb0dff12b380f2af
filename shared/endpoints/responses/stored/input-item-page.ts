/** Pages of the items that a response was made of, as OpenAI pages them. */
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import { includedIn } from './included.ts';
import { listedItem } from './listed-item.ts';

const limitMax = 100;
const limitUsual = 20;

export interface PageAsked {
  limit: number;
  order: 'asc' | 'desc';
  /** The id of the item after which the page begins. Undefined: it is the first. */
  after: string | undefined;
  included: ReadonlySet<string>;
}

/** Throws InvalidRequest. */
export function pageAsked(query: URLSearchParams): PageAsked {
  const limit = query.get('limit') || String(limitUsual);
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > limitMax)
    throw new InvalidRequest(
      'invalid_value',
      'limit',
      `'limit' must be a whole number from 1 to ${limitMax}.`,
    );
  const order = query.get('order') || 'desc';
  if (order !== 'asc' && order !== 'desc')
    throw new InvalidRequest('invalid_value', 'order', "'order' must be asc or desc.");
  return { limit: Number(limit), order, after: query.get('after') || undefined, included: includedIn(query) };
}

/**
 * The page of the items, which come in its order. Takes no more of them than the page needs, and each id once: a page
 * that began after an id that comes again would never end. Throws InvalidRequest.
 */
export async function inputItemPage(
  items: AsyncIterable<JsonRecord>,
  { limit, after, included }: PageAsked,
): Promise<JsonRecord> {
  const data: JsonRecord[] = [];
  const seen = new Set<unknown>();
  let begun = after === undefined;
  let hasMore = false;
  for await (const item of items) {
    const { id } = item;
    if (seen.has(id)) continue;
    seen.add(id);
    if (!begun) {
      begun = id === after;
      continue;
    }
    hasMore = data.length === limit;
    if (hasMore) break;
    data.push(listedItem(item, included));
  }
  if (!begun)
    throw new InvalidRequest('invalid_value', 'after', "'after' must be the id of an item of this list.");
  return { object: 'list', data, first_id: idOf(data[0]), last_id: idOf(data.at(-1)), has_more: hasMore };
}

const idOf = (item: JsonRecord | undefined): unknown => item?.['id'] ?? null;
