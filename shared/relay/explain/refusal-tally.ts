/** Counts what calls of accounts ended with, by hour and code, until it is written. Bounded in every direction. */
import type { HourOfRefusals } from '../ports/stores/refusal-counts.ts';

/** Accounts that failed within a minute in one environment. What others come to is not counted. */
const accountsMax = 200;
const writePauseMs = 60_000;
/** Of one write to the next call: the others are written after the next one. */
const writesMax = 10;

interface Kept {
  writtenMs: number;
  hours: Map<string, Record<string, number>>;
}

export class RefusalTally {
  readonly #accounts = new Map<string, Kept>();
  #open = 0;

  /** Whether anything is not written yet. */
  get isOpen(): boolean {
    return this.#open > 0;
  }

  /** `code` is one of a fixed set. */
  count(account: string, code: string, nowMs: number): void {
    const kept = this.#accounts.get(account) ?? this.#added(account, nowMs);
    if (!kept) return;
    const hour = new Date(nowMs).toISOString().slice(0, 13);
    const counts = kept.hours.get(hour) ?? {};
    if (!kept.hours.has(hour)) this.#open += 1;
    kept.hours.set(hour, { ...counts, [code]: (counts[code] ?? 0) + 1 });
  }

  /** Takes what may be written now: of an account once a minute. */
  due(nowMs: number): HourOfRefusals[] {
    const due: HourOfRefusals[] = [];
    for (const [account, kept] of this.#accounts) {
      if (kept.hours.size === 0 || nowMs - kept.writtenMs < writePauseMs) continue;
      for (const [hour, counts] of kept.hours) {
        due.push({ account, hour, counts });
        kept.hours.delete(hour);
        this.#open -= 1;
        kept.writtenMs = nowMs;
        if (due.length === writesMax) return due;
      }
    }
    return due;
  }

  #added(account: string, nowMs: number): Kept | undefined {
    if (this.#accounts.size >= accountsMax)
      for (const [known, { hours, writtenMs }] of this.#accounts)
        if (hours.size === 0 && nowMs - writtenMs >= writePauseMs) this.#accounts.delete(known);
    if (this.#accounts.size >= accountsMax) return undefined;
    const kept: Kept = { writtenMs: -Infinity, hours: new Map() };
    this.#accounts.set(account, kept);
    return kept;
  }
}
