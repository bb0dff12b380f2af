/**
 * Handles the header Idempotency-Key: one claim per API key and header value. A repeat of a key that may store gets the first
 * result; of others no answer is ever kept.
 */
import type { ClaimReply, IdempotencyClaim } from '../ports/runtime-stores.ts';
import { type Admit, type StoredResult, ResponseTooLarge } from '../ports/stored.ts';
import type { ChatCall } from './call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
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

interface KeyedRequest {
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

type Claimed = { held: HeldKey } | { first: StoredResult };

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

// The answer of a request with an Idempotency-Key as it is written, and its keeping for repeats. Must never hold up the end
// of a call for long, nor fail it: without a kept result a repeat is refused.

/** Of a longer answer (UTF-16 code units) repeats are refused: it would take the memory of other calls. */
const lengthMax = 4 * 1024 * 1024;
const keptSeconds = 24 * 60 * 60;
/** How long the store is waited for, and where the call's own time is up. */
const waitMsMax = 2_000;

/** The head of an answer. */
interface Answered extends Pick<StoredResult, 'status' | 'headers'> {
  /**
   * What the client gets: a text, or what is `written` by and by, or the `events` of the background response that the
   * request created.
   */
  body: { text: string } | 'written' | 'events';
}

class FirstResult {
  readonly #ports: Pick<ChatPorts, 'clock' | 'log' | 'stored'>;
  readonly #call: Pick<ChatCall, 'identity' | 'key' | 'signal'>;
  readonly #isStored: boolean;
  readonly #head = Promise.withResolvers<Answered>();
  #texts: string[] = [];
  #length = 0;

  /** @param isStored the answer is a stored response, too: when that is removed, the result goes with it */
  constructor(
    ports: Pick<ChatPorts, 'clock' | 'log' | 'stored'>,
    call: Pick<ChatCall, 'identity' | 'key' | 'signal'>,
    isStored: boolean,
  ) {
    this.#ports = ports;
    this.#call = call;
    this.#isStored = isStored;
  }

  wrote(text: string): void {
    this.#length += text.length;
    if (this.mayBeKept) this.#texts.push(text);
    else this.#texts = [];
  }

  /** Whether the answer, as far as it is written, is short enough to be kept. */
  get mayBeKept(): boolean {
    return this.#length <= lengthMax;
  }

  answered(head: Answered): void {
    this.#head.resolve(head);
  }

  /** Resolves when the result can be read, or will not be. Never rejects. */
  async keep(): Promise<void> {
    const { clock, log } = this.#ports;
    const { identity, key, signal } = this.#call;
    const waiting = new AbortController();
    const late = clock
      .sleep(signal.aborted ? hurriedMsMax : waitMsMax, waiting.signal)
      .then(() => 'write_late');
    const why = await Promise.race([this.#put(), late]);
    waiting.abort('over');
    if (why !== undefined)
      log.event('result_not_kept', { request_id: identity.requestId, account: key.account, why });
  }

  /** Undefined: it is kept. Never rejects. */
  async #put(): Promise<string | undefined> {
    const { log, stored } = this.#ports;
    const { identity, key } = this.#call;
    if (!this.mayBeKept) return 'too_large';
    const { status, headers, body } = await this.#head.promise;
    const { requestId, created } = identity;
    const text = body === 'written' ? this.#texts.join('') : body === 'events' ? undefined : body.text;
    const of = { account: key.account, key: requestId };
    try {
      await stored.results.put(of, { requestId, status, headers, body: text }, created + keptSeconds);
      return this.#isStored && (await this.#wasRemoved()) ? 'removed' : undefined;
    } catch (error) {
      if (error instanceof ResponseTooLarge) return 'too_large';
      log.fault(requestId, error);
      return 'write_failed';
    }
  }

  /** The client may have removed its response between the end of the answer and this result, which its removal missed. */
  async #wasRemoved(): Promise<boolean> {
    const { responses } = this.#ports.stored;
    const { identity, key } = this.#call;
    const id = `resp-${identity.requestId}`;
    if ((await responses.heads(key.account, [id])).has(id)) return false;
    await responses.remove(key.account, id);
    return true;
  }
}
