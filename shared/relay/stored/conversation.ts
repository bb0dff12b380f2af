/**
 * The conversation that a call goes on from, and the items that it refers to, out of the account's stored responses. Must
 * never read another account's, nor tell apart why a response cannot be read.
 */
import type {
  ItemReference,
  ReferredItem,
  StoredConversation,
  StoredReferences,
  StoredTurn,
} from '../../endpoints/endpoint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { JsonRecord } from '../../wire/json.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import type { ResponseHead, StoredResponse } from '../ports/stored.ts';
import type { ChatCall } from '../call/call.ts';
import type { WorkBudget } from '../money/admission.ts';
import type { RelayRequest } from '../http/http.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { runWithinKeyPermits } from '../money/unbilled-limits.ts';
import { isStoredId, StoredReader } from './reads.ts';

export interface Conversation extends StoredConversation {
  /** The response that the call continues, if any. */
  previous: ResponseHead | undefined;
}

/** A conversation ends with its turn of this number. */
const turnsMax = 1_000;
/** A call, with the turns before it, refers to items of as many other responses at most. */
export const referredMax = 128;
/** UTF-16 code units of the items before a request as JSON, each as often as it is referred to. */
const conversationLengthMax = 10 * 1024 * 1024;
const readAtOnce = 8;

const field = 'previous_response_id';

/**
 * Reads the conversation of a client's call, within the reads its key may have at once. Throws what
 * `readConversation` throws.
 */
export const readConversationBefore = (
  ports: ChatPorts,
  { key }: Pick<ChatCall, 'key'>,
  { unread, request, work }: { unread: StoredReferences; request: RelayRequest; work: WorkBudget },
): Promise<Conversation> =>
  runWithinKeyPermits(ports, { key, requestId: request.id }, () =>
    readConversation(new StoredReader(ports, key.account, { room: request.room, work }), unread),
  );

/** Throws the refusals of what is not found, and InvalidRequest for a conversation that is too long. */
export async function readConversation(
  reader: StoredReader,
  references: StoredReferences,
): Promise<Conversation> {
  const { previous, items } = references;
  listOtherResponses(items, new Map());
  const chain = previous === undefined ? [] : await readChain(reader, previous);
  const wanted = [...chain.flatMap(({ turn }) => references.within(turn.input)), ...items];
  const referred = await readReferredItems(reader, { wanted, chain, references });
  const head = chain.at(-1)?.head;
  checkLength(head?.conversationLength ?? 0, { wanted, referred });
  return { earlier: chain.map(({ turn }) => turn), referred, previous: head };
}

/** The part of a response that is kept while others are read: it repeats the tools and instructions of its request. */
interface ReadTurn {
  head: ResponseHead;
  turn: StoredTurn;
}

export const readTurn = (response: StoredResponse): ReadTurn => ({
  head: response.head,
  turn: turnOf(response),
});

/** The turns up to a response, oldest first. Each head names the turns before it, so they are read in batches. */
async function readChain(reader: StoredReader, previous: string): Promise<ReadTurn[]> {
  const newestFirst: ReadTurn[] = [];
  for (let wanted: readonly string[] = [previous]; wanted.length > 0;) {
    if (!wanted.every((id) => isStoredId(id))) throw refuseUnknownPrevious(previous);
    const found = await reader.readEachResponse(wanted, readTurn);
    for (const id of wanted) {
      const one = found.get(id);
      if (!one) throw id === previous ? refuseUnknownPrevious(previous) : refuseBrokenChain(previous);
      newestFirst.push(one);
    }
    const { head } = newestFirst.at(-1) ?? {};
    if (newestFirst.length === 1) await checkHead(reader, head);
    if (newestFirst.length > turnsMax) throw refuseTurns();
    wanted = head?.ancestors.slice(0, readAtOnce) ?? [];
  }
  return newestFirst.toReversed();
}

/** Checks what the head shows, before the rest is read. */
async function checkHead(reader: StoredReader, head: ResponseHead | undefined): Promise<void> {
  if (!head) return;
  const { status } = await reader.findEnd(head);
  if (status === 'queued' || status === 'in_progress')
    throw new InvalidRequest(
      'invalid_value',
      field,
      `The response ${head.id} is still ${status}: wait until it ends before you continue from it.`,
    );
  if (head.turn >= turnsMax) throw refuseTurns();
  if (head.conversationLength > conversationLengthMax) throw refuseLongItems(field);
}

/** The items by the ids of their references. */
async function readReferredItems(
  reader: StoredReader,
  of: { wanted: readonly ItemReference[]; chain: readonly ReadTurn[]; references: StoredReferences },
): Promise<ReadonlyMap<string, ReferredItem>> {
  const { wanted, chain, references } = of;
  const referred = new Map<string, ReferredItem>();
  const byResponse = Map.groupBy(wanted, ({ response }) => response);
  const known = new Map(chain.map(({ head, turn }) => [head.id, turn]));
  const others = listOtherResponses(wanted, known);
  const add = (from: StoredTurn | undefined, items: readonly ItemReference[] = []): void => {
    const byId = from && indexItems(from, references);
    for (const reference of items) {
      const found = byId?.get(reference.id);
      if (!found) throw refuseUnknownItem(reference);
      referred.set(reference.id, found);
    }
  };
  for (const [id, items] of byResponse)
    if (id === undefined || known.has(id)) add(known.get(id ?? ''), items);
  for (let at = 0; at < others.length; at += readAtOnce) {
    const batch = others.slice(at, at + readAtOnce);
    const found = await reader.readEachResponse(batch, readTurn);
    for (const id of batch) add(found.get(id)?.turn, byResponse.get(id));
  }
  return referred;
}

/** An item of the answer comes with the state of its turn. What is itself a reference is found where it points to. */
function indexItems(
  { input, output, seal }: StoredTurn,
  { within }: StoredReferences,
): ReadonlyMap<unknown, ReferredItem> {
  const sent = input.filter((item) => within([item]).length === 0);
  const all = [...output.map((item) => ({ item, seal })), ...sent.map((item) => ({ item, seal: undefined }))];
  // If two items have the same id, the first is found.
  return new Map(all.toReversed().map((each) => [each.item['id'], each]));
}

/** The other responses that are referred to. Throws an InvalidRequest. */
function listOtherResponses(wanted: readonly ItemReference[], known: ReadonlyMap<string, unknown>): string[] {
  const others = new Set(wanted.map(({ response }) => response));
  for (const id of known.keys()) others.delete(id);
  if (others.size > referredMax) throw refuseReferences(wanted);
  return [...others].filter((id) => id !== undefined);
}

/** The instructions count only where a conversation begins. */
function turnOf({ head, body: { input, response, seal } }: StoredResponse): StoredTurn {
  const { output, instructions } = response;
  const isFirst = head.ancestors.length === 0;
  return {
    instructions: isFirst && typeof instructions === 'string' ? instructions : undefined,
    input,
    output: Array.isArray(output) ? (output as JsonRecord[]) : [],
    seal,
  };
}

/** An item that is referenced a thousand times is sent a thousand times. */
function checkLength(
  chainLength: number,
  { wanted, referred }: { wanted: readonly ItemReference[]; referred: Conversation['referred'] },
): void {
  const lengths = new Map<string, number>();
  let length = chainLength;
  for (const { id, param } of wanted) {
    const own = lengths.get(id) ?? JSON.stringify(referred.get(id)?.item ?? null).length;
    lengths.set(id, own);
    length += own;
    if (length > conversationLengthMax) throw refuseLongItems(param);
  }
}

const quoteId = (id: string): string => `'${id.replaceAll(/[^\w-]/g, '?').slice(0, 64)}'`;

const refusePrevious = (id: string, words: string): Refusal =>
  refuse('previous_response_not_found', `Previous response with id ${quoteId(id)} not found${words}`, {
    param: field,
  });

/** Clients send the whole conversation on this code. One text for what is foreign, unknown, malformed, deleted and expired. */
const refuseUnknownPrevious = (id: string): Refusal => refusePrevious(id, '.');

const refuseBrokenChain = (id: string): Refusal =>
  refusePrevious(id, ' in full: an earlier response is no longer stored. Send the conversation as input.');

/** An item that a stored turn refers to is missing in what the call goes on from. */
const refuseUnknownItem = ({ id, param }: ItemReference): Refusal =>
  refuse(
    param === field ? 'previous_response_not_found' : 'response_not_found',
    `Item with id ${quoteId(id)} not found.`,
    { param },
  );

const refuseLength = (param: string | null, message: string): InvalidRequest =>
  new InvalidRequest('conversation_too_long', param, message);

const refuseTurns = (): InvalidRequest =>
  refuseLength(
    field,
    `A stored conversation can have at most ${turnsMax} turns. Send the relevant parts as input, without '${field}'.`,
  );

const refuseReferences = ([first]: readonly ItemReference[]): InvalidRequest =>
  refuseLength(
    first?.param ?? null,
    `A request can refer to items of at most ${referredMax} responses. Send the items themselves.`,
  );

const refuseLongItems = (param: string): InvalidRequest =>
  refuseLength(
    param,
    `The stored items before this request have more than ${conversationLengthMax} characters of JSON. Send the relevant parts as input, without '${field}'.`,
  );
