/** Frees places of keys with a concurrency limit that crashed calls left. Must never free the place of a call that runs. */
import { lapsedPlaces, withoutPlaces } from '../../billing/parts/places.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveUnderWay } from './open-reservation.ts';

/** The part as it is then. Undefined: every place is taken by a call that runs. */
export async function freePlaces(tries: ReserveUnderWay, item: QuotaItem): Promise<QuotaItem | undefined> {
  const { ports, request, reads } = tries;
  const { key } = request.need;
  const lapsed = lapsedPlaces(item, key, ports.clock.now() / 1000);
  if (lapsed.size === 0) return undefined;
  const { account, part } = item;
  const reply = await reads.until(() => ports.quotas.freePlaces({ account, part, key, lapsed }));
  return reply.done ? withoutPlaces(item, key, [...lapsed.keys()]) : reply.item;
}
