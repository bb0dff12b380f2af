/**
 * The paths of one stored response, for keys that may store, also while the relay is closed. Every key of an account that
 * may store can read what the account stored. Must never tell apart what is unknown, malformed, foreign, expired or
 * deleted, and must never let an answer be cached.
 */
import { admitKey, readKey } from '../../call/access.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../http/http.ts';
import { matchStoredRoute, storedIdOf, type StoredRouteName } from '../../http/stored-routes.ts';
import { refuseRoute } from '../../http/refuse-route.ts';
import { asRefusal, refusalResponse } from '../../http/refusal.ts';
import type { RequestLog } from '../../ports/telemetry.ts';
import { deleteStored } from './delete-stored.ts';
import { isStoredId, noSuchResponse } from '../found-response.ts';
import { listInputItems } from './list-input-items.ts';
import { mayStore } from '../may-store.ts';
import { retrieve } from './retrieve.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';
import { amongReads, countRead, StoredReads } from '../stored-reads.ts';

/** How old a key and the setting may be that forbid to store: another environment may have seen newer ones. */
const forbiddenAgeMsMax = 1_000;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
type Action = (ports: ChatPorts, caller: StoredCaller, asked: AskedStored) => Promise<RelayResponse>;

/** What is loaded by the first request that needs it. */
const cancelled: Action = async (...asked) => (await import('../background/cancel.ts')).cancel(...asked);
const followed: Action = async (...asked) => (await import('../events/follow.ts')).follow(...asked);

const actions: Record<StoredRouteName, Action> = {
  response: (ports, caller, asked) =>
    (isFollowing(asked.request) ? followed : retrieve)(ports, caller, asked),
  response_delete: deleteStored,
  response_input_items: listInputItems,
  response_cancel: cancelled,
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
