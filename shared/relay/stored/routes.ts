/**
 * The paths of one stored response, for keys that may store, also while the relay is closed. Every key of an account that
 * may store can read what the account stored. Must never tell apart what is unknown, malformed, foreign, expired or
 * deleted, and must never let an answer be cached.
 */
import {
  inputItemPage,
  pageAsked,
  includedIn,
  sealedReasoning,
} from '../../endpoints/responses/input-item-page.ts';
import type { JsonRecord } from '../../wire/json.ts';
import { storedReading } from '../../endpoints/responses/stored-input.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { RelayResponse, Handle, RelayRequest } from '../http/http.ts';
import { Refusal, asRefusal, refusalResponse } from '../http/refusal.ts';
import type { ResponseHead, StoredResponse } from '../ports/stored.ts';
import { conversationOf } from './conversation.ts';
import {
  asked,
  foundResponse,
  jsonOf,
  type ReadPorts,
  type AskedStored,
  type StoredCaller,
  StoredReads,
  noSuchResponse,
  isStoredId,
  amongReads,
  countRead,
} from './reads.ts';
import { deletedResponse, withSeal, shownResponse } from '../../endpoints/responses/stored-response.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { admitKey, readKey } from '../call/access.ts';
import { matchStoredRoute, storedIdOf, type StoredRouteName, refuseRoute } from '../http/refuse-route.ts';
import type { RequestLog } from '../ports/telemetry.ts';
import { mayStore } from './may-store.ts';
import { waitingIn, releaseWaiting, type Waiting } from './handed-call.ts';
import { cancelledResponse } from './run.ts';

// GET /v1/responses/{id}/input_items: what a response was made of, the turns before it included.

/** How many turns are read at once: most pages end within few. */
const turnsAtOnce = 8;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function listInputItems(
  ports: ReadPorts,
  { key: { account } }: StoredCaller,
  { id, request, reads }: AskedStored,
): Promise<RelayResponse> {
  const page = pageAsked(request.query);
  const response = await foundResponse(ports, account, { id, reads });
  const newestFirst = itemsBefore({ ...ports, reads }, response);
  const items = page.order === 'desc' ? newestFirst : oldestFirst(newestFirst);
  return jsonOf(request, await inputItemPage(items, page));
}

interface BoundedReads extends ReadPorts {
  reads: StoredReads;
}

/** Of a conversation whose beginning is deleted or has expired, what is left. */
async function* itemsBefore(ports: BoundedReads, { head, body }: StoredResponse): AsyncGenerator<JsonRecord> {
  yield* (await inputOf(ports, turnOf({ head, body }))).toReversed();
  let ancestors = head.ancestors;
  while (ancestors.length > 0) {
    const ids = ancestors.slice(0, turnsAtOnce);
    const { responses } = ports.stored;
    const turns = await asked(ports, () => responses.readEach(head.account, ids, turnOf, ports.reads.admit));
    for (const id of ids) {
      const turn = turns.get(id);
      if (!turn) return;
      yield* turn.output.toReversed();
      yield* (await inputOf(ports, turn)).toReversed();
      ancestors = turn.head.ancestors;
    }
  }
}

/** The items of a turn's request. A reference to what nobody can read any more stays one. */
async function inputOf(ports: BoundedReads, { head, input: all }: Turn): Promise<readonly JsonRecord[]> {
  const input = all.filter(isReference);
  const references = input.length > 0 && storedReading.references({ input });
  if (!references) return all;
  const { referred } = await asked(ports, () =>
    conversationOf(ports, head.account, references, ports.reads).catch((error: unknown) => {
      if (error instanceof Refusal || error instanceof InvalidRequest) return { referred: new Map() };
      throw error;
    }),
  );
  return all.map((item) => (isReference(item) ? (referred.get(String(item['id']))?.item ?? item) : item));
}

const isReference = (item: JsonRecord): boolean => item['type'] === 'item_reference';

/** What is listed of a response; it also repeats the tools and the instructions of its request. */
interface Turn {
  head: ResponseHead;
  input: readonly JsonRecord[];
  output: readonly JsonRecord[];
}

const turnOf = ({ head, body: { input, response } }: StoredResponse): Turn => ({
  head,
  input,
  output: Array.isArray(response['output']) ? (response['output'] as JsonRecord[]) : [],
});

/** The oldest item is found last. A conversation has a bound of some megabytes. */
async function* oldestFirst(newestFirst: AsyncIterable<JsonRecord>): AsyncGenerator<JsonRecord> {
  const items = await Array.fromAsync(newestFirst);
  yield* items.toReversed();
}

// DELETE /v1/responses/{id}: nobody reads it from then on. A run that is answering it notices, and ends; one that waits never
// begins, and what was reserved for it is free at once. Must never close the reservation of a run.

type DeletePorts = Pick<ChatPorts, 'clock' | 'random' | 'quotas' | 'log' | 'stored'>;

/** Throws a Refusal or StoreUnavailable. */
export async function deleteStored(
  ports: DeletePorts,
  { key: { account } }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { responses } = ports.stored;
  const head = (await asked(ports, () => responses.heads(account, [id]))).get(id);
  const { released } = head?.status === 'queued' ? await cancelQueued(ports, { account, id }) : {};
  let isRemoved = false;
  try {
    // Also without a head: a try before this one may have come so far, or the answer may have been kept meanwhile.
    isRemoved = await asked(ports, () => responses.remove(account, id));
  } catch (error) {
    // A refusal ends the invocation, and with it what goes on.
    await released;
    throw error;
  }
  // One that is repeated finds nothing, and it is deleted.
  if (!head && !isRemoved) throw noSuchResponse(id);
  return { ...jsonOf(request, deletedResponse(id)), done: released ?? Promise.resolve() };
}

/** How old a key and the setting may be that forbid to store: another environment may have seen newer ones. */
const forbiddenAgeMsMax = 1_000;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
type Action = (ports: ChatPorts, caller: StoredCaller, asked: AskedStored) => Promise<RelayResponse>;

/** What is loaded by the first request that needs it. */
const followed: Action = async (...asked) => (await import('./follow.ts')).follow(...asked);

const actions: Record<StoredRouteName, Action> = {
  response: (ports, caller, asked) =>
    (isFollowing(asked.request) ? followed : retrieve)(ports, caller, asked),
  response_delete: deleteStored,
  response_input_items: listInputItems,
  response_cancel: cancel,
};

/** Never rejects. */
export const storedHandle =
  (ports: ChatPorts): Handle =>
  async (request) => {
    const startedMs = ports.clock.now();
    /** What the checks have found so far; the log line of a refusal contains only this. */
    let found: Pick<RequestLog, 'endpoint' | 'key_hint' | 'account'> = { endpoint: 'response' };
    const logEnd = (end: Pick<RequestLog, 'status' | 'end' | 'code' | 'reason'>): void =>
      ports.log.request({
        request_id: request.id,
        ...found,
        ...end,
        duration_ms: ports.clock.now() - startedMs,
      });
    try {
      const endpoint = matchStoredRoute(request);
      if (!endpoint) throw refuseRoute(request);
      found = { endpoint };
      const caller = await callerOf(ports, request);
      found = { endpoint, key_hint: caller.key.hint, account: caller.key.account };
      const id = storedIdOf(request);
      if (!mayStore(caller) || !isStoredId(id)) throw noSuchResponse(id);
      const act = async (): Promise<RelayResponse> =>
        actions[endpoint](ports, caller, { id, request, reads: new StoredReads(request) });
      const of = { key: caller.key, requestId: request.id };
      if (endpoint !== 'response_delete') await countRead(ports, of);
      const response = await (endpoint === 'response_delete' ? act() : amongReads(ports, of, act));
      const { status } = response;
      return { ...response, done: response.done.then(() => logEnd({ status, end: 'completed' })) };
    } catch (error) {
      const refusal = asRefusal(error);
      const { code } = refusal.body.error;
      if (code === 'internal') ports.log.fault(request.id, error);
      logEnd({ status: refusal.status, end: 'refused', code, reason: refusal.reason });
      return refusalResponse(refusal, request.id);
    }
  };

/** Whoever has seen that a response is stored finds it, although this environment has an older key or configuration. */
async function callerOf({ keys, config, clock }: ChatPorts, request: RelayRequest): Promise<StoredCaller> {
  const secretKey = readKey(request.headers['authorization']);
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

// GET /v1/responses/{id}: a response as it is now, as its client got it.

/** Throws a Refusal or StoreUnavailable. */
export async function retrieve(
  ports: ReadPorts,
  { key }: StoredCaller,
  asked: AskedStored,
): Promise<RelayResponse> {
  const { head, body } = await foundResponse(ports, key.account, asked);
  const { request } = asked;
  const shown = shownResponse(head.status, body.response);
  const wantsSeal = includedIn(request.query).has(sealedReasoning);
  return jsonOf(request, wantsSeal ? withSeal(shown, body.seal) : shown);
}

// Cancels a background response: one that waits never begins and costs nothing, one that runs is stopped by its run within a
// second or two. Must never close the reservation of a run.

/** How long the caller waits for what the run had written, which the run writes when it sees that it is cancelled. */
const waitMsMax = 4_000;
const pollMs = 250;

type CancelPorts = Pick<ChatPorts, 'clock' | 'random' | 'quotas' | 'log' | 'stored'>;

/** Again, or after the end: the response as it is. Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function cancel(
  ports: CancelPorts,
  { key: { account } }: Pick<StoredCaller, 'key'>,
  { id, request, reads }: AskedStored,
): Promise<RelayResponse> {
  const found = await foundResponse(ports, account, { id, reads });
  if (!found.head.background)
    throw new InvalidRequest(
      'invalid_value',
      'response_id',
      'Only responses that were created with background: true can be cancelled.',
    );
  const head = await asked(ports, () => ports.stored.runs.cancel(account, id));
  if (!head) throw noSuchResponse(id);
  const waiting = leftWaiting(found, head);
  const done = waiting ? releaseWaiting(ports, waiting) : Promise.resolve();
  const { response } = (waiting ? found : await ended(ports, { account, id, reads })).body;
  const shown =
    head.status === 'cancelled' ? cancelledResponse(response) : shownResponse(head.status, response);
  return { ...jsonOf(request, shown), done };
}

/**
 * Cancels what is queued, because it will be deleted. Resolves when it can begin no more: with the release of what waited,
 * which never rejects. Throws StoreUnavailable.
 */
export async function cancelQueued(
  ports: CancelPorts,
  { account, id }: { account: string; id: string },
): Promise<{ released: Promise<void> }> {
  const { responses, runs } = ports.stored;
  const found = (await asked(ports, () => responses.read(account, [id]))).get(id);
  const head = await asked(ports, () => runs.cancel(account, id));
  const waiting = found && head && leftWaiting(found, head);
  return { released: waiting ? releaseWaiting(ports, waiting) : Promise.resolve() };
}

/** No run had claimed it, and none can any more, so what waits is nobody else's. */
const leftWaiting = (found: StoredResponse, { status, background }: ResponseHead): Waiting | undefined =>
  status === 'cancelled' && background?.run === undefined ? waitingIn(found) : undefined;

/** With what its run had written, if that is there in time. */
async function ended(
  ports: CancelPorts,
  { account, ...of }: Pick<AskedStored, 'id' | 'reads'> & { account: string },
): Promise<StoredResponse> {
  const untilMs = ports.clock.now() + waitMsMax;
  for (;;) {
    const found = await foundResponse(ports, account, of);
    const isThere = found.head.status !== 'cancelled' || found.body.response['status'] === 'cancelled';
    if (isThere || ports.clock.now() >= untilMs) return found;
    await ports.clock.sleep(pollMs);
  }
}
