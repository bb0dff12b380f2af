import { type QuotaItem, type RateCount, emptyQuota, imbalance } from './quota-item.ts';
import { requestTimeMs } from '../wire/ids.ts';
import { evenly, shareOf, needOn, usesPart } from './shares.ts';
import { largestFirst, smaller, type NanoYuan } from './price.ts';
import { isRefusal, planReserve, type CallPayment, type PlanSlot, type ReserveNeed } from './reservation.ts';

const partsMax = 64;
/** More entries than this in one part cost a second unit of every write. */
const openMax = 8;
/** A part holds at least so many typical reserves: money spread thinner refuses what the sum covers. */
const reservesMin = 8n;

/** The number of parts that the traffic needs which an image of one part shows; the present number: no more. */
export function wantedParts({ open, parts }: QuotaItem, nowMs: number): number {
  if (open.size <= openMax) return parts;
  const bySize = (open.size / openMax) * parts;
  const starts = [...open.keys()].flatMap((id) => requestTimeMs(id) ?? []);
  const spanSeconds = Math.max(nowMs - Math.min(...starts, nowMs), 20) / 1000;
  // Many calls within a second are the start of more. A call of some seconds keeps that many entries open.
  const byRate = starts.length > openMax && spanSeconds < 1 ? (starts.length / spanSeconds) * 0.5 : 0;
  const wanted = 2 ** Math.ceil(Math.log2(Math.max(parts, bySize, byRate)));
  return Math.min(partsMax, wanted);
}

/** At most so many parts that each holds some reserves of the usual size; at least the present number. */
export function affordableParts(images: readonly QuotaItem[], wanted: number): number {
  const amounts = images.flatMap(({ open }) =>
    [...open.values()].map(({ amount }) => amount).filter((amount) => amount > 0n),
  );
  const present = images[0]?.parts ?? 1;
  if (amounts.length === 0) return wanted;
  const typical = amounts.reduce((sum, amount) => sum + amount, 0n) / BigInt(amounts.length);
  const available = images.reduce((sum, item) => sum + item.available, 0n);
  let count = wanted;
  while (count > present && available < BigInt(count) * reservesMin * typical) count /= 2;
  return Math.max(count, present);
}

/**
 * Shares out money and counted plan calls evenly over `to` parts. Undefined: there is nothing to share out.
 * @param images the parts that exist, of those below `to`
 * @param limits limits of plan slots, as far as known. A slot of unknown limit must not be counted up meanwhile.
 */
export function splitWrite(
  images: readonly QuotaItem[],
  to: number,
  limits: ReadonlyMap<string, number | null>,
): PartsWrite | undefined {
  const [first] = images;
  if (!first || first.part !== 0 || to <= first.parts) return undefined;
  const byPart = new Map(images.map((item) => [item.part, item]));
  const available = images.reduce((sum, item) => sum + item.available, 0n);
  const shares = evenly(available, to);
  const plans = sharedPlans(images, to, limits);
  const minutes = sharedMinute(images, to);
  const changes = Array.from({ length: to }, (_, part): PartChange => {
    const item = byPart.get(part);
    // An account in debt has nothing to share out.
    const moved = available > 0n ? (shares[part] ?? 0n) - (item?.available ?? 0n) : 0n;
    const counted = part < first.parts ? undefined : minutes(part);
    const minute = counted && { seen: item?.rate, counted };
    return { part, seenParts: item?.parts, moved, plan: plans(part), minute };
  });
  // A debt stays where it is, so every part is to say that there is one.
  const isOverdrawn = available < 0n || images.some((item) => item.overdraft);
  const overdraft = isOverdrawn ? 'begins' : 'none';
  return { account: first.account, parts: to, made: Math.max(first.made, to), overdraft, changes };
}

/**
 * Parts that calls did not use start with their share of what the others counted in this minute, which keep their
 * counts: so a split admits no more than the account's limits, and may admit less until the minute ends.
 */
function sharedMinute(images: readonly QuotaItem[], to: number): (part: number) => RateCount | undefined {
  const [first, ...others] = images.filter(({ part, parts }) => part < parts);
  const sum = first && wholeOf([first, ...others]).rate;
  if (!sum) return () => undefined;
  const { minute, count, tokens = 0 } = sum;
  const share = (whole: number, part: number): number => shareOf(whole, to, part - first.parts);
  return (part) => ({ minute, count: share(count, part), tokens: share(tokens, part) });
}

/** Counts are moved relatively, so calls that are counted meanwhile stay counted. */
function sharedPlans(
  images: readonly QuotaItem[],
  to: number,
  limits: ReadonlyMap<string, number | null>,
): (part: number) => ReadonlyMap<string, MovedCalls> {
  const sums = new Map([...limits.keys()].map((key) => [key, 0]));
  const counts = new Map(images.map(({ part, plan }) => [part, plan]));
  for (const { plan } of images) for (const [key, count] of plan) sums.set(key, (sums.get(key) ?? 0) + count);
  return (part) => {
    const moves = new Map<string, MovedCalls>();
    for (const [key, sum] of sums) {
      const counted = counts.get(part)?.get(key) ?? 0;
      const calls = shareOf(sum, to, part) - counted;
      const limit = limits.get(key);
      const room =
        limit === null ? Infinity : limit === undefined ? counted : shareOf(limit, to, part) - calls;
      if (calls !== 0 || counted > 0 || limit !== undefined)
        moves.set(key, { calls, countedMax: Math.max(counted, room) });
    }
    return moves;
  };
}

const giversMax = 20;
const noCalls: PartChange['plan'] = new Map();

/** Moves money from the richest parts to one, so that it has `amount`. Undefined: they do not have it. */
export function gatherWrite(
  images: readonly QuotaItem[],
  to: QuotaItem,
  amount: NanoYuan,
): PartsWrite | undefined {
  const changes: PartChange[] = [];
  let missing = amount - to.available;
  const richest = images
    .filter(({ part, available }) => part !== to.part && available > 0n)
    .toSorted((a, b) => largestFirst(a.available, b.available));
  for (const { part, parts, available } of richest.slice(0, giversMax)) {
    if (missing <= 0n) break;
    const given = smaller(missing, available);
    changes.push({ part, seenParts: parts, moved: -given, plan: noCalls });
    missing -= given;
  }
  if (missing > 0n || changes.length === 0) return undefined;
  const moved = changes.reduce((sum, change) => sum - change.moved, 0n);
  changes.push({ part: to.part, seenParts: to.parts, moved, plan: noCalls });
  return { account: to.account, changes };
}

/** Shares out what an overdrawn account has, so that no part is below zero. Undefined: the account is. */
export function settleWrite(images: AccountParts): PartsWrite | undefined {
  const sum = images.reduce((all, { available }) => all + available, 0n);
  if (sum < 0n) return undefined;
  const shares = evenly(sum, images.length);
  const changes = images.map(({ part, parts, available }, at): PartChange => {
    const moved = (shares[at] ?? 0n) - available;
    return { part, seenParts: parts, moved, plan: noCalls };
  });
  return { account: images[0].account, overdraft: 'ends', changes };
}

/**
 * Gives everything back to part 0, debts too, which calls use alone from then on. Undefined: other parts still have open
 * entries, or the account has one part.
 */
export function joinWrite(images: readonly QuotaItem[]): PartsWrite | undefined {
  const [first, ...others] = images;
  if (!first || first.part !== 0 || first.parts === 1 || others.some(({ open }) => open.size > 0))
    return undefined;
  const received = new Map<string, number>();
  const changes = others.map((item): PartChange => {
    for (const [key, count] of item.plan) received.set(key, (received.get(key) ?? 0) + count);
    return {
      part: item.part,
      seenParts: item.parts,
      moved: -item.available,
      plan: new Map([...item.plan].map(([key, count]) => [key, { calls: -count, countedMax: count }])),
      settledBefore: item.settled,
    };
  });
  const sum = others.reduce((all, { available }) => all + available, 0n);
  const plan = new Map([...received].map(([key, calls]) => [key, { calls, countedMax: Infinity }]));
  const seen = first.rate;
  const counted = wholeOf([first, ...others]).rate;
  const minute = counted && counted !== seen ? { seen, counted } : undefined;
  changes.unshift({ part: 0, seenParts: first.parts, moved: sum, plan, minute });
  return { account: first.account, parts: 1, made: first.made, changes };
}

interface Option {
  item: QuotaItem;
  payment: CallPayment;
}

interface Choice {
  /** In [0, 1): of the parts that are equally good any may be chosen, so that many calls do not meet on one. */
  chance: number;
  /** Others took what the call was to have, so it no longer competes for the last calls of a plan. */
  lastTry: boolean;
}

/** A part that has what a call needs; undefined: none has it alone. Plan slots go first, in their order. */
export function choosePart(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { chance, lastTry }: Choice,
): QuotaItem | undefined {
  const options = images.flatMap((item): Option[] => {
    if (!usesPart(need, item)) return [];
    const payment = planReserve(needOn(need, item), item);
    return isRefusal(payment) ? [] : [{ item, payment }];
  });
  const paid = options.filter(({ payment }) => !payment.slot && payment.limitedTo === undefined);
  if (lastTry && paid.length > 0) return anyOf(paid, chance);
  for (const { key } of need.slots) {
    const onSlot = options.filter(({ payment }) => payment.slot?.key === key);
    if (onSlot.length > 0) return anyOf(onSlot, chance);
  }
  const whole = options.filter(({ payment }) => payment.limitedTo === undefined);
  return whole.length > 0 ? anyOf(whole, chance) : richest(options);
}

const anyOf = (options: Option[], chance: number): QuotaItem | undefined =>
  options[Math.floor(chance * options.length)]?.item;

const richest = (options: Option[]): QuotaItem | undefined =>
  options.toSorted((a, b) => largestFirst(a.item.available, b.item.available))[0]?.item;

/** A plan slot that has room in the account, and the part in which a call finds none. */
interface MissingRoom {
  images: readonly QuotaItem[];
  to: QuotaItem;
  slot: Pick<PlanSlot, 'key' | 'limit'>;
}

/** A part whose share of the slot is used up, and which has all else that the call needs. */
export function partForRoom(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { key }: PlanSlot,
): QuotaItem | undefined {
  return images.find((item) => {
    const plan = planReserve(needOn(need, item), {
      ...item,
      plan: new Map([...item.plan, [key, -Infinity]]),
    });
    return usesPart(need, item) && !isRefusal(plan) && plan.slot?.key === key;
  });
}

/**
 * Counts calls of one part in another one, so that the first has room for as many more: half of the room of the part
 * that has the most. The count of a part may so be below zero; their sum stays. Undefined: no other part has room.
 */
export function roomWrite({ images, to, slot }: MissingRoom): PartsWrite | undefined {
  const { key, limit } = slot;
  if (limit === null) return undefined;
  const options = images.map(({ part, parts, plan }) => {
    const share = shareOf(limit, parts, part);
    return { part, parts, share, room: share - (plan.get(key) ?? 0) };
  });
  const [most] = options.filter(({ part }) => part !== to.part).toSorted((a, b) => b.room - a.room);
  if (!most || most.room <= 0) return undefined;
  const calls = Math.ceil(most.room / 2);
  const given = new Map([[key, { calls, countedMax: most.share - calls }]]);
  const taken = new Map([[key, { calls: -calls, countedMax: Infinity }]]);
  const changes: PartChange[] = [
    { part: most.part, seenParts: most.parts, moved: 0n, plan: given },
    { part: to.part, seenParts: to.parts, moved: 0n, plan: taken },
  ];
  return { account: to.account, changes };
}

export type AccountParts = readonly [QuotaItem, ...QuotaItem[]];

export interface WholeAccount extends QuotaItem {
  each?: AccountParts | undefined;
}

/** The account as if it had one part: every amount and count is the sum over its parts. */
export function wholeOf(parts: AccountParts): WholeAccount {
  const [first] = parts;
  if (parts.length === 1) return { ...first, parts: 1 };
  const whole: WholeAccount = { ...emptyQuota(first.account), last: first.last, each: parts };
  for (const item of parts) {
    for (const name of ['available', 'spent', 'granted', 'moved'] as const) whole[name] += item[name];
    whole.settled += item.settled;
    for (const [id, entry] of item.open) whole.open.set(id, entry);
    for (const [key, ids] of item.places)
      whole.places.set(key, new Set([...(whole.places.get(key) ?? []), ...ids]));
    for (const [key, count] of item.plan) whole.plan.set(key, (whole.plan.get(key) ?? 0) + count);
    whole.rate = sumOf(whole.rate, item.rate);
  }
  return whole;
}

/** Counts of one minute add up; of an earlier minute nothing counts any more. */
function sumOf(before: RateCount | undefined, rate: RateCount | undefined): RateCount | undefined {
  if (!rate || (before && before.minute > rate.minute)) return before;
  if (!before || before.minute < rate.minute) return rate;
  const { minute, count, tokens = 0 } = before;
  return { minute, count: count + rate.count, tokens: tokens + (rate.tokens ?? 0) };
}

/** The parts that do not balance, and what the moves between parts do not add up to. */
export function imbalances(parts: AccountParts): { part: number; difference: bigint }[] {
  return parts.flatMap((item) => {
    const difference = imbalance(item);
    return difference === undefined ? [] : [{ part: item.part, difference }];
  });
}

/**
 * One transaction over parts of an account. Money and counted plan calls change their part; their sums over the
 * account stay. It takes effect completely or not at all.
 */
export interface PartsWrite {
  account: string;
  /** The number of parts that calls use afterwards, which is also stored where it is read with keys. */
  parts?: number | undefined;
  /** The highest number of parts that the account ever had, kept in part 0. */
  made?: number | undefined;
  /**
   * What becomes of the mark of an overdraft. `begins`: the changed parts, all in use, have it afterwards. `ends`: they
   * had it, and none is below zero without it. `none`: refused if one has it, or would be below zero. Absent: it stays.
   */
  overdraft?: 'begins' | 'ends' | 'none' | undefined;
  /** One for each part that changes; of the amounts and of the counts of each slot the sum is zero. */
  changes: PartChange[];
}

export interface PartChange {
  part: number;
  /** The number of parts that the item named when it was read; undefined: there was no item. */
  seenParts: number | undefined;
  /** What the part receives; negative: what it gives, and refused if less is available. */
  moved: NanoYuan;
  /** Plan calls counted here from now on, by slot; negative: no more. */
  plan: ReadonlyMap<string, MovedCalls>;
  /** What the part counts of the account's minute from now on; refused unless it still counts what was seen. */
  minute?: { seen: RateCount | undefined; counted: RateCount } | undefined;
  /** Refused unless nothing is open and nothing was closed since: so many closes were counted then. */
  settledBefore?: number | undefined;
}

interface MovedCalls {
  calls: number;
  /** Refused if the part counts more by now: its share would be exceeded. */
  countedMax: number;
}
