/** What the tries of a reserve after its first are made on. Loaded by the first reserve that needs a second try. */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import { isRefusal, planReserve, type ReserveRefusal } from '../../billing/reservation.ts';
import { contended } from './reserve-refusals.ts';
import { elsewhere } from './elsewhere.ts';
import { freePlaces } from './free-places.ts';
import type { ReserveUnderWay } from './open-reservation.ts';

/** The part to try next, after a write was refused. `image`: as the store returned it; undefined: there is none. */
export async function afterRefusedWrite(
  tries: ReserveUnderWay,
  { part, parts }: QuotaItem,
  image: QuotaItem | undefined,
): Promise<QuotaItem> {
  const { account, need } = tries.request;
  if (image?.parts === 1 && part === 0) return image;
  if (!image && part === 0) {
    const empty = emptyQuota(account);
    if (!isRefusal(planReserve(need, empty)))
      await tries.reads.until(() => tries.ports.quotas.create(account));
    return empty;
  }
  if (tries.isPinned) {
    // Shares of a part that is not in use would come on top of those of the others.
    if (!image || part >= image.parts)
      throw await contended(tries, { ...tries.guessOn(), part: 0, parts: 1 });
    return image;
  }
  // The number of parts was wrong. What a part says that is no more in use, or never was, is not to be trusted.
  if (!image || part >= image.parts) return { ...tries.guessOn(), part: 0, parts: 1 };
  return image.parts === parts || tries.isLast ? elsewhere(tries, image) : tries.guessOn();
}

/** The part to try next, after a plan was refused. Throws the refusal. */
export async function afterRefusal(
  tries: ReserveUnderWay,
  item: QuotaItem,
  refusal: ReserveRefusal,
): Promise<QuotaItem> {
  // The key's budget is the same for every part.
  if (item.parts > 1 && refusal.reason !== 'budget') return elsewhere(tries, item);
  const freed = refusal.reason === 'concurrency' ? await freePlaces(tries, item) : undefined;
  if (freed) return freed;
  throw await tries.refusal(refusal, item);
}
