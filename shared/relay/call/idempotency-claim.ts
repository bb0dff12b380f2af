/**
 * Handles the header Idempotency-Key: one claim per API key and header value. A repeat of a key that may store gets the first
 * result; of others no answer is ever kept.
 */
import type { ClaimReply, IdempotencyClaim } from '../ports/stores/idempotency-store.ts';
import type { Admit } from '../ports/stored/response-store.ts';
import type { StoredResult } from '../ports/stored/result-store.ts';
import type { ChatCall } from './chat-call.ts';
import type { ChatPorts } from './chat-ports.ts';
import { FirstResult, type Answered } from './first-result.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

/** How long a killed invocation keeps its claim after its deadline, if it has no reservation that is swept. */
const graceMs = 120_000;
/** When a run has ended in any case: it begins a minute after its acceptance, and no function runs for longer. */
const runEndsMsMax = 16 * 60_000;
const keyPattern = /^[\x20-\x7e]{1,255}$/;
/**
 * How long the end of a claim is tried, and where the call's own time is up. Without it the first request
 * counts as running, until the ledger says how it ended.
 */
const finishMsMax = 2_000;
const readMsMax = 2_000;
const hurriedMsMax = 500;
/** The SDKs wait so long before they repeat a request whose first one still runs. */
const againSeconds = '5';

/** A request's claim on its Idempotency-Key. */
export interface HeldKey {
  /** The answer will be kept, if it is charged: its end is to be seen when a repeat would get it. */
  readonly keeps: boolean;
  /** A text of the answer, in order, whether or not the client still takes it. */
  wrote(text: string): void;
  /** The head of the answer, as the client gets it. */
  answered(head: Answered): void;
  /** Keeps the answer for repeats, before it is charged. `free`: it is charged nothing, or is not whole. Never rejects. */
  keep(free: boolean): Promise<void>;
  /** Ends the claim. `free`: nothing was charged, so the key may be used again. Never rejects. */
  finish(free: boolean): Promise<void>;
}

interface ClaimPorts extends Pick<ChatPorts, 'idempotency' | 'clock' | 'log' | 'stored'> {
  /** Repeats a write until its outcome is known or the time is up. */
  repeated<T>(budgetMs: number, write: () => Promise<T>): Promise<T>;
}

export interface KeyedRequest {
  header: string;
  body: unknown;
  /** The API key may store, so repeats are answered. */
  keeps: boolean;
  /** The answer is stored as a response, too. */
  isStored: boolean;
  /** Reads the result of the first, within what a request may read of what is stored. */
  firstOf: <T>(read: (admit: Admit) => Promise<T>) => Promise<T>;
  /** Of a background call: the result of one that was accepted before, by the response that it stored. */
  accepted?: ((first: Taken) => Promise<StoredResult | undefined>) | undefined;
}

/** The first request, with the same body. */
export type Taken = Extract<ClaimReply, { state: 'running' | 'completed' }>;

export type Claimed = { held: HeldKey } | { first: StoredResult };

/**
 * Claims the request's Idempotency-Key. Returns the first result where it is kept. Throws when the key is taken otherwise:
 * a repeated request is then refused, free of charge.
 */
export async function claimIdempotencyKey(
  ports: ClaimPorts,
  call: ChatCall,
  { header, body, accepted, firstOf, ...kept }: KeyedRequest,
): Promise<Claimed> {
  if (!keyPattern.test(header)) throw new InvalidRequest('invalid_idempotency_key', null, malformed);
  const { requestId } = call.identity;
  const untilMs = Math.max(call.deadlineMs, accepted ? call.startedMs + runEndsMsMax : 0) + graceMs;
  const { hash: owner, account } = call.key;
  const claim = {
    owner,
    account,
    idempotencyKey: header,
    requestId,
    // The same words at another endpoint are another request.
    body: [call.endpoint, body],
    untilMs,
    namesMembers: kept.keeps,
  };
  const reply = await ports.idempotency.claim(claim);
  if (reply.state === 'claimed') return { held: heldKey(ports, call, { claim, ...kept }) };
  if (!kept.keeps) throw taken(reply.state, reply.requestId);
  // The first is running until its charge is written, and its client has the end of its answer before.
  if (reply.state !== 'other_body') {
    const kept = await firstOf((admit) =>
      ports.repeated(readMsMax, () => ports.stored.results.read({ account, key: reply.requestId }, admit)),
    );
    const first = kept ?? (await accepted?.(reply));
    if (first) return { first };
  }
  throw takenBy(reply);
}

interface OpenClaim extends Pick<KeyedRequest, 'keeps' | 'isStored'> {
  claim: IdempotencyClaim;
}

function heldKey(ports: ClaimPorts, call: ChatCall, { claim, keeps, isStored }: OpenClaim): HeldKey {
  const { idempotency, log } = ports;
  const result = keeps ? new FirstResult(ports, call, isStored) : undefined;
  return {
    get keeps() {
      return result?.mayBeKept === true;
    },
    wrote: (text) => result?.wrote(text),
    answered: (head) => result?.answered(head),
    keep: async (free) => (free ? undefined : result?.keep()),
    finish: (free) =>
      ports
        .repeated(call.signal.aborted ? hurriedMsMax : finishMsMax, () => idempotency.finish(claim, free))
        .catch((error: unknown) => log.fault(call.identity.requestId, error)),
  };
}

const malformed = 'The header Idempotency-Key must be 1 to 255 printable ASCII characters.';

/** What became of the first request, as the end of a sentence that begins with its id. */
const firsts = {
  running: ['request_in_progress', 'with this Idempotency-Key is still running.'],
  other_body: ['idempotency_key_reused', 'used this Idempotency-Key with another body. Use a new key.'],
  completed: [
    'request_already_completed',
    'with this Idempotency-Key was completed and charged. Answers are not stored: use a new key to ask again.',
  ],
} as const;

function taken(state: keyof typeof firsts, firstId: string): Refusal {
  const [code, words] = firsts[state];
  const headers = { 'x-should-retry': 'false', ...(state === 'running' && { 'retry-after': againSeconds }) };
  return refuse(code, `The request ${firstId} ${words}`, { headers });
}

/** Of a key that may store: whoever comes again while the first runs gets its result. */
function takenBy(reply: Exclude<ClaimReply, { state: 'claimed' }>): Refusal {
  const first = `The request ${reply.requestId}`;
  const headers = { 'x-should-retry': 'false' };
  if (reply.state === 'running')
    return refuse(
      'request_in_progress',
      `${first} with this Idempotency-Key is still running. Its answer is there for repeats once it is whole.`,
      { headers: { 'retry-after': againSeconds } },
    );
  if (reply.state === 'completed')
    return refuse(
      'request_already_completed',
      `${first} with this Idempotency-Key was completed and charged, and its answer is not kept. Use a new key to ask again.`,
      { headers },
    );
  const what = reply.differs === undefined ? 'body' : `'${reply.differs}'`;
  return refuse(
    'idempotency_key_reused',
    `${first} used this Idempotency-Key with another ${what}. Use a new key.`,
    { param: reply.differs ?? 'Idempotency-Key', headers },
  );
}
