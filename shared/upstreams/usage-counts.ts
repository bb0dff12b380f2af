/**
 * One reading of all vendors' token counts. A dialect names the fields; here they are merged over the events of an answer
 * and brought to one meaning. Must never take an unknown count for zero, nor decide whether a count is plausible.
 */
import type { ReportedUsage } from '../wire/chat-response.ts';

/** The counts of one usage object, as they came: numbers, text, null or nothing. */
export interface VendorCounts {
  input?: unknown;
  output?: unknown;
  total?: unknown;
  reasoning?: unknown;
  /** Read from the vendor's cache. */
  cached?: unknown;
  /** Written to it, for any time. */
  written?: unknown;
  /** Written for the usual time, where the vendor counts the times apart. */
  writtenForMinutes?: unknown;
  writtenForHour?: unknown;
  /**
   * Whether `input` leaves out what was read and written. `unsure`: the counts themselves show it, since parts are
   * never larger than their whole. Absent: they are in it.
   */
  cacheIsApart?: boolean | 'unsure';
}

type Name = Exclude<keyof VendorCounts, 'cacheIsApart'>;
const names: readonly Name[] = [
  'input',
  'output',
  'total',
  'reasoning',
  'cached',
  'written',
  'writtenForMinutes',
  'writtenForHour',
];

/** The counts of one answer, which may come in several events. */
export class UsageCounts {
  readonly #largest: Partial<Record<Name, number>> = {};
  #cacheIsApart: VendorCounts['cacheIsApart'] = false;

  /** The larger of each count is kept: vendors repeat counts in part, as zeros, or grown. Undefined is ignored. */
  push(counts: VendorCounts | undefined): void {
    if (!counts) return;
    this.#cacheIsApart = counts.cacheIsApart || this.#cacheIsApart;
    for (const name of names) {
      const count = countOf(counts[name]);
      if (count !== undefined) this.#largest[name] = Math.max(this.#largest[name] ?? count, count);
    }
  }

  /** Undefined: neither input nor output is known. */
  get reported(): ReportedUsage | undefined {
    const { total, reasoning, cached, writtenForMinutes = 0, writtenForHour } = this.#largest;
    const apart = writtenForMinutes + (writtenForHour ?? 0);
    const written = apart > 0 ? Math.max(this.#largest.written ?? 0, apart) : this.#largest.written;
    // A part below zero is no count, and must not make the input smaller.
    const input = this.#input(Math.max(cached ?? 0, 0) + Math.max(written ?? 0, 0));
    const output = this.#output(input);
    if (input === undefined && output === undefined) return undefined;
    return {
      input: input ?? (total !== undefined && total >= Number(output) ? total - Number(output) : undefined),
      output,
      cached,
      written,
      writtenForHour,
      reasoning,
    };
  }

  #input(cache: number): number | undefined {
    const { input, output = 0, total } = this.#largest;
    if (input === undefined) return undefined;
    const isApart =
      this.#cacheIsApart === 'unsure'
        ? cache > input || (cache > 0 && total === input + cache + output)
        : this.#cacheIsApart;
    return isApart ? input + cache : input;
  }

  /**
   * What a total has beyond input and output is output: thinking that the vendor counts apart. Without a total, reasoning
   * that is larger than the output is not in it.
   */
  #output(input: number | undefined): number | undefined {
    const { output, total, reasoning = 0 } = this.#largest;
    if (input !== undefined && input >= 0 && total !== undefined && total >= input + (output ?? 0))
      return total - input;
    if (output === undefined || total !== undefined || reasoning <= output) return output;
    return output + reasoning;
  }
}

/** Digits as text are a count too: JSON writers of 64-bit integers send them. -1: not a number, which no count can be. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number') return undefined;
  return Number.isNaN(count) ? -1 : Math.round(count);
}
