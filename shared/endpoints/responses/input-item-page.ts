/** Pages of the items that a response was made of, as OpenAI pages them. */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { type JsonRecord, isRecord } from '../../wire/json.ts';

const limitMax = 100;
const limitUsual = 20;

interface PageAsked {
  limit: number;
  order: 'asc' | 'desc';
  after: string | undefined;
  included: ReadonlySet<string>;
}

export function readPageQuery(query: URLSearchParams): PageAsked {
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
  return {
    limit: Number(limit),
    order,
    after: query.get('after') || undefined,
    included: readIncluded(query),
  };
}

/**
 * The page of the items, which come in its order. Takes no more of them than the page needs, and each id once: a page
 * that began after an id that comes again would never end. Throws InvalidRequest.
 */
export async function pageInputItems(
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
    data.push(showItem(item, included));
  }
  if (!begun)
    throw new InvalidRequest('invalid_value', 'after', "'after' must be the id of an item of this list.");
  return { object: 'list', data, first_id: idOf(data[0]), last_id: idOf(data.at(-1)), has_more: hasMore };
}

const idOf = (item: JsonRecord | undefined): unknown => item?.['id'] ?? null;

// An item as lists show it: with all that OpenAI's schema requires, also where its client left it out.

/** Fields that a client may leave out of an item or part, by its type. */
const required: Record<string, JsonRecord> = {
  function_call: { status: 'completed' },
  function_call_output: { status: 'completed' },
  custom_tool_call: { status: 'completed' },
  custom_tool_call_output: { status: 'completed' },
  reasoning: { summary: [] },
  input_image: { detail: 'auto' },
  output_text: { annotations: [], logprobs: [] },
};

/** Sealed states and images of messages, which are long, only where they are asked for. */
function showItem(item: JsonRecord, included: ReadonlySet<string>): JsonRecord {
  const { encrypted_content: seal, content, output, ...rest } = item;
  const shown = included.has(inputImages) ? addMissingPartFields : removeImage;
  return {
    ...addMissingFields(rest),
    ...(content !== undefined && { content: Array.isArray(content) ? content.map(shown) : content }),
    ...(output !== undefined && {
      output: Array.isArray(output) ? output.map(addMissingPartFields) : output,
    }),
    ...(seal !== undefined && included.has(sealedReasoning) && { encrypted_content: seal }),
  };
}

function addMissingFields(one: JsonRecord): JsonRecord {
  const usual = Object.entries(required[String(one['type'])] ?? {});
  return { ...one, ...Object.fromEntries(usual.map(([name, value]) => [name, one[name] ?? value])) };
}

const addMissingPartFields = (part: unknown): unknown => (isRecord(part) ? addMissingFields(part) : part);

const removeImage = (part: unknown): unknown =>
  isRecord(part) && part['type'] === 'input_image'
    ? { ...addMissingFields(part), image_url: null }
    : addMissingPartFields(part);

/** Reads the query field `include` as client libraries write it: fields that are shown only on request. */

export const sealedReasoning = 'reasoning.encrypted_content';
const inputImages = 'message.input_image.image_url';

/** `include=a,b`, `include[]=a` and `include[0]=a`. Values that nobody knows here include nothing. */
export const readIncluded = (query: URLSearchParams): ReadonlySet<string> =>
  new Set([...query].flatMap(([name, value]) => (/^include(\[\d*\])?$/.test(name) ? value.split(',') : [])));
