/**
 * Where a call goes that one part of its account refused: to a part that has what it needs, or to one in which that is
 * gathered. Only the sums refuse a call, and of an overdrawn account only they let the balance pay. Must not move money
 * on every refusal: that ends in a storm of transactions.
 */
import { largestFirst } from '../../billing/amount.ts';
import { choosePart } from '../../billing/parts/choose.ts';
import { gatherWrite, joinWrite, settleWrite } from '../../billing/parts/gather.ts';
import { lapsedPlaces } from '../../billing/parts/places.ts';
import { partForRoom, roomWrite } from '../../billing/parts/plan-room.ts';
import { needOn, usesPart } from '../../billing/parts/shares.ts';
import { wholeOf, type AccountParts } from '../../billing/parts/whole.ts';
import type { PlanSlot } from '../../billing/plans/plan-slots.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import {
  isForMoney,
  isRefusal,
  planReserve,
  type Payment,
  type ReserveRefusal,
} from '../../billing/reservation.ts';
import { StoreUnavailable } from '../ports/stores/store-errors.ts';
import { Backoff } from './backoff.ts';
import { contended } from './reserve-refusals.ts';
import { freePlaces } from './free-places.ts';
import type { ReserveUnderWay } from './open-reservation.ts';

/** The way to another part takes no longer than this, so that a refusal comes soon. */
const quickMs = 50;

/** The part to try next. Throws the refusal if the sums refuse too. `refused`: as the store returned it. */
export async function elsewhere(tries: ReserveUnderWay, refused: QuotaItem): Promise<QuotaItem> {
  const rough = refused.overdraft ? undefined : await readParts(tries, refused, false);
  return (rough && (await chooseFrom(tries, rough))) ?? exactly(tries, refused);
}

/** Parts that are a second old must not say that an account has no money. */
async function exactly(tries: ReserveUnderWay, refused: QuotaItem): Promise<QuotaItem> {
  const images = await settled(tries, await readParts(tries, refused, true));
  const chosen = await chooseFrom(tries, images);
  if (chosen) return chosen;
  const whole = wholeOf(images);
  const plan = planReserve(tries.roomyNeed(images[0]), whole);
  // The last read showed what was missing in the one before.
  if (!isRefusal(plan)) return images[0];
  // Nobody else comes by: what refuses calls makes none that would find out that it is quiet.
  if (isOverdrawn(images) && joinWrite(images))
    await (await import('./resize.ts')).join(tries.ports, images[0]);
  throw await tries.refusal(plan, whole);
}

/** The parts of an account whose sum pays for the call, none of them overdrawn any more; others as they are. */
async function settled(tries: ReserveUnderWay, images: AccountParts): Promise<AccountParts> {
  const plan = planReserve(tries.roomyNeed(images[0]), wholeOf(images));
  const write = paysFromSum(images, plan) ? settleWrite(images) : undefined;
  if (!write) return images;
  // If others did it, there is nothing left to do.
  await quickly(tries, images[0], () => tries.ports.quotas.move(write));
  return readParts(tries, images[0], true);
}

const isOverdrawn = (images: AccountParts): boolean => images.some(({ overdraft }) => overdraft);

/** No part may pay for the call by what it has itself. */
const paysFromSum = (images: AccountParts, plan: Payment | ReserveRefusal): boolean =>
  isOverdrawn(images) && (isRefusal(plan) ? isForMoney(plan) : plan.amount > 0n);

async function readParts(tries: ReserveUnderWay, refused: QuotaItem, exact: boolean): Promise<AccountParts> {
  const { ports, request, guesses } = tries;
  let count = refused.parts;
  for (;;) {
    const wanted = count;
    const images = await quickly(tries, refused, () => ports.quotas.read(request.account, wanted, exact));
    const current = images.map((item) => (item.part === refused.part && !exact ? refused : item));
    const [first = refused, ...others] = current;
    // It was split meanwhile, so this is not all of it.
    if (first.parts > wanted) {
      count = first.parts;
      continue;
    }
    const parts: AccountParts = [first, ...others.filter(({ part }) => part < first.parts)];
    guesses.sawSums(wholeOf(parts), first.parts);
    return parts;
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
async function chooseFrom(tries: ReserveUnderWay, images: AccountParts): Promise<QuotaItem | undefined> {
  const need = tries.roomyNeed(images[0]);
  const usable = isOverdrawn(images) ? images.map((item) => ({ ...item, available: 0n })) : images;
  const open = tries.isPinned ? usable.filter(({ part }) => part === tries.part) : usable;
  const whole = wholeOf(images);
  const plan = planReserve(need, whole);
  if (paysFromSum(images, plan)) return undefined;
  const chosen = choosePart(need, open, { chance: tries.ports.random.next(), lastTry: tries.isLast });
  const slot = isRefusal(plan) ? undefined : plan.slot;
  const withRoom = slot && (await roomFor(tries, { images, open, slot }));
  if (withRoom ?? chosen) return withRoom ?? chosen;
  tries.whole = whole;
  if (!isRefusal(plan)) return gathered(tries, { images, open, plan });
  if (plan.reason === 'quota') return undefined;
  const freed = plan.reason === 'concurrency' ? await freedIn(tries, open) : undefined;
  if (freed) return freed;
  throw await tries.refusal(plan, whole);
}

interface RoomRequest {
  images: AccountParts;
  /** The parts that the call may go to. */
  open: readonly QuotaItem[];
  slot: PlanSlot;
}

/**
 * A part with room in the plan slot, moved there from a part that the call may not go to: the balance must not pay while
 * the plan has room. Undefined: a part that the call may go to has room, or none has all else that the call needs.
 */
async function roomFor(
  tries: ReserveUnderWay,
  { images, open, slot }: RoomRequest,
): Promise<QuotaItem | undefined> {
  const need = tries.roomyNeed(images[0]);
  const hasRoom = (item: QuotaItem): boolean => {
    const plan = planReserve(needOn(need, item), item);
    return usesPart(need, item) && !isRefusal(plan) && plan.slot?.key === slot.key;
  };
  const to = open.some(hasRoom) ? undefined : partForRoom(need, open, slot);
  const write = to && roomWrite({ images, to, slot });
  if (!write) return undefined;
  if (!(await quickly(tries, to, () => tries.ports.quotas.move(write)))) throw await contended(tries, to);
  const count = (to.plan.get(slot.key) ?? 0) + (write.changes.at(-1)?.plan.get(slot.key)?.calls ?? 0);
  return { ...to, plan: new Map([...to.plan, [slot.key, count]]) };
}

interface Gathering {
  images: AccountParts;
  /** The parts that the call may go to. */
  open: readonly QuotaItem[];
  plan: Payment;
}

/** No part has enough, but all together have. */
async function gathered(tries: ReserveUnderWay, { images, open, plan }: Gathering): Promise<QuotaItem> {
  const need = tries.roomyNeed(images[0]);
  const withMoney = (item: QuotaItem): ReturnType<typeof planReserve> =>
    planReserve(needOn(need, item), { ...item, available: plan.amount });
  const used = open.filter((item) => usesPart(need, item));
  const to = used
    .filter((item) => !isRefusal(withMoney(item)))
    .toSorted((a, b) => largestFirst(a.available, b.available))[0];
  if (!to) {
    const refusal = used.map(withMoney).find(isRefusal) ?? { reason: 'concurrency' };
    throw await tries.refusal(refusal, wholeOf(images));
  }
  const write = plan.amount > 0n ? gatherWrite(images, to, plan.amount) : undefined;
  if (!write) return to;
  // Whoever moves money meets others who do, so it is tried once.
  const moved = !tries.hasGathered && (await quickly(tries, to, () => tries.ports.quotas.move(write)));
  tries.hasGathered = true;
  if (!moved) throw await contended(tries, to);
  return { ...to, available: plan.amount };
}

/** Frees places in the first part in which calls crashed. */
async function freedIn(tries: ReserveUnderWay, images: readonly QuotaItem[]): Promise<QuotaItem | undefined> {
  const { key } = tries.request.need;
  const nowSeconds = tries.ports.clock.now() / 1000;
  const item = images.find((image) => lapsedPlaces(image, key, nowSeconds).size > 0);
  return item && freePlaces(tries, item);
}
