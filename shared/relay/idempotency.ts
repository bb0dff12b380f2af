/**
 * Handles the header Idempotency-Key: one claim per API key and header value. A repeat of a key that may store gets the first
 * result; of others no answer is ever kept.
 */
import { runMinutesMax } from '../config/settings.ts';
import type { ClaimReply, IdempotencyClaimWrite } from './ports/runtime-stores.ts';
import { ResponseTooLarge, type StoredResult } from './ports/stored.ts';
import type { ChatCall } from './call/call.ts';
import type { ResultKeeper } from './answer/answer.ts';
import type { CheckedCall } from './read-call.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { InvalidRequest } from '../wire/invalid-request.ts';
import type { RelayRequest, RelayResponse } from './http/http.ts';
import { refuse, type Refusal } from './http/refusal.ts';
import { Backoff, retry, within } from './retry.ts';
import { mayStore } from './call/access.ts';
import { countUnbilled, runWithinKeyPermits } from './money/unbilled-limits.ts';
import { StoredReader } from './stored/reads.ts';
import { findAccepted, repeatResult } from './stored/repeated.ts';

/** How long a killed invocation keeps its claim after its deadline, if it has no reservation that is swept. */
const graceMs = 120_000;
/** When a run has ended in any case: it begins a minute after its acceptance, and no function runs for longer. */
const runEndsMsMax = (1 + runMinutesMax) * 60_000;
const keyPattern = /^[\x20-\x7e]{1,255}$/;
/**
 * How long the end of a claim is tried, and where the call's own time is up. Without it the first request
 * counts as running, until the ledger says how it ended.
 */
const finishMsMax = 2_000;
const hurriedMsMax = 500;
/** The SDKs wait so long before they repeat a request whose first one still runs. */
const againSeconds = '5';

/** A longer answer (UTF-16 code units) is not repeated: it would take the memory of other calls. */
const lengthMax = 4 * 1024 * 1024;
const keptSeconds = 24 * 60 * 60;
/** How long the end of an answer waits for its keeping. */
const keepMsMax = 2_000;

export interface IdempotencyClaim extends ResultKeeper {
  /** Ends the claim. `free`: nothing was charged, so the key may be used again. Never rejects. */
  finish(free: boolean): Promise<void>;
}

type ClaimPorts = Pick<ChatPorts, 'idempotency' | 'clock' | 'random' | 'counters' | 'log' | 'stored'>;

interface KeyedRequest {
  header: string;
  request: RelayRequest;
}

/** The claim, or the answer to a repeat. Nothing without an Idempotency-Key. */
export type Claimed = IdempotencyClaim | { repeated: RelayResponse } | undefined;

/**
 * Claims the request's Idempotency-Key. A repeat is answered by the first result where that is kept. Throws when the key is
 * taken otherwise: a repeated request is then refused, free of charge.
 */
export async function claimIdempotencyKey(
  ports: ChatPorts,
  { call, body, read }: CheckedCall,
  { header, request }: KeyedRequest,
): Promise<Claimed> {
  if (!keyPattern.test(header)) throw new InvalidRequest('invalid_idempotency_key', null, malformed);
  const { requestId } = call.identity;
  const keeps = mayStore(call);
  const isRun = read.storage?.background === true;
  const { hash: owner, account } = call.key;
  const write: IdempotencyClaimWrite = {
    owner,
    account,
    idempotencyKey: header,
    requestId,
    // The same words at another endpoint, or at another path of one, are another request.
    body: [call.endpoint, body, ...(call.compacts === 'path' ? [call.compacts] : [])],
    untilMs: Math.max(call.deadlineMs, isRun ? call.startedMs + runEndsMsMax : 0) + graceMs,
    namesMembers: keeps,
  };
  const claim = createClaim(ports, call, { write, keeps, isStored: read.storage !== undefined });
  const reply = await ports.idempotency.claim(write).catch(async (error: unknown) => {
    // It may be applied: repeats would meet a call that never ran, for as long as it could have.
    await within(ports.clock, hurriedMsMax, { work: claim.finish(true), late: undefined });
    throw error;
  });
  if (reply.state === 'claimed') return claim;
  // The first is running until its charge is written, and its client has the end of its answer before.
  if (keeps && reply.state !== 'other_body') {
    await countUnbilled(ports, call);
    const keepResult = (): Promise<StoredResult | undefined> => {
      const { admit } = new StoredReader(ports, account, request);
      const result = { account, key: reply.requestId };
      return retry(ports, () => ports.stored.results.read(result, admit));
    };
    const first =
      (await runWithinKeyPermits(ports, { key: call.key, requestId }, keepResult)) ??
      (isRun ? await findAccepted(ports, { call, read }, reply) : undefined);
    if (first) return { repeated: await repeatResult(ports, call, { first, request }) };
  }
  throw refuseTaken(reply, keeps);
}

interface OpenClaim {
  write: IdempotencyClaimWrite;
  /** The API key may store, so repeats are answered. */
  keeps: boolean;
  /** The answer is stored as a response, too: when that is removed, the result goes with it. */
  isStored: boolean;
}

/** Its `keep` must never hold up the end of a call for long, nor fail it: without a kept result a repeat is refused. */
const createClaim = (
  ports: ClaimPorts,
  call: ChatCall,
  { write, keeps, isStored }: OpenClaim,
): IdempotencyClaim => ({
  keepsUpTo: keeps ? lengthMax : 0,
  keep: async (result) => {
    if (!keeps) return;
    const { clock, log } = ports;
    const { identity, key, signal } = call;
    const waitMs = signal.aborted ? hurriedMsMax : keepMsMax;
    const work = storeResult(ports, call, result, isStored);
    const why = await within(clock, waitMs, { work, late: 'write_late' });
    if (why !== undefined)
      log.event('result_not_kept', { request_id: identity.requestId, account: key.account, why });
  },
  finish: (free) =>
    new Backoff(ports, call.signal.aborted ? hurriedMsMax : finishMsMax)
      .until(() => ports.idempotency.finish(write, free))
      .catch((error: unknown) => ports.log.fault(call.identity.requestId, error)),
});

/** Keeps the result, or returns why it could not. Never rejects. */
async function storeResult(
  { log, stored }: ClaimPorts,
  { identity, key }: ChatCall,
  result: Parameters<ResultKeeper['keep']>[0],
  isStored: boolean,
): Promise<string | undefined> {
  if (result === 'too_large') return result;
  const { requestId, created } = identity;
  const of = { account: key.account, key: requestId };
  try {
    await stored.results.put(of, { requestId, ...result }, created + keptSeconds);
    if (!isStored) return undefined;
    // The client may have removed its response between the end of the answer and this result, which its removal missed.
    const id = `resp-${requestId}`;
    if ((await stored.responses.heads(key.account, [id])).has(id)) return undefined;
    await stored.responses.remove(key.account, id);
    return 'removed';
  } catch (error) {
    if (error instanceof ResponseTooLarge) return 'too_large';
    log.fault(requestId, error);
    return 'write_failed';
  }
}

const malformed = 'The header Idempotency-Key must be 1 to 255 printable ASCII characters.';

/**
 * Refuses a repeat by the state of the first request.
 * @param keeps the key may store: whoever comes again once the first is over gets its result
 */
function refuseTaken(reply: Exclude<ClaimReply, { state: 'claimed' }>, keeps: boolean): Refusal {
  const first = `The request ${reply.requestId}`;
  const headers = { 'x-should-retry': 'false' };
  if (reply.state === 'running') {
    const words = `${first} with this Idempotency-Key is still running.`;
    const again = { 'retry-after': againSeconds };
    return keeps
      ? refuse('request_in_progress', `${words} Retry later to get its answer.`, {
          headers: again,
        })
      : refuse('request_in_progress', words, { headers: { ...headers, ...again } });
  }
  if (reply.state === 'completed') {
    const why = keeps
      ? ', but its answer was not stored. Use a new key to send the request again.'
      : '. Answers are not stored: use a new key to send the request again.';
    const words = `${first} with this Idempotency-Key was completed and charged${why}`;
    return refuse('request_already_completed', words, { headers });
  }
  const { differs } = reply;
  const words = `${first} used this Idempotency-Key with another ${differs === undefined ? 'body' : `'${differs}'`}. Use a new key.`;
  const param = keeps ? (differs ?? 'Idempotency-Key') : undefined;
  return refuse('idempotency_key_reused', words, { param, headers });
}
