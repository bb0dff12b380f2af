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
  /** Aborted when the client leaves. */
  signal?: AbortSignal;
  /** The answering environment has no faults. */
  isSafe?: boolean;
}

export type Answered = Pick<RelayResponse, 'status' | 'headers' | 'body'>;
export type Ask = (asked: Asked) => Promise<Answered>;

interface ClientParts {
  clock: Clock;
  random: SeededRandom;
  ask: Ask;
  /** The error of a broken connection. Default: the relay's own. */
  isCut?: (error: unknown) => boolean;
  /** How long it keeps asking for a missing response. */
  absentMsMax: number;
  /** Reads each answer to its end. */
  patient?: boolean;
}

/** How long a client waits for headers, or for the next heartbeat. */
const silentMsMax = 65_000;

/** A client that is disconnected repeatedly, and resumes after the last event that it saw. */
export class SeededClient {
  readonly #parts: ClientParts;
  readonly events: string[] = [];
  cuts = 0;
  /** The creation got no answer or was rejected. */
  refused = false;
  /** The creation was rejected with an answer. */
  denied = false;
  /** The response does not exist. */
  gone = false;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /** Creates a response and reads its events. Returns its id, or undefined if it was rejected or got no answer. */
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

  /** Reads until the end, or until the client leaves. */
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

  /** Whether the error is a broken connection; any other error is a bug of the relay. */
  #cut(error: unknown): undefined {
    const { isCut = (thrown): boolean => thrown instanceof AnswerCut } = this.#parts;
    if (!isCut(error)) throw error;
  }

  /** Undefined if nothing arrived in time. */
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
