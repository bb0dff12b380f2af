/** What a Responses request has to do with stored responses: what it refers to, and what of it is stored. */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import type { StorageAsked, StorageAtHand, StoredReferences } from '../endpoint.ts';
import type { PlacedItem } from './read-input.ts';
import type { ResponsesRequest } from './responses-request.ts';

/** The references of a body that nobody has checked yet. */
export function referencesOf(body: unknown): StoredReferences {
  const { previous_response_id: previous, input } = isRecord(body) ? body : {};
  const items = (Array.isArray(input) ? input : []).flatMap((item: unknown, i) =>
    isRecord(item) && item['type'] === 'item_reference' && typeof item['id'] === 'string'
      ? [{ id: item['id'], param: `input[${i}]` }]
      : [],
  );
  return { previous: typeof previous === 'string' ? previous : undefined, items };
}

/** The whole conversation: the items of stored turns, then those of the request, references replaced by their items. */
export function placedItems({ input }: ResponsesRequest, storage: StorageAtHand | undefined): PlacedItem[] {
  const earlier = (storage?.earlier ?? []).map((item) => ({ item, param: 'previous_response_id' }));
  const own = itemsOf(input).flatMap((item, i): PlacedItem[] => {
    const param = `input[${i}]`;
    const id = item['id'];
    const referred = item['type'] === 'item_reference' && typeof id === 'string' && storage?.referred.get(id);
    return referred ? referred.map((each) => ({ item: each, param })) : [{ item, param }];
  });
  return [...earlier, ...own];
}

const itemsOf = (input: ResponsesRequest['input']): readonly JsonRecord[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;

/** Undefined: the answer is not stored. Throws InvalidRequest. */
export function storageAsked(
  request: ResponsesRequest,
  storage: StorageAtHand | undefined,
): StorageAsked | undefined {
  const background = request['background'] === true;
  if (request['store'] === false && background)
    throw new InvalidRequest(
      'invalid_value',
      'background',
      "'background' needs 'store': an answer that nobody waits for must be kept.",
    );
  if (!storage || request['store'] === false) return undefined;
  const { previous_response_id: previous, input } = request;
  return {
    previous: previous ?? undefined,
    background,
    input: (suffix) =>
      itemsOf(input).map((item, i) => ({ ...item, id: item['id'] ?? `${prefixOf(item)}_${suffix}_in${i}` })),
  };
}

/** Ids of items begin with their kind, as those of answers. */
const prefixOf = ({ type }: JsonRecord): string => (type === 'function_call_output' ? 'fco' : 'msg');
