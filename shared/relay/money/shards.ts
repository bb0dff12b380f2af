/** What the tries of a reserve after its first are made on. Loaded by the first reserve that needs a second try. */
import { createQuotaItem, type QuotaItem } from '../../billing/quota-item.ts';
import {
  type PlanSlot,
  isRefusal,
  planReservation,
  type ReserveRefusal,
  isForMoney,
  type CallPayment,
  type ReserveNeed,
} from '../../billing/reservation.ts';
import { contended } from './reserve-refusals.ts';
import type { ReservationRequest, ReserveUnderWay, ReservationsPorts } from './open-reservation.ts';
import { compareLargestFirst } from '../../billing/price.ts';
import {
  chooseShard,
  planGather,
  planJoin,
  planOverdraftEnd,
  findShardForRoom,
  planRoom,
  mergeShards,
  type AccountShards,
  type WholeAccount,
  countAffordableShards,
  planSplit,
  countWantedShards,
} from '../../billing/shards.ts';
import { firstCounter, shareNeed, shardCountMax, usesShard } from '../../billing/shares.ts';
import { StoreUnavailable, StoreBusy } from '../ports/store-errors.ts';
import { Backoff, retried } from '../retry.ts';

/** The part to try next, after a write was refused. `image`: as the store returned it; undefined: there is none. */
export async function afterRefusedWrite(
  tries: ReserveUnderWay,
  { shard: part, shardCount: parts }: QuotaItem,
  image: QuotaItem | undefined,
): Promise<QuotaItem> {
  const { account, need } = tries.request;
  if (part >= firstCounter) {
    if (!image) await tries.reads.until(() => tries.ports.quotas.create(account, part));
    return image ?? createQuotaItem(account, part);
  }
  if (image?.shardCount === 1 && part === 0) return image;
  if (!image && part === 0) {
    const empty = createQuotaItem(account);
    if (!isRefusal(planReservation(need, empty)))
      await tries.reads.until(() => tries.ports.quotas.create(account));
    return empty;
  }
  if (tries.isPinned) {
    // Shares of a part that is not in use would come on top of those of the others.
    if (!image || part >= image.shardCount)
      throw await contended(tries, { ...tries.guessOn(), shard: 0, shardCount: 1 });
    return image;
  }
  // The number of parts was wrong. What a part says that is no more in use, or never was, is not to be trusted.
  if (!image || part >= image.shardCount) return { ...tries.guessOn(), shard: 0, shardCount: 1 };
  return image.shardCount === parts || tries.isLast ? elsewhere(tries, image) : tries.guessOn();
}

/** The part to try next, after a plan was refused. Throws the refusal. */
export async function afterRefusal(
  tries: ReserveUnderWay,
  item: QuotaItem,
  refusal: ReserveRefusal,
): Promise<QuotaItem> {
  // The key's budget is the same for every part.
  if (item.shardCount > 1 && refusal.reason !== 'budget') return elsewhere(tries, item);
  throw await tries.refusal(refusal, item);
}

// Where a call goes that one part of its account refused: to a part that has what it needs, or to one in which that is
// gathered. Only the sums refuse a call, and of an overdrawn account only they let the balance pay. Must not move money
// on every refusal: that ends in a storm of transactions.

/** The way to another part takes no longer than this, so that a refusal comes soon. */
const quickMs = 50;

/** The part to try next. Throws the refusal if the sums refuse too. `refused`: as the store returned it. */
async function elsewhere(tries: ReserveUnderWay, refused: QuotaItem): Promise<QuotaItem> {
  const rough = refused.overdraft ? undefined : await readParts(tries, refused, false);
  return (rough && (await chooseFrom(tries, rough))) ?? exactly(tries, refused);
}

/** Parts that are a second old must not say that an account has no money. */
async function exactly(tries: ReserveUnderWay, refused: QuotaItem): Promise<QuotaItem> {
  const images = await settled(tries, await readParts(tries, refused, true));
  const chosen = await chooseFrom(tries, images);
  if (chosen) return chosen;
  const whole = mergeShards(images);
  const plan = planReservation(tries.roomyNeed(images[0]), whole);
  // The last read showed what was missing in the one before. A try may still be applied elsewhere.
  if (!isRefusal(plan) && tries.isPinned) throw await contended(tries, images[0]);
  if (!isRefusal(plan)) return images[0];
  // Nobody else comes by: what refuses calls makes none that would find out that it is quiet.
  if (isOverdrawn(images) && planJoin(images)) await join(tries.ports, images[0]);
  throw await tries.refusal(plan, whole);
}

/** The parts of an account whose sum pays for the call, none of them overdrawn any more; others as they are. */
async function settled(tries: ReserveUnderWay, images: AccountShards): Promise<AccountShards> {
  const plan = planReservation(tries.roomyNeed(images[0]), mergeShards(images));
  const isPaid = paysFromSum(images, plan) && !tries.request.need.metered;
  const write = isPaid ? planOverdraftEnd(images) : undefined;
  if (!write) return images;
  // If others did it, there is nothing left to do.
  await quickly(tries, images[0], () => tries.ports.quotas.move(write));
  return readParts(tries, images[0], true);
}

const isOverdrawn = (images: AccountShards): boolean => images.some(({ overdraft }) => overdraft);

/** No part may pay for the call by what it has itself. */
const paysFromSum = (images: AccountShards, plan: CallPayment | ReserveRefusal): boolean =>
  isOverdrawn(images) && (isRefusal(plan) ? isForMoney(plan) : plan.amount > 0n);

async function readParts(tries: ReserveUnderWay, refused: QuotaItem, exact: boolean): Promise<AccountShards> {
  const { ports, request } = tries;
  const parts = await readAll(refused, async (count) => {
    const images = await quickly(tries, refused, () => ports.quotas.read(request.account, count, exact));
    return images.map((item) => (item.shard === refused.shard && !exact ? refused : item));
  });
  tries.sawSums(mergeShards(parts), parts[0].shardCount);
  return parts;
}

/** The sums of an account. @param parts their number as read with the key */
export async function readSums(
  ports: Pick<ReservationsPorts, 'clock' | 'random' | 'quotas'>,
  { account, parts = 1 }: Pick<ReservationRequest, 'account' | 'parts'>,
  exact: boolean,
): Promise<WholeAccount> {
  const read = (count: number) => retried(ports, () => ports.quotas.read(account, count, exact));
  return mergeShards(await readAll({ ...createQuotaItem(account), shardCount: parts }, read));
}

/** All parts of an account, of which one is known. @param read the first parts, so many */
async function readAll(
  known: QuotaItem,
  read: (count: number) => Promise<readonly QuotaItem[]>,
): Promise<AccountShards> {
  for (let count = known.shardCount; ;) {
    const [first = known, ...others] = await read(count);
    if (first.shardCount <= count)
      return [first, ...others.filter(({ shard: part }) => part < first.shardCount)];
    // It was split meanwhile, so this is not all of it.
    count = first.shardCount;
  }
}

/** A refusal must not take longer than a call: what the store puts off is not waited for. */
async function quickly<T>(tries: ReserveUnderWay, item: QuotaItem, act: () => Promise<T>): Promise<T> {
  try {
    const now = tries.ports.clock.now();
    tries.quickEndMs ??= now + quickMs;
    return await new Backoff(tries.ports, tries.quickEndMs - now).until(act);
  } catch (error) {
    throw error instanceof StoreUnavailable ? await contended(tries, item) : error;
  }
}

/** Undefined: the sums refuse the call for want of money, which other parts may have by now. Throws other refusals. */
async function chooseFrom(tries: ReserveUnderWay, images: AccountShards): Promise<QuotaItem | undefined> {
  const need = tries.roomyNeed(images[0]);
  const usable = isOverdrawn(images) ? images.map((item) => ({ ...item, available: 0n })) : images;
  const open = tries.isPinned ? usable.filter(({ shard: part }) => part === tries.part) : usable;
  const whole = mergeShards(images);
  const plan = planReservation(need, whole);
  if (paysFromSum(images, plan) && !need.metered) return undefined;
  const chosen = chooseShard(need, open, { chance: tries.ports.random.next(), lastTry: tries.isLast });
  const slot = isRefusal(plan) ? undefined : plan.slot;
  const withRoom = slot && (await roomFor(tries, { images, open }, slot));
  if (withRoom ?? chosen) return withRoom ?? chosen;
  tries.whole = whole;
  if (!isRefusal(plan)) return gathered(tries, { images, open }, plan);
  if (plan.reason === 'quota') return undefined;
  throw await tries.refusal(plan, whole);
}

/** Parts as they were read, and those of them that the call may go to. */
interface OpenParts {
  images: AccountShards;
  open: readonly QuotaItem[];
}

/**
 * A part with room in the plan slot, moved there from a part that the call may not go to: the balance must not pay while
 * the plan has room. Undefined: a part that the call may go to has room, or none has all else that the call needs.
 */
async function roomFor(
  tries: ReserveUnderWay,
  { images, open }: OpenParts,
  slot: PlanSlot,
): Promise<QuotaItem | undefined> {
  const need = tries.roomyNeed(images[0]);
  const hasRoom = (item: QuotaItem): boolean => {
    const plan = planReservation(shareNeed(need, item), item);
    return usesShard(need, item) && !isRefusal(plan) && plan.slot?.key === slot.key;
  };
  const to = open.some(hasRoom) ? undefined : findShardForRoom(need, open, slot);
  const write = to && planRoom({ images, to, slot });
  if (!write) return undefined;
  if (!(await quickly(tries, to, () => tries.ports.quotas.move(write)))) throw await contended(tries, to);
  const count = (to.plan.get(slot.key) ?? 0) + (write.changes.at(-1)?.plan.get(slot.key)?.calls ?? 0);
  return { ...to, plan: new Map([...to.plan, [slot.key, count]]) };
}

/** No part has enough, but all together have. */
async function gathered(
  tries: ReserveUnderWay,
  { images, open }: OpenParts,
  plan: CallPayment,
): Promise<QuotaItem> {
  const need = tries.roomyNeed(images[0]);
  const withMoney = (item: QuotaItem): ReturnType<typeof planReservation> =>
    planReservation(shareNeed(need, item), { ...item, available: plan.amount });
  const used = open.filter((item) => usesShard(need, item));
  const to = used
    .filter((item) => !isRefusal(withMoney(item)))
    .toSorted((a, b) => compareLargestFirst(a.available, b.available))[0];
  if (!to) {
    const refusal = used.map(withMoney).find(isRefusal) ?? { reason: 'concurrency' };
    throw await tries.refusal(refusal, mergeShards(images));
  }
  const write = plan.amount > 0n && !need.metered ? planGather(images, to, plan.amount) : undefined;
  if (!write) return to;
  // Whoever moves money meets others who do, so it is tried once.
  const moved = !tries.hasGathered && (await quickly(tries, to, () => tries.ports.quotas.move(write)));
  tries.hasGathered = true;
  if (!moved) throw await contended(tries, to);
  return { ...to, available: plan.amount };
}

// Splits a busy account into parts, and joins a quiet one. Must never keep a call waiting or make it fail.

const triesMax = 2;

/**
 * Splits the account to the number of parts that its traffic needs. If others change it meanwhile, tries once more.
 * @param item the part as a reserve returned it, which the store put off if `throttled`
 */
export async function split(
  ports: ReservationsPorts,
  { item, need, throttled }: { item: QuotaItem; need: Pick<ReserveNeed, 'slots'>; throttled: boolean },
): Promise<void> {
  const { quotas, clock, log } = ports;
  const { account, shardCount: parts } = item;
  const atLeast = throttled ? Math.min(shardCountMax, 2 * parts) : parts;
  const wanted = Math.max(atLeast, countWantedShards(item, clock.now()));
  if (wanted <= parts) return;
  const limits = new Map(need.slots.map(({ key, limit }) => [key, limit]));
  await unlessBusy(async () => {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const images = await quotas.read(account, wanted, true);
      const count = countAffordableShards(images, wanted);
      const shared = images.filter(({ shard: part }) => part < count);
      const write = planSplit(shared, count, limits);
      if (!write) return;
      if (await quotas.move(write)) return log.event('account_split', { account, parts: count });
    }
  });
}

/** Joins the account if nothing is open but in part 0. */
export async function join(
  { quotas, log }: ReservationsPorts,
  { account, shardCount: parts }: QuotaItem,
): Promise<void> {
  await unlessBusy(async () => {
    const images = await quotas.read(account, parts, true);
    const write = planJoin(images);
    if (write && images.length === images[0]?.shardCount && (await quotas.move(write)))
      log.event('account_joined', { account });
  });
}

/** What did not work now is tried again by later calls. */
async function unlessBusy(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof StoreBusy || error instanceof StoreUnavailable)) throw error;
  }
}
