import type { PlanEntry, AccountPlan } from '../wire/public-api.ts';

/** The plan that an account holds. Times in epoch milliseconds. */
export interface HeldPlan {
  level: number;
  since: number;
  until?: number | undefined;
}

/** The counter of a plan entry for the current month. Each call on the plan is counted on one slot. */
export interface PlanSlot {
  itemId: string;
  name: string;
  /**
   * `<item>@<first day of the month>`. The level is not part of it, so counts survive renewals and changes of
   * level.
   */
  key: string;
  /** The counter of two months ago. It is no longer read, so the reserve write removes it. */
  staleKey: string;
  /** Calls per month; null: unlimited, but still counted. */
  limit: number | null;
  resetsAtMs: number;
}

/** Whether the plan is valid at `nowMs`. */
export const isHeld = (held: HeldPlan | undefined, nowMs: number): held is HeldPlan =>
  held !== undefined && held.since <= nowMs && (held.until === undefined || nowMs < held.until);

export interface SlotQuery {
  plans: readonly PlanEntry[];
  held: HeldPlan | undefined;
  nowMs: number;
  /** Only slots that cover this model; absent: all slots. */
  model?: string | undefined;
}

/** The slots of the held plan, in the order of the items in its row. */
export function planSlots({ plans, held, nowMs, model }: SlotQuery): PlanSlot[] {
  if (!isHeld(held, nowMs)) return [];
  const plan = plans.find(({ level }) => level === held.level);
  const period = planPeriod(held.since, nowMs);
  const stale = previousPeriod(held.since, previousPeriod(held.since, period));
  return (plan?.items ?? [])
    .filter((item) => model === undefined || item.models.includes(model))
    .map((item) => ({
      itemId: item.id,
      name: item.name === '' ? item.id : item.name,
      key: `${item.id}@${periodKey(period)}`,
      staleKey: `${item.id}@${periodKey(stale)}`,
      limit: item.value < 0 ? null : item.value,
      resetsAtMs: period.endMs,
    }));
}

/** One month of a plan, in epoch milliseconds. `startMs` is inclusive, `endMs` exclusive. */
export interface PlanPeriod {
  startMs: number;
  endMs: number;
}

/**
 * The plan month that contains `nowMs`. Plan months are calendar months counted from the plan's first day, in
 * UTC. In a month without that day, the period begins on the month's last day; later periods do not move. A
 * plan from 31 January has periods from 28 (or 29) February and from 31 March.
 */
export function planPeriod(sinceMs: number, nowMs: number): PlanPeriod {
  const since = new Date(sinceMs);
  const now = new Date(nowMs);
  let months = (now.getUTCFullYear() - since.getUTCFullYear()) * 12 + now.getUTCMonth() - since.getUTCMonth();
  if (addMonths(since, months) > nowMs) months -= 1;
  return { startMs: addMonths(since, months), endMs: addMonths(since, months + 1) };
}

export const previousPeriod = (sinceMs: number, period: PlanPeriod): PlanPeriod =>
  planPeriod(sinceMs, period.startMs - 1);

/** The first day of a period, used in the keys of counters: `2026-11-21`. */
export const periodKey = (period: PlanPeriod): string => new Date(period.startMs).toISOString().slice(0, 10);

function addMonths(date: Date, months: number): number {
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + months;
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = date.getTime() - Date.UTC(year, date.getUTCMonth(), date.getUTCDate());
  return Date.UTC(year, month, Math.min(date.getUTCDate(), daysInMonth)) + time;
}

/**
 * The slots that cover a call to an alias: those of entries that name the alias, or every model that may answer and has a
 * price. An entry for some of them covers none, because callers can choose which one answers, by what they send.
 */
export function slotsOfAlias(
  query: Omit<SlotQuery, 'model'>,
  alias: string,
  pricedModels: readonly string[],
): PlanSlot[] {
  const keysOf = (model: string): ReadonlySet<string> =>
    new Set(planSlots({ ...query, model }).map(({ key }) => key));
  const ofAlias = keysOf(alias);
  const ofModels = pricedModels.map(keysOf);
  return planSlots(query).filter(({ key }) => ofAlias.has(key) || ofModels.every((keys) => keys.has(key)));
}

interface PlanFacts extends Omit<SlotQuery, 'model'> {
  /** The account's counts of calls, by slot. */
  counts: ReadonlyMap<string, number>;
}

/** The plan that the account holds at `nowMs`, with its counts; null: it holds none. */
export function accountPlan({ held, counts, plans, nowMs }: PlanFacts): AccountPlan | null {
  if (!isHeld(held, nowMs)) return null;
  return {
    level: held.level,
    until: held.until === undefined ? null : seconds(held.until),
    items: planSlots({ plans, held, nowMs }).map((slot) => ({
      id: slot.itemId,
      name: slot.name,
      used: counts.get(slot.key) ?? 0,
      value: slot.limit ?? -1,
      resets_at: seconds(slot.resetsAtMs),
    })),
  };
}

/** When the plan in the account's row ended, in Unix seconds; null: it did not, or the row has none. */
export const planEndedAt = (held: HeldPlan | undefined, nowMs: number): number | null =>
  held?.until !== undefined && held.until <= nowMs ? seconds(held.until) : null;

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
