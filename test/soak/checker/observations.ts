/**
 * The observations of a soak, as HTTP exchanges and table rows only. The checker judges by these and by docs/billing.md
 * (test/oracle); it imports nothing of the product.
 */
import type { ChargeText, Tokens } from '../../oracle/price-list.ts';

export type Row = Record<string, unknown>;

/**
 * How a call ended for its client.
 * - `whole`: it reports success.
 * - `error`: a refusal, or an error inside the answer.
 * - `cut`: the connection broke.
 * - `silent`: the HTTP answer ended normally, but contained neither success nor an error.
 * - `left`: the client hung up.
 */
export type CallEnd = 'whole' | 'error' | 'cut' | 'silent' | 'left';

export interface CallSeen {
  number: number;
  account: string;
  /** As in ledger rows: the first 12 digits of the hash. */
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
  /** The client stopped reading for some time. */
  stalled?: boolean;
  error?: { code?: string | undefined; type?: string | undefined; message?: string | undefined } | undefined;
  retryAfterSeconds?: number | undefined;
  /** The required status for an invalid request. */
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
  /** The part of the answer's text that it wrote. */
  text: string;
  /** Number of words, if `text` is only the start of the answer. */
  words?: number | undefined;
  /** The answer ended with its end marker. */
  whole: boolean;
  /** Reported counts if plausible, or undefined. */
  reported?: Tokens | undefined;
  retryAfterSeconds?: number | undefined;
}

/** A model's price since its row was written. */
export interface PriceVersion extends ChargeText {
  model: string;
  writtenMs: number;
}

/** A fault of the whole stack. */
export interface Disturbance {
  kind: string;
  fromMs: number;
  /** For a wrong clock: until its process ended. */
  untilMs: number;
  /** The function that the process ran. */
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

/** A log line of a close that failed or was late; an audit writes it again. */
export interface Loss {
  atMs: number;
  message: string;
  line: string;
}

/** An open entry of `quotas`, over all reads. */
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
  /** Granted yuan, by account. */
  granted: ReadonlyMap<string, number>;
  tables: TablesSeen;
  /** How often each kind of fault was injected. */
  injected: ReadonlyMap<string, number>;
  /** The required count of each kind. */
  quota: number;
}

/** A violation that the checker found. */
export interface Finding {
  rule: string;
  what: string;
}

/** Maximum error of the processes' clocks. */
export const skewMaxMs = 120_000;

export const overlaps = (
  { fromMs, untilMs }: Pick<Disturbance, 'fromMs' | 'untilMs'>,
  from: number,
  until: number,
): boolean => fromMs <= until && untilMs >= from;

/** Finds the faults during a call. */
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
