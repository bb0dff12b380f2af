/**
 * Faults of AWS's JSON services, as rules that a script adds and takes away: which calls they are for, how many of them,
 * and for how long. The same seed and the same order of calls give the same faults.
 */

/**
 * What happens to a call.
 * - `throttle`: refused with `error`, by default the service's usual one; not passed on.
 * - `unprocessed`: a BatchGetItem is answered without a single item, all of its keys unprocessed; not passed on.
 * - `error`: 500; not passed on.
 * - `hang_up`: the connection ends without a reply; not passed on. The client cannot know that.
 * - `lost_reply`: the call is applied, then the connection ends without a reply.
 * - `slow`: the call waits for `delayMs` and is then applied, also when the client has gone by then.
 * - `late_reply`: the call is applied at once, its reply waits for `delayMs`.
 */
export type Fault =
  | { kind: 'throttle'; error?: string }
  | { kind: 'slow' | 'late_reply'; delayMs: number }
  | { kind: 'unprocessed' | 'error' | 'hang_up' | 'lost_reply' };

export type FaultKind = Fault['kind'];

export type FaultService = 'dynamodb' | 'streams' | 'ssm' | 'secretsmanager';

export interface FaultRule {
  fault: Fault;
  /** Absent: all. */
  services?: FaultService[];
  /** `UpdateItem`, `GetSecretValue` ...; absent: all. */
  operations?: string[];
  /** The end of a table's name: `quotas` is every stack's; a secret's name for the secret stores. Absent: all. */
  tables?: string[];
  /** The part of the calls that it strikes, 0 to 1. Absent: all. */
  share?: number;
  /** Milliseconds for which it strikes, from when it is added. Absent: until it is removed. */
  forMs?: number;
  /** How many calls it strikes. Absent: without a bound. */
  times?: number;
}

/** A call as far as rules look at it. */
export interface FaultedCall {
  service: FaultService;
  operation: string;
  /** Tables that the call names, or the one secret. */
  tables: string[];
}

interface ActiveRule {
  rule: FaultRule;
  untilMs: number;
  left: number;
}

export interface FaultCounts {
  /** Calls that arrived, by `<service>.<operation>`. */
  calls: Record<string, number>;
  /** Faults that were done, by kind. */
  faults: Partial<Record<FaultKind | 'refused_connection', number>>;
  /** The same by `<kind> <service>.<operation>`. */
  faultsByOperation: Record<string, number>;
}

export class FaultRules {
  readonly counts: FaultCounts = { calls: {}, faults: {}, faultsByOperation: {} };
  readonly #rules = new Map<number, ActiveRule>();
  readonly #random: () => number;
  #lastId = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** @returns the id to remove it by */
  add(rule: FaultRule): number {
    const { forMs = Infinity, times = Infinity } = rule;
    this.#lastId += 1;
    this.#rules.set(this.#lastId, { rule, untilMs: performance.now() + forMs, left: times });
    return this.#lastId;
  }

  remove(id: number): void {
    this.#rules.delete(id);
  }

  clear(): void {
    this.#rules.clear();
  }

  /** Counts the call, and the fault of the first rule that strikes it. */
  faultOf(call: FaultedCall): Fault | undefined {
    const name = `${call.service}.${call.operation}`;
    this.counts.calls[name] = (this.counts.calls[name] ?? 0) + 1;
    for (const [id, active] of this.#rules) {
      if (active.left <= 0 || performance.now() >= active.untilMs) {
        this.#rules.delete(id);
        continue;
      }
      if (!isFor(active.rule, call) || this.#random() >= (active.rule.share ?? 1)) continue;
      active.left -= 1;
      const { fault } = active.rule;
      this.counts.faults[fault.kind] = (this.counts.faults[fault.kind] ?? 0) + 1;
      const named = `${fault.kind} ${name}`;
      this.counts.faultsByOperation[named] = (this.counts.faultsByOperation[named] ?? 0) + 1;
      return fault;
    }
    return undefined;
  }

  countRefusedConnection(): void {
    this.counts.faults.refused_connection = (this.counts.faults.refused_connection ?? 0) + 1;
  }
}

function isFor({ fault, services, operations, tables }: FaultRule, call: FaultedCall): boolean {
  if (fault.kind === 'unprocessed' && call.operation !== 'BatchGetItem') return false;
  if (services && !services.includes(call.service)) return false;
  if (operations && !operations.includes(call.operation)) return false;
  return !tables || call.tables.some((table) => tables.some((end) => isNamed(table, end)));
}

const isNamed = (table: string, end: string): boolean => table === end || table.endsWith(`-${end}`);

/** mulberry32. */
function seededRandom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
