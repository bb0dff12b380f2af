/**
 * What a soak saw, in terms of HTTP and of tables alone. The checker decides by this and by docs/billing.md (test/oracle);
 * it imports nothing of the product.
 */
import type { ChargeText, Tokens } from '../../oracle/price-list.ts';

export type Row = Record<string, unknown>;

/**
 * How a call ended for its client.
 * - `whole`: it says success.
 * - `error`: a refusal, or an error inside the answer.
 * - `cut`: the connection broke.
 * - `silent`: the HTTP answer ended in order, with neither success nor an error in it.
 * - `left`: the client hung up.
 */
export type CallEnd = 'whole' | 'error' | 'cut' | 'silent' | 'left';

export interface CallSeen {
  number: number;
  account: string;
  /** As ledger rows have it: the first 12 digits of the hash. */
  key: string;
  model: string;
  /** The fault that was planned for it; `none`: an ordinary call. */
  fault: string;
  startedMs: number;
  endedMs: number;
  /** The client got the first piece of the answer. */
  firstContentMs?: number | undefined;
  requestId?: string | undefined;
  status?: number | undefined;
  end: CallEnd;
  text: string;
  /** The client has stopped reading for a while. */
  stalled?: boolean;
  error?: { code?: string | undefined; type?: string | undefined; message?: string | undefined } | undefined;
  retryAfterSeconds?: number | undefined;
  /** What a request that is wrong has to be answered with. */
  expectedStatus?: number | undefined;
}

/** One request that reached an upstream. */
export interface Attempt {
  call: number;
  channel: string;
  model: string;
  atMs: number;
  /** A name of a fault, or `answer`. */
  served: string;
  status: number;
  /** What it wrote of the answer's text. */
  text: string;
  /** Words of a text of which `text` is the beginning alone. */
  words?: number | undefined;
  /** The text has its end and says so. */
  whole: boolean;
  /** Counts that it reported and that can be true; undefined: none. */
  reported?: Tokens | undefined;
  retryAfterSeconds?: number | undefined;
}

/** A price of a model, from when its row was written. */
export interface PriceVersion extends ChargeText {
  model: string;
  writtenMs: number;
}

/** Something that happened to the stack as a whole. */
export interface Disturbance {
  kind: string;
  fromMs: number;
  /** Of a clock that is wrong: until its process was ended. */
  untilMs: number;
  /** The function whose process it was. */
  target?: string | undefined;
}

/** A process that ended. */
export interface Death {
  target: string;
  pid: number;
  atMs: number;
  /** The soak ended it. */
  planned: boolean;
}

/** A log line of a close that could not be written, or came late; an audit writes it again. */
export interface Loss {
  atMs: number;
  message: string;
  line: string;
}

/** An open entry of `quotas`, over all times that it was read. */
export interface Hold {
  id: string;
  account: string;
  /** Unix seconds. */
  leaseEnd: number;
  lastSeenMs: number;
}

export interface TablesSeen {
  quotas: Row[];
  ledger: Row[];
  daily: Row[];
}

export interface Observations {
  calls: CallSeen[];
  attempts: Attempt[];
  prices: PriceVersion[];
  disturbances: Disturbance[];
  deaths: Death[];
  losses: Loss[];
  holds: Hold[];
  /** Seconds that the sweeper waits beyond a lease. */
  sweepGraceSeconds: number;
  /** What was granted, in yuan, by account. */
  granted: ReadonlyMap<string, number>;
  tables: TablesSeen;
  /** How often each kind of fault was injected. */
  injected: ReadonlyMap<string, number>;
  /** How often each has to be. */
  quota: number;
}

/** What the checker does not accept. */
export interface Finding {
  rule: string;
  what: string;
}

/** How far clocks of processes may be off. */
export const skewMaxMs = 120_000;

export const overlaps = (
  { fromMs, untilMs }: Pick<Disturbance, 'fromMs' | 'untilMs'>,
  from: number,
  until: number,
): boolean => fromMs <= until && untilMs >= from;

/** Asks what happened while a call ran. */
export class Circumstances {
  readonly #seen: Observations;
  readonly #attempts = new Map<number, Attempt[]>();

  constructor(seen: Observations) {
    this.#seen = seen;
    for (const attempt of seen.attempts) {
      const list = this.#attempts.get(attempt.call);
      if (list) list.push(attempt);
      else this.#attempts.set(attempt.call, [attempt]);
    }
  }

  attemptsOf({ number }: Pick<CallSeen, 'number'>): Attempt[] {
    return this.#attempts.get(number) ?? [];
  }

  /** One of these kinds struck while the call ran, or `afterMs` after it. */
  struck({ startedMs, endedMs }: CallSeen, kinds: readonly string[], afterMs = 0): boolean {
    return this.#seen.disturbances.some(
      (each) => kinds.includes(each.kind) && overlaps(each, startedMs, endedMs + afterMs),
    );
  }
}
