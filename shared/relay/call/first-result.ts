/**
 * The answer of a request with an Idempotency-Key as it is written, and its keeping for repeats. Must never hold up the end
 * of a call for long, nor fail it: without a kept result a repeat is refused.
 */
import { ResponseTooLarge } from '../ports/stored/response-store.ts';
import type { StoredResult } from '../ports/stored/result-store.ts';
import type { ChatCall } from './chat-call.ts';
import type { ChatPorts } from './chat-ports.ts';

/** Of a longer answer (UTF-16 code units) repeats are refused: it would take the memory of other calls. */
const lengthMax = 4 * 1024 * 1024;
const keptSeconds = 24 * 60 * 60;
/** How long the store is waited for, and where the call's own time is up. */
const waitMsMax = 2_000;
const hurriedMsMax = 500;

/** The head of an answer. */
export interface Answered extends Pick<StoredResult, 'status' | 'headers'> {
  /**
   * What the client gets: a text, or what is `written` by and by, or the `events` of the background response that the
   * request created.
   */
  body: { text: string } | 'written' | 'events';
}

export class FirstResult {
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
