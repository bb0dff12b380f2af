/**
 * Plans the tries of a reserve after the first one, and splits and joins accounts. Loaded by the first reserve
 * that needs a second try.
 */
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
import { refuseContended } from './reserve-refusals.ts';
import type { NextTry, ReservationRequest, ReserveStep, ReservationsPorts } from './open-reservation.ts';
import { compareLargestFirst } from '../../billing/money.ts';
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
import { Backoff, retry } from '../retry.ts';

/** Plans the try after a refused write. `image` is the shard that the store returned, if any. */
export async function planAfterRefusedWrite(
  step: ReserveStep,
  { shard, shardCount }: QuotaItem,
  image: QuotaItem | undefined,
): Promise<NextTry> {
  const { account, need } = step.request;
  if (shard >= firstCounter) {
    if (!image) await step.reads.until(() => step.ports.quotas.create(account, shard));
    return planNextTry(step, image ?? createQuotaItem(account, shard));
  }
  if (image?.shardCount === 1 && shard === 0) return planNextTry(step, image);
  if (!image && shard === 0) {
    const empty = createQuotaItem(account);
    if (!isRefusal(planReservation(need, empty)))
      await step.reads.until(() => step.ports.quotas.create(account));
    return planNextTry(step, empty);
  }
  if (step.isPinned) {
    // A shard that is not in use must not admit calls: its shares would exceed those of the account.
    if (!image || shard >= image.shardCount)
      throw await refuseContended(step, { ...step.estimateShard(), shard: 0, shardCount: 1 });
    return planNextTry(step, image);
  }
  // The number of shards was wrong. Ignore the image of a shard that is not in use.
  if (!image || shard >= image.shardCount)
    return planNextTry(step, { ...step.estimateShard(), shard: 0, shardCount: 1 });
  return image.shardCount === shardCount || step.isLast
    ? findOtherShard(step, image)
    : planNextTry(step, step.estimateShard());
}

/** Plans the try after a refused plan, or throws the refusal. */
export async function planAfterRefusal(
  step: ReserveStep,
  item: QuotaItem,
  refusal: ReserveRefusal,
): Promise<NextTry> {
  // A budget is the same for every shard.
  if (item.shardCount > 1 && refusal.reason !== 'budget') return findOtherShard(step, item);
  throw await step.refuse(refusal, item);
}

const planNextTry = ({ sums, hasGathered, searchEndMs }: ReserveStep, item: QuotaItem): NextTry => ({
  item,
  search: { sums, hasGathered, searchEndMs },
});

// If one shard refuses a call, another shard with enough funds takes it, or one shard gathers funds from the others. Only
// the sums over all shards may refuse a call, and only they let the balance of an overdrawn account pay. Must not move
// money on every refusal: that ends in a storm of transactions.

/** The search for another shard takes no longer, so that a refusal comes soon. */
const searchMs = 50;

/** Throws the refusal if the sums refuse, too. `refused`: as the store returned it. */
async function findOtherShard(before: ReserveStep, refused: QuotaItem): Promise<NextTry> {
  const searchEndMs = before.searchEndMs ?? before.ports.clock.now() + searchMs;
  const step = { ...before, searchEndMs };
  const rough = refused.overdraft ? undefined : await readShards(step, refused, false);
  const chosen = rough && (await chooseFrom(step, rough));
  if (chosen && 'item' in chosen) return chosen;
  return decideOnExactBalance({ ...step, ...chosen }, refused);
}

/** Shards that are a second old must not say that an account has no money. */
async function decideOnExactBalance(before: ReserveStep, refused: QuotaItem): Promise<NextTry> {
  const images = await clearOverdraftIfPaid(before, await readShards(before, refused, true));
  const chosen = await chooseFrom(before, images);
  if ('item' in chosen) return chosen;
  const step = { ...before, ...chosen };
  const whole = mergeShards(images);
  const plan = planReservation(step.needWithRoom(images[0]), whole);
  // The last read showed what was missing in the one before. A try may still be applied to another shard.
  if (!isRefusal(plan) && step.isPinned) throw await refuseContended(step, images[0]);
  if (!isRefusal(plan)) return planNextTry(step, images[0]);
  // Only this refusal can notice that the account is quiet, because an account that refuses every call writes nothing else.
  if (isOverdrawn(images) && planJoin(images)) await joinShards(step.ports, images[0]);
  throw await step.refuse(plan, whole);
}

/** The shards of an account whose sum pays for the call, none of them overdrawn any more; others as they are. */
async function clearOverdraftIfPaid(step: ReserveStep, images: AccountShards): Promise<AccountShards> {
  const plan = planReservation(step.needWithRoom(images[0]), mergeShards(images));
  const isPaid = isPaidFromSum(images, plan) && !step.request.need.metered;
  const write = isPaid ? planOverdraftEnd(images) : undefined;
  if (!write) return images;
  // If others did it, there is nothing left to do.
  await actSoon(step, images[0], () => step.ports.quotas.move(write));
  return readShards(step, images[0], true);
}

const isOverdrawn = (images: AccountShards): boolean => images.some(({ overdraft }) => overdraft);

/** No shard may pay for the call by what it has itself. */
const isPaidFromSum = (images: AccountShards, plan: CallPayment | ReserveRefusal): boolean =>
  isOverdrawn(images) && (isRefusal(plan) ? isForMoney(plan) : plan.amount > 0n);

async function readShards(step: ReserveStep, refused: QuotaItem, exact: boolean): Promise<AccountShards> {
  const { ports, request } = step;
  const shards = await readAll(refused, async (count) => {
    const images = await actSoon(step, refused, () => ports.quotas.read(request.account, count, exact));
    return images.map((item) => (item.shard === refused.shard && !exact ? refused : item));
  });
  step.keepSums(mergeShards(shards), shards[0].shardCount);
  return shards;
}

/** Reads the sums of an account. @param shardCount the number of shards as read with the key */
export async function readSums(
  ports: Pick<ReservationsPorts, 'clock' | 'random' | 'quotas'>,
  { account, shardCount = 1 }: Pick<ReservationRequest, 'account' | 'shardCount'>,
  exact: boolean,
): Promise<WholeAccount> {
  const read = (count: number) => retry(ports, () => ports.quotas.read(account, count, exact));
  return mergeShards(await readAll({ ...createQuotaItem(account), shardCount }, read));
}

/** Reads all shards of an account, of which one is known. @param read reads the first `count` shards */
async function readAll(
  known: QuotaItem,
  read: (count: number) => Promise<readonly QuotaItem[]>,
): Promise<AccountShards> {
  for (let count = known.shardCount; ;) {
    const [first = known, ...others] = await read(count);
    if (first.shardCount <= count) return [first, ...others.filter(({ shard }) => shard < first.shardCount)];
    // It was split meanwhile, so this is not all of it.
    count = first.shardCount;
  }
}

/** A refusal must not take longer than a call: what the store puts off is not waited for. */
async function actSoon<T>(step: ReserveStep, item: QuotaItem, act: () => Promise<T>): Promise<T> {
  try {
    const { ports, searchEndMs = 0 } = step;
    return await new Backoff(ports, searchEndMs - ports.clock.now()).until(act);
  } catch (error) {
    throw error instanceof StoreUnavailable ? await refuseContended(step, item) : error;
  }
}

/** Without an item: the sums refuse the call for want of money, which other shards may have by now. Throws other refusals. */
async function chooseFrom(
  step: ReserveStep,
  images: AccountShards,
): Promise<NextTry | Pick<ReserveStep, 'sums'>> {
  const need = step.needWithRoom(images[0]);
  const usable = isOverdrawn(images) ? images.map((item) => ({ ...item, available: 0n })) : images;
  const open = step.isPinned ? usable.filter(({ shard }) => shard === step.shard) : usable;
  const whole = mergeShards(images);
  const plan = planReservation(need, whole);
  if (isPaidFromSum(images, plan) && !need.metered) return {};
  const chosen = chooseShard(need, open, { chance: step.ports.random.next(), lastTry: step.isLast });
  const slot = isRefusal(plan) ? undefined : plan.slot;
  const withRoom = slot && (await moveRoom(step, { images, open }, slot));
  const found = withRoom ?? chosen;
  if (found) return planNextTry(step, found);
  if (!isRefusal(plan)) return gatherFunds({ ...step, sums: whole }, { images, open }, plan);
  if (plan.reason === 'quota') return { sums: whole };
  throw await step.refuse(plan, whole);
}

/** Shards as they were read, and those of them that the call may go to. */
interface OpenShards {
  images: AccountShards;
  open: readonly QuotaItem[];
}

/**
 * Moves room in the plan slot from a shard that the call may not go to: the balance must not pay while the plan has room.
 * Does nothing if an allowed shard has room, or if no shard has everything else that the call needs.
 */
async function moveRoom(
  step: ReserveStep,
  { images, open }: OpenShards,
  slot: PlanSlot,
): Promise<QuotaItem | undefined> {
  const need = step.needWithRoom(images[0]);
  const hasRoom = (item: QuotaItem): boolean => {
    const plan = planReservation(shareNeed(need, item), item);
    return usesShard(need, item) && !isRefusal(plan) && plan.slot?.key === slot.key;
  };
  const to = open.some(hasRoom) ? undefined : findShardForRoom(need, open, slot);
  const write = to && planRoom({ images, to, slot });
  if (!write) return undefined;
  if (!(await actSoon(step, to, () => step.ports.quotas.move(write)))) throw await refuseContended(step, to);
  const count = (to.plan.get(slot.key) ?? 0) + (write.changes.at(-1)?.plan.get(slot.key)?.calls ?? 0);
  return { ...to, plan: new Map([...to.plan, [slot.key, count]]) };
}

/** Moves money to one shard where none has enough, but all together have. */
async function gatherFunds(
  step: ReserveStep,
  { images, open }: OpenShards,
  plan: CallPayment,
): Promise<NextTry> {
  const need = step.needWithRoom(images[0]);
  const planWithMoney = (item: QuotaItem): ReturnType<typeof planReservation> =>
    planReservation(shareNeed(need, item), { ...item, available: plan.amount });
  const used = open.filter((item) => usesShard(need, item));
  const to = used
    .filter((item) => !isRefusal(planWithMoney(item)))
    .toSorted((a, b) => compareLargestFirst(a.available, b.available))[0];
  if (!to) {
    const refusal = used.map(planWithMoney).find(isRefusal) ?? { reason: 'concurrency' };
    throw await step.refuse(refusal, mergeShards(images));
  }
  const write = plan.amount > 0n && !need.metered ? planGather(images, to, plan.amount) : undefined;
  if (!write) return planNextTry(step, to);
  // Moving money meets other movers, so it is tried once.
  const moved = !step.hasGathered && (await actSoon(step, to, () => step.ports.quotas.move(write)));
  if (!moved) throw await refuseContended(step, to);
  return planNextTry({ ...step, hasGathered: true }, { ...to, available: plan.amount });
}

// Splits a busy account into shards, and joins a quiet one. Must never keep a call waiting or make it fail.

const triesMax = 2;

/**
 * Splits the account into the number of shards that its traffic needs. Tries once more if another process changes it meanwhile.
 * @param item the shard as a reserve returned it; `throttled` if the store throttled that reserve
 */
export async function splitShards(
  ports: ReservationsPorts,
  { item, need, throttled }: { item: QuotaItem; need: Pick<ReserveNeed, 'slots'>; throttled: boolean },
): Promise<void> {
  const { quotas, clock, log } = ports;
  const { account, shardCount } = item;
  const atLeast = throttled ? Math.min(shardCountMax, 2 * shardCount) : shardCount;
  const wanted = Math.max(atLeast, countWantedShards(item, clock.now()));
  if (wanted <= shardCount) return;
  const limits = new Map(need.slots.map(({ key, limit }) => [key, limit]));
  await skipIfBusy(async () => {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const images = await quotas.read(account, wanted, true);
      const count = countAffordableShards(images, wanted);
      const shared = images.filter(({ shard }) => shard < count);
      const write = planSplit(shared, count, limits);
      if (!write) return;
      if (await quotas.move(write)) return log.event('account_split', { account, parts: count });
    }
  });
}

/** Joins the shards if only shard 0 has open entries. */
export async function joinShards(
  { quotas, log }: ReservationsPorts,
  { account, shardCount }: QuotaItem,
): Promise<void> {
  await skipIfBusy(async () => {
    const images = await quotas.read(account, shardCount, true);
    const write = planJoin(images);
    if (write && images.length === images[0]?.shardCount && (await quotas.move(write)))
      log.event('account_joined', { account });
  });
}

/** Later calls try again. */
async function skipIfBusy(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof StoreBusy || error instanceof StoreUnavailable)) throw error;
  }
}
