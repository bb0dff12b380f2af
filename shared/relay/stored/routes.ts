/**
 * The paths of one stored response, for keys that may store, also while the relay is closed. Every key of an account that
 * may store can read what the account stored. Must never tell apart what is unknown, malformed, foreign, expired or
 * deleted, and must never let an answer be cached.
 */
import {
  readIncluded,
  sealedReasoning,
  pageInputItems,
  readPageQuery,
} from '../../endpoints/responses/input-item-page.ts';
import { buildDeletedResponse, withSeal, showResponse } from '../../endpoints/responses/stored-response.ts';
import { storedReading } from '../../endpoints/responses/stored-input.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { JsonRecord } from '../../wire/json.ts';
import { mayStore } from '../call/access.ts';
import { admitKey, readKey } from '../call/call-refusals.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import { createLoggedHandle } from '../http/logged-handle.ts';
import { refuseRoute, matchStoredRoute, storedIdOf, type StoredRouteName } from '../http/refuse-route.ts';
import { respondJson, Refusal } from '../http/refusal.ts';
import { retry } from '../retry.ts';
import { countUnbilled, runWithinKeyPermits } from '../money/unbilled-limits.ts';
import type { StoredResponse } from '../ports/stored.ts';
import { readConversation, readTurn } from './conversation.ts';
import { followResponse } from './follow.ts';
import {
  isStoredId,
  refuseUnknownResponse,
  StoredReader,
  type AskedStored,
  type StoredCaller,
} from './reads.ts';
import { showCancelled } from './run-recorder.ts';

/** How old a key and the setting may be that forbid to store: another environment may have seen newer ones. */
const forbiddenAgeMsMax = 1_000;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
type Action = (ports: ChatPorts, caller: StoredCaller, asked: AskedStored) => Promise<RelayResponse>;

const actions: Record<StoredRouteName, Action> = {
  response: async (...asked) =>
    isFollowing(asked[2].request) ? followResponse(...asked) : retrieveResponse(...asked),
  response_delete: deleteResponse,
  response_input_items: listInputItems,
  response_cancel: cancelResponse,
};

export const createStoredHandle = (ports: ChatPorts): Handle =>
  createLoggedHandle(ports, { endpoint: 'response' }, async (request, found) => {
    const endpoint = matchStoredRoute(request);
    if (!endpoint) throw refuseRoute(request);
    found({ endpoint });
    const caller = await findCaller(ports, request);
    const { key } = caller;
    found({ endpoint, key_hint: key.hint, account: key.account });
    const id = storedIdOf(request);
    if (!mayStore(caller) || !isStoredId(id)) throw refuseUnknownResponse(id);
    const act = (): Promise<RelayResponse> => actions[endpoint](ports, caller, { id, request });
    if (endpoint === 'response_delete') return act();
    await countUnbilled(ports, { key });
    return runWithinKeyPermits(ports, { key, requestId: request.id }, act);
  });

/**
 * A client that knows a response is stored must find it, even if this environment has an older key or
 * configuration.
 */
async function findCaller({ keys, config, clock }: ChatPorts, request: RelayRequest): Promise<StoredCaller> {
  const secretKey = readKey(request.headers);
  const [lookup, snapshot] = await Promise.all([keys.find(secretKey), config.current()]);
  const caller = { key: admitKey(lookup, clock.now()).row, snapshot };
  if (mayStore(caller)) return caller;
  const [newer, newest] = await Promise.all([
    keys.find(secretKey, forbiddenAgeMsMax),
    config.notOlderThan(forbiddenAgeMsMax),
  ]);
  return { key: admitKey(newer, clock.now()).row, snapshot: newest };
}

/** Clients write a boolean in several ways; one that wants a stream must not be given an object. */
const isFollowing = ({ query }: RelayRequest): boolean =>
  ['true', '1'].includes(query.get('stream')?.toLowerCase() ?? '');

/** GET /v1/responses/{id}: a response as it is now, as its client got it. */
async function retrieveResponse(
  ports: ChatPorts,
  { key }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { head, body } = await new StoredReader(ports, key.account, request).readResponse(id);
  const shown = showResponse(head.status, body.response);
  const wantsSeal = readIncluded(request.query).has(sealedReasoning);
  return respondJson(request.id, wantsSeal ? withSeal(shown, body.seal) : shown);
}

/** How many turns are read at once: most pages end within few. */
const turnsAtOnce = 8;

/** GET /v1/responses/{id}/input_items: what a response was made of, the turns before it included. */
async function listInputItems(
  ports: ChatPorts,
  { key }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const page = readPageQuery(request.query);
  const reader = new StoredReader(ports, key.account, request);
  const newestFirst = readItemsBefore(reader, await reader.readResponse(id));
  const items = page.order === 'desc' ? newestFirst : reverseItems(newestFirst);
  return respondJson(request.id, await pageInputItems(items, page));
}

/** If the start of a conversation was deleted or has expired, the rest is left. */
async function* readItemsBefore(reader: StoredReader, response: StoredResponse): AsyncGenerator<JsonRecord> {
  yield* (await readInput(reader, response.body.input)).toReversed();
  let { ancestors } = response.head;
  while (ancestors.length > 0) {
    const ids = ancestors.slice(0, turnsAtOnce);
    const turns = await reader.readEachResponse(ids, readTurn);
    for (const id of ids) {
      const found = turns.get(id);
      if (!found) return;
      yield* found.turn.output.toReversed();
      yield* (await readInput(reader, found.turn.input)).toReversed();
      ({ ancestors } = found.head);
    }
  }
}

/** The items of a turn's request. A reference to what nobody can read any more stays one. */
async function readInput(reader: StoredReader, all: readonly JsonRecord[]): Promise<readonly JsonRecord[]> {
  const input = all.filter(isReference);
  const references = input.length > 0 && storedReading.references({ input });
  if (!references) return all;
  const { referred } = await readConversation(reader, references).catch((error: unknown) => {
    if (error instanceof Refusal || error instanceof InvalidRequest) return { referred: new Map() };
    throw error;
  });
  return all.map((item) => (isReference(item) ? (referred.get(String(item['id']))?.item ?? item) : item));
}

const isReference = (item: JsonRecord): boolean => item['type'] === 'item_reference';

/** The oldest item is found last. A conversation has a bound of some megabytes. */
async function* reverseItems(newestFirst: AsyncIterable<JsonRecord>): AsyncGenerator<JsonRecord> {
  yield* (await Array.fromAsync(newestFirst)).toReversed();
}

/**
 * DELETE /v1/responses/{id}: nobody reads it from then on. A run that is answering it notices, and ends; one that waits never
 * begins.
 */
async function deleteResponse(
  ports: ChatPorts,
  { key: { account } }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { responses } = ports.stored;
  const head = (await retry(ports, () => responses.heads(account, [id]))).get(id);
  // Also without a head: a try before this one may have come so far, or the answer may have been kept meanwhile.
  const isRemoved = await retry(ports, () => responses.remove(account, id));
  // One that is repeated finds nothing, and it is deleted.
  if (!head && !isRemoved) throw refuseUnknownResponse(id);
  return respondJson(request.id, buildDeletedResponse(id));
}

/** How long a caller waits for what its cancelled run had written, which the run writes when it sees that it is cancelled. */
const waitMsMax = 4_000;
const pollMs = 250;

/**
 * POST /v1/responses/{id}/cancel: one that waits never begins and costs nothing, one that runs is stopped by its run within a
 * second or two. Again, or after the end: the response as it is.
 */
export async function cancelResponse(
  ports: Pick<ChatPorts, 'clock' | 'random' | 'stored'>,
  { key: { account } }: Pick<StoredCaller, 'key'>,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const reader = new StoredReader(ports, account, request);
  const found = await reader.readResponse(id);
  if (!found.head.background)
    throw new InvalidRequest(
      'invalid_value',
      'response_id',
      'Only responses that were created with background: true can be cancelled.',
    );
  const head = await retry(ports, () => ports.stored.runs.cancel(account, id));
  if (!head) throw refuseUnknownResponse(id);
  const isUnclaimed = head.status === 'cancelled' && head.background?.run === undefined;
  const { response } = (isUnclaimed ? found : await awaitWritten(ports, reader, id)).body;
  const shown = head.status === 'cancelled' ? showCancelled(response) : showResponse(head.status, response);
  return respondJson(request.id, shown);
}

/** With what its run had written, if that is there in time. */
async function awaitWritten(
  { clock }: Pick<ChatPorts, 'clock'>,
  reader: StoredReader,
  id: string,
): Promise<StoredResponse> {
  const untilMs = clock.now() + waitMsMax;
  for (;;) {
    const found = await reader.readResponse(id);
    const isThere = found.head.status !== 'cancelled' || found.body.response['status'] === 'cancelled';
    if (isThere || clock.now() >= untilMs) return found;
    await clock.sleep(pollMs);
  }
}
