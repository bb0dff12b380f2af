/**
 * Reads the references of a Responses request to stored responses, and selects the items to store. Loaded by the first
 * call of a key that may store.
 */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { asRecord, isRecord, jsonText, listIn, type JsonRecord } from '../../wire/json.ts';
import { nameWindowTier, readWindow, standardTiers, windowParam } from '../../wire/service-tier.ts';
import type {
  ItemReference,
  PlacedItem,
  ReferredItem,
  StorageAsked,
  StoredConversation,
  StoredReading,
  StoredReferences,
  StoredTurn,
} from '../endpoint.ts';
import { callTypes, itemType, outputTypes } from './input.ts';

const chainField = 'previous_response_id';

function references(body: unknown): StoredReferences | undefined {
  const { [chainField]: sent, input } = isRecord(body) ? body : {};
  const previous = typeof sent === 'string' ? sent : undefined;
  const items = listIn(input).flatMap((item, i) =>
    isRecord(item) ? readReference(item, `input[${i}].id`) : [],
  );
  return previous === undefined && items.length === 0 ? undefined : { previous, items, within };
}

const within: StoredReferences['within'] = (items) =>
  items.flatMap((item) => readReference(item, chainField));

/** Ids of items end with the id of their request and their place in it. */
const itemId = /^[a-z]{2,8}_([0-9a-z]{26})_(?:in)?\d{1,6}$/;

function readReference(item: JsonRecord, param: string): ItemReference[] {
  const { id } = item;
  if (!isReference(item) || typeof id !== 'string') return [];
  const request = itemId.exec(id)?.[1];
  return [{ id, param, response: request === undefined ? undefined : `resp-${request}` }];
}

/** OpenAI's schema does not require the type of a reference. */
const isReference = (item: JsonRecord): boolean =>
  item['type'] === 'item_reference' ||
  ((item['type'] ?? item['role'] ?? undefined) === undefined && typeof item['id'] === 'string');

function placeItems(own: readonly PlacedItem[], stored: StoredConversation | undefined): PlacedItem[] {
  const earlier = stored?.earlier.flatMap(placeTurn) ?? [];
  return removeCutCalls([...earlier, ...own].flatMap((each) => resolveReference(each, stored)));
}

const placeTurn = (turn: StoredTurn): PlacedItem[] =>
  [...turn.input, ...turn.output, ...sealItems(turn)].map((item) => ({
    item,
    param: chainField,
    stored: true,
  }));

function resolveReference(each: PlacedItem, stored: StoredConversation | undefined): PlacedItem[] {
  const { item, param } = each;
  if (!isReference(item)) return [each];
  const { id } = item;
  if (typeof id === 'string' && !stored) return [];
  const found = typeof id === 'string' ? stored?.referred.get(id) : undefined;
  if (!found)
    throw new InvalidRequest(
      'missing_required_parameter',
      `${param}.id`,
      `'${param}.id' must be the id of a stored item.`,
    );
  return [found.item, ...sealItems(found)].map((one) => ({ item: one, param, stored: true }));
}

/** The state of a turn has the form in which clients send it. No client sees this item, so it has no id. */
const sealItems = ({ seal }: Pick<StoredTurn | ReferredItem, 'seal'>): JsonRecord[] =>
  seal === undefined ? [] : [{ type: 'reasoning', encrypted_content: seal }];

const isCutCall = ({ item, stored }: PlacedItem): boolean =>
  stored === true && item['status'] === 'incomplete' && callTypes.has(itemType(item));

/** A call that was cut off runs nowhere, and its client cannot take it out of a stored turn. */
function removeCutCalls(items: PlacedItem[]): PlacedItem[] {
  if (!items.some(isCutCall)) return items;
  const outputs = items.filter(({ item }) => outputTypes.has(itemType(item)));
  const answered = new Set(outputs.map(({ item }) => item['call_id']));
  return items.filter((each) => !isCutCall(each) || answered.has(each.item['call_id']));
}

function readStorageAsked(request: JsonRecord, items: readonly JsonRecord[]): StorageAsked | undefined {
  const store = flagOf(request, 'store') ?? true;
  const background = flagOf(request, 'background') ?? false;
  if (!store && background)
    throw new InvalidRequest(
      'invalid_value',
      'background',
      "'background' needs 'store': the answer must be stored until you retrieve it.",
    );
  const tier = readWindowTier(request, background);
  if (!store) return undefined;
  const previous = request[chainField];
  return {
    previous: typeof previous === 'string' ? previous : undefined,
    background,
    tier,
    input: (suffix) => addIds(items, suffix),
  };
}

function readWindowTier(request: JsonRecord, background: boolean): string | undefined {
  const hours = asRecord(request['background_options'])['completion_window'] ?? 'soonest';
  if (hours === 'soonest') return undefined;
  const { service_tier: other } = request;
  const tier = nameWindowTier(jsonText(hours));
  if (readWindow(tier) === undefined) throw refuseWindow("must be 'soonest' or hours, such as '8h'");
  if (!background) throw refuseWindow("needs 'background': true");
  if (typeof other === 'string' && !standardTiers.has(other))
    throw refuseWindow("can't be combined with 'service_tier'");
  return tier;
}

const refuseWindow = (problem: string): InvalidRequest =>
  new InvalidRequest('invalid_value', windowParam, `'${windowParam}' ${problem}.`);

/** Strict, since a value that is misread would store what was not to be stored. */
function flagOf(request: JsonRecord, field: 'store' | 'background'): boolean | undefined {
  const value = request[field] ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw new InvalidRequest('invalid_type', field, `'${field}' must be true or false.`);
}

/** By the type of an item, what its id begins with, as OpenAI has it. */
const prefixes: Record<string, string> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  reasoning: 'rs',
  compaction: 'cmp',
};
const clientsId = /^[\w-]{1,64}$/;

/** The items in the form in which they are read again, each with an id of its own but for references. */
function addIds(items: readonly JsonRecord[], suffix: string): JsonRecord[] {
  const taken = new Set<unknown>();
  return items.map((item, i) => {
    if (isReference(item)) return { ...item, type: 'item_reference' };
    const type = itemType(item);
    const { id: sent } = item;
    const isUsable = typeof sent === 'string' && clientsId.test(sent) && !taken.has(sent);
    const id = isUsable ? sent : `${prefixes[type] ?? 'item'}_${suffix}_in${i}`;
    taken.add(id);
    return { ...item, id, type, ...(type === 'message' && messageFields(item)) };
  });
}

/** OpenAI's schema requires content in parts and a status. */
function messageFields({ role, content, status }: JsonRecord): JsonRecord {
  const said = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' };
  return {
    status: typeof status === 'string' ? status : 'completed',
    content: typeof content === 'string' ? [{ ...said, text: content }] : (content ?? []),
  };
}

export const storedReading: StoredReading = { references, placed: placeItems, asked: readStorageAsked };
