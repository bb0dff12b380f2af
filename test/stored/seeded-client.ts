import { AnswerCut, type RelayResponse } from '../../shared/relay/http/http.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';

export interface Asked {
  method: string;
  /** Below `/v1/responses`. */
  path: string;
  /** Another endpoint than `/v1/responses`. */
  at?: 'responses' | 'chat/completions';
  body?: unknown;
  key?: string;
  headers?: Record<string, string>;
  /** Aborted: the client goes away. */
  signal?: AbortSignal;
  /** Nothing befalls the environment that answers. */
  isSafe?: boolean;
}

export type Answered = Pick<RelayResponse, 'status' | 'headers' | 'body'>;
export type Ask = (asked: Asked) => Promise<Answered>;

interface ClientParts {
  clock: Clock;
  random: SeededRandom;
  ask: Ask;
  /** The connection broke. Default: as the relay breaks it. */
  isCut?: (error: unknown) => boolean;
  /** How long it asks for a response that is not there. */
  absentMsMax: number;
  /** It reads each answer to its end. */
  patient?: boolean;
}

/** How long a client waits for the head of an answer, or for a sign of life after it. */
const silentMsMax = 65_000;

/** A client that is cut off again and again, and comes back with what it saw last. */
export class SeededClient {
  readonly #parts: ClientParts;
  readonly events: string[] = [];
  cuts = 0;
  /** The creation got no answer, or was refused. */
  refused = false;
  /** The creation was refused with an answer. */
  denied = false;
  /** There is no such response. */
  gone = false;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /** Creates a response, and reads what comes. Its id; undefined: it was refused, or there was no answer. */
  async create(body: unknown, known: (id: string) => void = () => {}): Promise<string | undefined> {
    const response = await this.#within(this.#parts.ask({ method: 'POST', path: '', body }));
    this.refused = response?.status !== 200;
    this.denied = response !== undefined && this.refused && response.status < 500;
    if (!response || this.refused) return undefined;
    const id = `resp-${response.headers['x-request-id']}`;
    known(id);
    await this.#read(response);
    return id;
  }

  /** Follows a response to its end. */
  async follow(id: string): Promise<void> {
    const { clock, random, ask, absentMsMax } = this.#parts;
    const untilMs = clock.now() + absentMsMax;
    while (!this.#isWhole) {
      if (!this.#parts.patient) await clock.sleep(random.integer(0, 5_000));
      const after = this.events.length === 0 ? '' : `&starting_after=${this.events.length - 1}`;
      const response = await this.#within(ask({ method: 'GET', path: `/${id}?stream=true${after}` }));
      if (response?.status === 200) await this.#read(response);
      else if (response?.status === 404) {
        this.gone = this.events.length > 0 || this.#parts.patient === true || clock.now() >= untilMs;
        if (this.gone) return;
        await clock.sleep(1_000);
      } else if (response && response.status < 500)
        throw new Error(
          `a client with ${this.events.length} events was refused: ${typeof response.body === 'string' ? response.body : response.status}`,
        );
    }
  }

  get #isWhole(): boolean {
    return /^event: response\.(completed|failed)\n/.test(this.events.at(-1) ?? '');
  }

  /** Reads until the end, or until the client goes away. */
  async #read(response: Answered): Promise<void> {
    const { clock, random, patient } = this.#parts;
    const leaveAfter = !patient && random.chance(0.6) ? random.integer(0, 10) : Infinity;
    const slowMs = !patient && random.chance(0.1) ? random.integer(1, 1_000) : 0;
    const body = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
    let waiting = '';
    let seen = 0;
    for (;;) {
      const next = await this.#within(
        seen >= leaveAfter
          ? Promise.resolve(undefined)
          : body.next().catch((error: unknown) => this.#cut(error)),
      );
      if (next === undefined || next.done === true) break;
      waiting += next.value;
      for (let end = waiting.indexOf('\n\n'); end >= 0; end = waiting.indexOf('\n\n')) {
        const event = waiting.slice(0, end + 2);
        waiting = waiting.slice(end + 2);
        if (event.startsWith(':') || seen >= leaveAfter) continue;
        this.events.push(event);
        seen += 1;
      }
      if (slowMs > 0) await clock.sleep(slowMs);
    }
    if (this.#isWhole) return;
    this.cuts += 1;
    void body.return?.();
  }

  /** A connection that breaks; anything else is a fault of the relay. */
  #cut(error: unknown): undefined {
    const { isCut = (thrown): boolean => thrown instanceof AnswerCut } = this.#parts;
    if (!isCut(error)) throw error;
  }

  /** Undefined: nothing came in time. */
  async #within<T>(work: Promise<T>): Promise<T | undefined> {
    const stop = new AbortController();
    const result = await Promise.race([
      work,
      this.#parts.clock.sleep(silentMsMax, stop.signal).then(() => undefined),
    ]);
    stop.abort();
    return result;
  }
}
