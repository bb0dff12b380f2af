/**
 * A busy account has its balance and counts in several items, its shards. Plans the transactions that split and join them and move
 * money and counts between them, and adds them up. The sums over the account never change by a move.
 */
import { type QuotaItem, type RateCount, createQuotaItem, findImbalance, sumReserved } from './quota-item.ts';
import { requestTimeMs } from '../wire/ids.ts';
import { divideEvenly, shareOf, shareNeed, shardCountMax, usesShard } from './shares.ts';
import { compareLargestFirst, smaller, type NanoYuan } from './money.ts';
import { isRefusal, planReservation, type PlanSlot, type ReserveNeed } from './reservation.ts';

/** More entries than this in one shard cost a second unit of every write. */
const openMax = 8;
/** A shard has at least so many typical reserves: money spread thinner refuses calls that the sum covers. */
const reservesMin = 8n;

/** Estimates from one shard how many the traffic needs; never fewer than there are. */
export function countWantedShards({ open, shardCount }: QuotaItem, nowMs: number): number {
  if (open.size <= openMax) return shardCount;
  const bySize = (open.size / openMax) * shardCount;
  const starts = [...open.keys()].flatMap((id) => requestTimeMs(id) ?? []);
  const spanSeconds = Math.max(nowMs - Math.min(...starts, nowMs), 20) / 1000;
  // Many calls within a second announce more, and calls of some seconds keep that many entries open.
  const byRate = starts.length > openMax && spanSeconds < 1 ? (starts.length / spanSeconds) * 0.5 : 0;
  const wanted = 2 ** Math.ceil(Math.log2(Math.max(shardCount, bySize, byRate)));
  return Math.min(shardCountMax, wanted);
}

/** Lowers the count until each shard has some reserves of the usual size; never below the present count. */
export function countAffordableShards(images: readonly QuotaItem[], wanted: number): number {
  const holding = images.flatMap(({ open }) =>
    [...open.values()].filter(({ amount, metered }) => amount > 0n && !metered),
  );
  const present = images[0]?.shardCount ?? 1;
  if (holding.length === 0) return wanted;
  const typical = sumAmounts(images.map(sumReserved)) / BigInt(holding.length);
  const available = sumAmounts(images.map((item) => item.available));
  let count = wanted;
  while (count > present && available < BigInt(count) * reservesMin * typical) count /= 2;
  return Math.max(count, present);
}

const sumAmounts = (amounts: readonly NanoYuan[]): NanoYuan => amounts.reduce((sum, each) => sum + each, 0n);

/**
 * Divides money and counted plan calls evenly among `to` shards. New shards start with their share of what the others counted in
 * this minute, and those keep their counts: so a split admits no more than the account's limits, perhaps less until the minute
 * ends. Half of what is counted between the read and the write is admitted twice. A condition on the count would prevent that, but
 * also the split, because only busy accounts are split.
 * @param images the existing shards below `to`
 * @param limits limits of plan slots, as far as known. A slot of unknown limit must not be counted up meanwhile.
 */
export function planSplit(
  images: readonly QuotaItem[],
  to: number,
  limits: ReadonlyMap<string, number | null>,
): ShardsWrite | undefined {
  const [first] = images;
  if (!first || first.shard !== 0 || to <= first.shardCount) return undefined;
  const { available, plan } = sumShards(images);
  const { rate } = sumShards(images.filter(({ shard, shardCount }) => shard < shardCount));
  const counts = new Map([...[...limits.keys()].map((key) => [key, 0] as const), ...plan]);
  const shares = divideEvenly(available, to);
  const changes = Array.from({ length: to }, (_, shard): ShardChange => {
    const item = images.find((image) => image.shard === shard);
    // A debt is not divided.
    const moved = available > 0n ? (shares[shard] ?? 0n) - (item?.available ?? 0n) : 0n;
    const isNew = shard >= first.shardCount;
    const share = (whole: number): number => shareOf(whole, to, shard - first.shardCount);
    const counted = rate && {
      minute: rate.minute,
      count: share(rate.count),
      tokens: share(rate.tokens ?? 0),
    };
    const minute = isNew && counted ? { seen: item?.rate, counted } : undefined;
    const calls = shareCalls(counts, { item, limits, share: (whole) => shareOf(whole, to, shard) });
    return { shard, seenShardCount: item?.shardCount, moved, plan: calls, minute };
  });
  // A debt stays where it is, so every shard must say that there is one.
  const isOverdrawn = available < 0n || images.some((item) => item.overdraft);
  const overdraft = isOverdrawn ? 'begins' : 'none';
  return {
    account: first.account,
    shardCount: to,
    highestShardCount: Math.max(first.highestShardCount, to),
    overdraft,
    changes,
  };
}

interface ShardShare {
  item: QuotaItem | undefined;
  limits: ReadonlyMap<string, number | null>;
  share: (whole: number) => number;
}

/** Moves differences, so calls that are counted meanwhile stay counted. */
function shareCalls(
  counts: ReadonlyMap<string, number>,
  { item, limits, share }: ShardShare,
): ReadonlyMap<string, MovedCalls> {
  const moves = new Map<string, MovedCalls>();
  for (const [key, sum] of counts) {
    const counted = item?.plan.get(key) ?? 0;
    const calls = share(sum) - counted;
    const limit = limits.get(key);
    const room = limit === null ? Infinity : limit === undefined ? counted : share(limit) - calls;
    if (calls !== 0 || counted > 0 || limit !== undefined)
      moves.set(key, { calls, countedMax: Math.max(counted, room) });
  }
  return moves;
}

const giversMax = 20;

const buildChange = (
  { shard, shardCount }: QuotaItem,
  moved: NanoYuan,
  plan: ShardChange['plan'] = new Map(),
): ShardChange => ({ shard, seenShardCount: shardCount, moved, plan });

/** Moves money from the richest shards to one, so that it has `amount`. */
export function planGather(
  images: readonly QuotaItem[],
  to: QuotaItem,
  amount: NanoYuan,
): ShardsWrite | undefined {
  const changes: ShardChange[] = [];
  let missing = amount - to.available;
  const richest = images
    .filter(({ shard, available }) => shard !== to.shard && available > 0n)
    .toSorted((a, b) => compareLargestFirst(a.available, b.available));
  for (const item of richest.slice(0, giversMax)) {
    if (missing <= 0n) break;
    const given = smaller(missing, item.available);
    changes.push(buildChange(item, -given));
    missing -= given;
  }
  if (missing > 0n || changes.length === 0) return undefined;
  changes.push(buildChange(to, -sumAmounts(changes.map(({ moved }) => moved))));
  return { account: to.account, changes };
}

/** Divides the balance of an overdrawn account once it is paid, so that no shard is below zero. */
export function planOverdraftEnd(images: AccountShards): ShardsWrite | undefined {
  const sum = sumAmounts(images.map(({ available }) => available));
  if (sum < 0n) return undefined;
  const shares = divideEvenly(sum, images.length);
  const changes = images.map((item, at) => buildChange(item, (shares[at] ?? 0n) - item.available));
  return { account: images[0].account, overdraft: 'ends', changes };
}

/** Moves everything back to shard 0, debts too, if no other shard has open entries. Calls use only shard 0 from then on. */
export function planJoin(images: readonly QuotaItem[]): ShardsWrite | undefined {
  const [first, ...others] = images;
  if (!first || first.shard !== 0 || first.shardCount === 1 || others.some(({ open }) => open.size > 0))
    return undefined;
  const given = sumShards(others);
  const { rate: counted } = sumShards(images);
  const minute = counted && counted !== first.rate ? { seen: first.rate, counted } : undefined;
  const received = new Map([...given.plan].map(([key, calls]) => [key, { calls, countedMax: Infinity }]));
  const changes = others.map((item): ShardChange => {
    const calls = [...item.plan].map(([key, count]) => [key, { calls: -count, countedMax: count }] as const);
    return Object.assign(buildChange(item, -item.available, new Map(calls)), { settledBefore: item.settled });
  });
  changes.unshift({ ...buildChange(first, given.available, received), minute });
  return { account: first.account, shardCount: 1, highestShardCount: first.highestShardCount, changes };
}

interface Choice {
  /** In [0, 1). Calls choose among equally good shards at random, so that they do not meet on one. */
  chance: number;
  /** After other calls took what it wanted, the call no longer competes for the last calls of a plan. */
  lastTry: boolean;
}

/** Plan slots come first, in their order. Returns undefined if no shard has alone what the call needs. */
export function chooseShard(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { chance, lastTry }: Choice,
): QuotaItem | undefined {
  const options = images.flatMap((item) => {
    const payment = planReservation(shareNeed(need, item), item);
    return usesShard(need, item) && !isRefusal(payment) ? [{ item, payment }] : [];
  });
  const whole = options.filter(({ payment }) => payment.limitedTo === undefined);
  const best = [
    ...(lastTry ? [whole.filter(({ payment }) => !payment.slot)] : []),
    ...need.slots.map(({ key }) => options.filter(({ payment }) => payment.slot?.key === key)),
    whole,
  ].find(({ length }) => length > 0);
  if (best) return best[Math.floor(chance * best.length)]?.item;
  return options.toSorted((a, b) => compareLargestFirst(a.item.available, b.item.available))[0]?.item;
}

interface MissingRoom {
  images: readonly QuotaItem[];
  to: QuotaItem;
  slot: Pick<PlanSlot, 'key' | 'limit'>;
}

/** Finds a shard that has all that the call needs, except room in its share of the slot. */
export function findShardForRoom(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { key }: PlanSlot,
): QuotaItem | undefined {
  return images.find((item) => {
    const roomy = { ...item, plan: new Map([...item.plan, [key, -Infinity]]) };
    const plan = planReservation(shareNeed(need, item), roomy);
    return usesShard(need, item) && !isRefusal(plan) && plan.slot?.key === key;
  });
}

/**
 * Moves counted calls to the shard with the most room, half of what it has room for, so that `to` has room again. The count of a
 * shard may fall below zero.
 */
export function planRoom({ images, to, slot }: MissingRoom): ShardsWrite | undefined {
  const { key, limit } = slot;
  if (limit === null) return undefined;
  const options = images.map((item) => {
    const share = shareOf(limit, item.shardCount, item.shard);
    return { item, share, room: share - (item.plan.get(key) ?? 0) };
  });
  const [most] = options.filter(({ item }) => item.shard !== to.shard).toSorted((a, b) => b.room - a.room);
  if (!most || most.room <= 0) return undefined;
  const calls = Math.ceil(most.room / 2);
  const changes = [
    buildChange(most.item, 0n, new Map([[key, { calls, countedMax: most.share - calls }]])),
    buildChange(to, 0n, new Map([[key, { calls: -calls, countedMax: Infinity }]])),
  ];
  return { account: to.account, changes };
}

export type AccountShards = readonly [QuotaItem, ...QuotaItem[]];

export interface WholeAccount extends QuotaItem {
  shards?: AccountShards | undefined;
}

/** Describes the account as if it had one shard. */
export function mergeShards(shards: AccountShards): WholeAccount {
  const [first] = shards;
  return shards.length === 1
    ? { ...first, shardCount: 1 }
    : { ...sumShards(shards), account: first.account, last: first.last, shards };
}

function sumShards(shards: readonly QuotaItem[]): QuotaItem {
  const sums = createQuotaItem('');
  for (const item of shards) {
    for (const name of ['available', 'spent', 'granted', 'moved'] as const) sums[name] += item[name];
    sums.settled += item.settled;
    if (item.metered !== undefined) sums.metered = (sums.metered ?? 0n) + item.metered;
    for (const [id, entry] of item.open) sums.open.set(id, entry);
    for (const [key, ids] of item.permits)
      sums.permits.set(key, new Set([...(sums.permits.get(key) ?? []), ...ids]));
    for (const [key, count] of item.plan) sums.plan.set(key, (sums.plan.get(key) ?? 0) + count);
    sums.rate = addRates(sums.rate, item.rate);
  }
  return sums;
}

/** Only counts of the latest minute matter. */
function addRates(before: RateCount | undefined, rate: RateCount | undefined): RateCount | undefined {
  if (!rate || (before && before.minute > rate.minute)) return before;
  if (!before || before.minute < rate.minute) return rate;
  const { minute, count, tokens = 0 } = before;
  return { minute, count: count + rate.count, tokens: tokens + (rate.tokens ?? 0) };
}

export function findImbalances(shards: AccountShards): { shard: number; difference: bigint }[] {
  return shards.flatMap((item) => {
    const difference = findImbalance(item);
    return difference === undefined ? [] : [{ shard: item.shard, difference }];
  });
}

/** One transaction over shards of an account. It takes effect completely or not at all. */
export interface ShardsWrite {
  account: string;
  /** Calls use so many shards afterwards. The number is also stored where keys are read. */
  shardCount?: number | undefined;
  highestShardCount?: number | undefined;
  /**
   * Changes the flag `overdraft`. `begins`: sets it on the changed shards, which are all in use. `ends`: removes it, if no shard is
   * below zero. `none`: refuses the write if a shard has it, or would fall below zero.
   */
  overdraft?: 'begins' | 'ends' | 'none' | undefined;
  /** The amounts, and the counts of each slot, add up to zero. */
  changes: ShardChange[];
}

export interface ShardChange {
  shard: number;
  /** `shardCount` of the item when it was read; undefined if there was no item. */
  seenShardCount: number | undefined;
  /** If negative, refused when less is available. */
  moved: NanoYuan;
  /** Plan calls by slot; negative if they are counted elsewhere from now on. */
  plan: ReadonlyMap<string, MovedCalls>;
  /** Replaces the count of the account's minute, if it is still the one that was seen. */
  minute?: { seen: RateCount | undefined; counted: RateCount } | undefined;
  /** Refused if a call is open, or more calls were closed than this. */
  settledBefore?: number | undefined;
}

interface MovedCalls {
  calls: number;
  /** Refused if the shard counts more by now, because that would exceed its share. */
  countedMax: number;
}
