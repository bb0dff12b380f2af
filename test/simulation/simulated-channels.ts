/**
 * Channels whose traffic, times, failures and costs follow the day and the week, minute by minute, and a watch that
 * looks at them every five minutes, like the function `notify`. Seeded.
 */
import { buildBaseline, findMarks, listUsualHours } from '../../shared/relay/alerts/channel-marks.ts';
import { utcHour } from '../../shared/wire/iso-time.ts';
import type { Baseline } from '../../shared/relay/alerts/channel-marks.ts';
import type { DailyFigures } from '../../shared/billing/daily-figures.ts';
import type { ChannelMark, HourSum } from '../../shared/relay/ports/alerts.ts';
import { SeededRandom } from './seeded-random.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
export const beginMs = Date.parse('2026-11-02T00:00:00Z');

/** An event that happens to a channel from a minute on. */
export interface Incident {
  channel: string;
  fromMs: number;
  minutes: number;
  slowdown?: number;
  failing?: number;
  dearer?: number;
}

interface SimulatedModel {
  channel: string;
  model: string;
  /** Calls per minute at the busiest hour. */
  calls: number;
  medianMs: number;
  failing: number;
  yuanPerMillion: number;
}

export const simulatedModels: SimulatedModel[] = ['main', 'backup', 'cheap', 'fast', 'far', 'rare'].flatMap(
  (channel, at) =>
    ['large', 'small', 'think'].map((model, of) => ({
      channel,
      model,
      calls: [30, 8, 20, 12, 5, 1][at] ?? 1,
      medianMs: (of + 1) * (400 + 150 * at),
      failing: [0.002, 0.01, 0.03, 0.005, 0.02, 0.01][at] ?? 0.01,
      yuanPerMillion: 2 + 6 * of,
    })),
);

type Sums = Map<string, HourSum>;

export class SimulatedChannels {
  readonly #random: SeededRandom;
  readonly #incidents: readonly Incident[];
  readonly #sums = new Map<string, Sums>();
  readonly #baselines = new Map<string, { hour: string; baseline: Baseline }>();
  #hourly = new Map<string, { times: number; failures: number }>();

  constructor(seed: number, incidents: readonly Incident[] = []) {
    this.#random = new SeededRandom(seed);
    this.#incidents = incidents;
  }

  /** Returns each mark with the time of the look that found it first on a day. */
  run(days: number): (ChannelMark & { atMs: number })[] {
    const found = new Map<string, ChannelMark & { atMs: number }>();
    for (let nowMs = beginMs; nowMs < beginMs + days * dayMs; nowMs += minuteMs) {
      if (nowMs % (60 * minuteMs) === 0) this.#hourly = new Map();
      for (const one of simulatedModels) this.#addMinute(one, nowMs);
      if (nowMs % (5 * minuteMs) !== 0 || nowMs < beginMs + 7 * dayMs) continue;
      for (const mark of this.#look(nowMs)) {
        const cause = `${mark.channel} ${mark.mark} ${Math.floor(nowMs / dayMs)}`;
        if (!found.has(cause)) found.set(cause, { ...mark, atMs: nowMs });
      }
    }
    return [...found.values()];
  }

  #look(nowMs: number): ChannelMark[] {
    return [...this.#sums].flatMap(([channel, sums]) => {
      const hour = utcHour(nowMs);
      const read = (from: string, to: string): HourSum[] =>
        [...sums.values()].filter((sum) => sum.hour >= from && sum.hour <= to);
      const known = this.#baselines.get(channel);
      const baseline =
        known?.hour === hour
          ? known.baseline
          : buildBaseline(
              listUsualHours(nowMs).flatMap(([from, to]) => read(from, to)),
              nowMs,
            );
      this.#baselines.set(channel, { hour, baseline });
      return findMarks(channel, { recent: read(utcHour(nowMs - 60 * minuteMs), hour), baseline, nowMs });
    });
  }

  #addMinute(one: SimulatedModel, nowMs: number): void {
    const date = new Date(nowMs);
    const [day, hour] = [date.getUTCDay(), date.getUTCHours()];
    const isWeekend = day === 0 || day === 6;
    const busy =
      (0.15 + 0.85 * Math.max(0, Math.sin(((hour - 6) / 24) * 2 * Math.PI))) * (isWeekend ? 0.3 : 1);
    // Each Monday morning a customer's batch slows down all calls and hits a rate limit.
    const isBatch = day === 1 && hour >= 8 && hour < 11;
    const name = `${one.channel} ${one.model}`;
    const hourly = this.#hourly.get(name) ?? {
      times: Math.exp(0.15 * this.#normal()),
      failures: Math.exp(0.4 * this.#normal()),
    };
    this.#hourly.set(name, hourly);
    // Calls count when they end: those of the last minute.
    const incident = this.#incidents.find(
      ({ channel, fromMs, minutes }) =>
        channel === one.channel &&
        nowMs - minuteMs >= fromMs &&
        nowMs - minuteMs < fromMs + minutes * minuteMs,
    );
    const calls = this.#poisson(one.calls * busy * (isBatch ? 1.5 : 1));
    const failing =
      incident?.failing ?? Math.min(0.5, one.failing * hourly.failures * (1 + busy) * (isBatch ? 3 : 1));
    const median =
      one.medianMs * hourly.times * (1 + 0.6 * busy) * (isBatch ? 1.8 : 1) * (incident?.slowdown ?? 1);
    if (calls === 0) return;
    const failed = Math.min(calls, this.#poisson(calls * failing));
    const answered = calls - failed;
    const log = Math.round(100 * (answered * Math.log(median) + 0.8 * Math.sqrt(answered) * this.#normal()));
    const tokens = Math.round(calls * 2000 * Math.exp((this.#normal() * 0.9) / Math.sqrt(calls)));
    const slot = Math.floor(date.getUTCMinutes() / 10);
    const cost = one.yuanPerMillion * Math.exp(0.1 * this.#normal()) * (incident?.dearer ?? 1);
    const sums = this.#sums.get(one.channel) ?? new Map<string, HourSum>();
    this.#sums.set(one.channel, sums);
    const key = `${utcHour(nowMs)} ${one.model}`;
    const figures: DailyFigures = sums.get(key)?.figures ?? { counts: {}, amounts: {} };
    const counts: Record<string, number | undefined> = figures.counts;
    const added = {
      calls,
      bought_calls: calls,
      prompt_tokens: tokens,
      [`s${slot}_answered`]: answered,
      [`s${slot}_failed`]: failed,
      [`s${slot}_log`]: log,
    };
    for (const [figure, count] of Object.entries(added)) counts[figure] = (counts[figure] ?? 0) + count;
    const bought = (figures.amounts.bought ?? 0n) + BigInt(Math.round(1000 * cost * tokens));
    sums.set(key, {
      hour: utcHour(nowMs),
      model: one.model,
      figures: { counts: figures.counts, amounts: { bought } },
    });
    if (date.getUTCMinutes() > 0) return;
    const oldest = utcHour(nowMs - 8 * dayMs);
    for (const [old, { hour: at }] of sums) {
      if (at >= oldest) break;
      sums.delete(old);
    }
  }

  #normal(): number {
    const [a, b] = [Math.max(1e-12, this.#random.next()), this.#random.next()];
    return Math.sqrt(-2 * Math.log(a)) * Math.cos(2 * Math.PI * b);
  }

  #poisson(mean: number): number {
    if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * this.#normal()));
    const limit = Math.exp(-mean);
    let count = 0;
    for (let product = this.#random.next(); product > limit; product *= this.#random.next()) count += 1;
    return count;
  }
}
