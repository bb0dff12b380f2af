/**
 * Decides which channels fail more, are slower or cost more than at the same hours of the last seven days. Pure. With these bounds, six
 * channels give less than one false mark a week, and a tenfold slowdown is marked within ten minutes
 * (docs/decisions/0107-marks-of-channels.md, test/long/channel-marks.test.ts).
 */
import { slotMinutes, type DailyFigures } from '../../billing/daily-figures.ts';
import { convertToYuanNumber } from '../../billing/money.ts';
import { dayMs, hourMs, utcHour } from '../../wire/iso-time.ts';
import type { ChannelMark, HourSum } from '../ports/alerts.ts';

/** `log`: the sum of the logarithms of the times to first content. `priced`: calls with a known cost. */
const emptyTally = { answered: 0, failed: 0, log: 0, calls: 0, priced: 0, bought: 0, tokens: 0 };
type Tally = typeof emptyTally;

/**
 * By model; '' is the whole channel. `days`: all seven days; `weekAgo`: the same weekday of last week, for weekly patterns; `worst`: the
 * largest share of failures in one hour.
 */
export type Baseline = ReadonlyMap<string, { days: Tally; weekAgo: Tally; worst: number }>;

/** The hours to compare with: of each day the same hour, the one before and the one after it, as one range. */
export const listUsualHours = (nowMs: number): [from: string, to: string][] =>
  [1, 2, 3, 4, 5, 6, 7].map((days) => {
    const sameMs = nowMs - days * dayMs;
    return [utcHour(sameMs - hourMs), utcHour(sameMs + hourMs)];
  });

export function buildBaseline(usual: readonly HourSum[], nowMs: number): Baseline {
  const weekAgo = utcHour(nowMs - 7 * dayMs + hourMs);
  const groups = [['', [...usual]] as const, ...Map.groupBy(usual, ({ model }) => model)];
  return new Map(
    groups.map(([model, sums]) => {
      const byHour = [...Map.groupBy(sums, ({ hour }) => hour).values()].map(tallyHours);
      const known = byHour.filter(({ answered, failed }) => answered + failed >= attemptsOfHourMin);
      const worst = Math.max(0, ...known.map(shareOf));
      const old = sums.filter(({ hour }) => hour <= weekAgo);
      return [model, { days: tallyHours(sums), weekAgo: tallyHours(old), worst }];
    }),
  );
}

/** @param recent the hour of `nowMs` and the one before */
export function findMarks(
  channel: string,
  { recent, baseline, nowMs }: { recent: readonly HourSum[]; baseline: Baseline; nowMs: number },
): ChannelMark[] {
  const byModel = [...Map.groupBy(recent, ({ model }) => model)].map(([model, hours]) => {
    const { days = emptyTally, weekAgo = emptyTally } = baseline.get(model) ?? {};
    // The current slot alone shows a change first. A quiet channel needs the slot before it for enough attempts.
    const windows = [1, 2].map((count) => tallySlots(hours, nowMs, count));
    return { model, days, weekAgo, windows, hours: tallyHours(hours) };
  });
  const worstOf = (model: string): number => baseline.get(model)?.worst ?? 0;
  return [findFailing, findSlower, findCostlier].flatMap((find) => {
    // A mark of the whole channel is not repeated for its models.
    const whole = find(byModel, worstOf(''));
    if (whole) return [{ channel, ...whole }];
    return byModel.flatMap((one) => {
      const mark = find([one], worstOf(one.model));
      return mark ? [{ channel, model: one.model, ...mark }] : [];
    });
  });
}

/** `windows`: the shortest first. */
type ModelTallies = Record<'days' | 'weekAgo' | 'hours', Tally> & { windows: Tally[] };

type Finding = Pick<ChannelMark, 'mark' | 'now' | 'usual'>;

/** Shares of failures vary from hour to hour even if nothing is wrong: vendors limit rates, customers send bad requests. */
const failedShareMin = 0.15;
/** Higher, because with many models some model often has a bad hour. */
const failedShareOfModelMin = 0.35;
const failedRatioMin = 4;
const worstRatioMin = 2.5;
/** A larger share is always marked, so that an earlier outage at the same hour does not hide a new one. */
const failedShareAlwaysMarked = 0.7;
/** The usual share of a channel that is too new to have one. */
const failedShareUnknown = 0.05;
const attemptsMin = 50;
const attemptsOfHourMin = 20;

function findFailing(models: readonly ModelTallies[], worst: number): Finding | undefined {
  const days = addTallies(models.map((one) => one.days));
  const isKnown = days.answered + days.failed >= attemptsMin;
  const usual = isKnown ? shareOf(days) : failedShareUnknown;
  const recent = addTallies(models.flatMap(({ windows }) => windows.at(-1) ?? []));
  const now = shareOf(recent);
  const expected = usual * (recent.answered + recent.failed);
  const isChance = recent.failed < expected + 5 * Math.sqrt(expected) + 5;
  const isUsual =
    now < Math.min(Math.max(failedRatioMin * usual, worstRatioMin * worst), failedShareAlwaysMarked);
  const least = models.length === 1 ? failedShareOfModelMin : failedShareMin;
  return isChance || isUsual || now < least ? undefined : { mark: 'failing', now, usual };
}

const shareOf = ({ answered, failed }: Tally): number => failed / Math.max(1, answered + failed);

const slowerMin = 3;
const answeredMin = 8;
const weekAgoAnsweredMin = 10;
/** Logarithms of times deviate by less than 1, so the mean of n of them is off by 4 / sqrt(n) once in 30,000 times. */
const deviations = 4;

/** Compares each model with itself, so that a different mix of models does not make a channel slower. */
function findSlower(models: readonly ModelTallies[]): Finding | undefined {
  const known = models.filter(({ days }) => days.answered >= attemptsMin);
  // With less than one call a minute, a channel's slots hold too few answers, so the running hour and the one before decide.
  for (const at of [0, 1, 2]) {
    let [count, nowLog, usualLog] = [0, 0, 0];
    for (const { windows, hours, days, weekAgo } of known) {
      const { answered, log } = windows[at] ?? hours;
      const mean = days.log / days.answered;
      const ofWeek = weekAgo.answered < weekAgoAnsweredMin ? mean : weekAgo.log / weekAgo.answered;
      count += answered;
      nowLog += log;
      usualLog += answered * Math.max(mean, Math.min(ofWeek, mean + Math.log(slowerMin)));
    }
    const difference = (nowLog - usualLog) / count;
    if (count < answeredMin) continue;
    if (difference >= Math.max(Math.log(slowerMin), deviations / Math.sqrt(count)))
      return { mark: 'slower', now: Math.exp(nowLog / count), usual: Math.exp(usualLog / count) };
    if (at === 1) return undefined;
  }
  return undefined;
}

const pricedMin = 50;

/** Looks at the running hour and the one before: a price changes once, and is looked for by nobody within minutes. */
function findCostlier(models: readonly ModelTallies[]): Finding | undefined {
  let [priced, nowCost, usualCost, tokens] = [0, 0, 0, 0];
  for (const { hours, days } of models) {
    if (days.priced < pricedMin || days.priced < days.calls || hours.priced < hours.calls) continue;
    priced += hours.priced;
    nowCost += hours.bought;
    usualCost += (hours.tokens * days.bought) / Math.max(1, days.tokens);
    tokens += hours.tokens;
  }
  if (priced < pricedMin || usualCost === 0) return undefined;
  const isCostlier = nowCost / usualCost >= 1.3 + 5 / Math.sqrt(priced);
  const perMillion = (cost: number): number => (1e6 * cost) / tokens;
  return isCostlier
    ? { mark: 'costlier', now: perMillion(nowCost), usual: perMillion(usualCost) }
    : undefined;
}

// Sums. Slots count only attempts; costs are known by hour.

function addTallies(all: readonly Tally[]): Tally {
  const sum = { ...emptyTally };
  for (const each of all) for (const name of tallyNames) sum[name] += each[name];
  return sum;
}

const tallyNames = Object.keys(emptyTally) as (keyof Tally)[];

const tallyHours = (hours: readonly HourSum[]): Tally =>
  addTallies(
    hours.flatMap(({ figures }) => {
      const { calls = 0, bought_calls: priced = 0, prompt_tokens: input = 0, ...more } = figures.counts;
      const bought = convertToYuanNumber(figures.amounts.bought ?? 0n);
      const money = { ...emptyTally, calls, priced, bought, tokens: input + (more.completion_tokens ?? 0) };
      return [money, ...[0, 1, 2, 3, 4, 5].map((slot) => readSlot(figures, slot))];
    }),
  );

function tallySlots(hours: readonly HourSum[], nowMs: number, count: number): Tally {
  const slots = Array.from({ length: count }, (_, back) => nowMs - back * slotMinutes * 60_000);
  return addTallies(
    slots.flatMap((ms) => {
      const slot = Math.floor(new Date(ms).getUTCMinutes() / slotMinutes);
      const own = hours.filter(({ hour }) => hour === utcHour(ms));
      return own.map(({ figures }) => readSlot(figures, slot));
    }),
  );
}

const readSlot = ({ counts }: DailyFigures, slot: number): Tally => ({
  ...emptyTally,
  answered: counts[`s${slot}_answered`] ?? 0,
  failed: counts[`s${slot}_failed`] ?? 0,
  log: (counts[`s${slot}_log`] ?? 0) / 100,
});
