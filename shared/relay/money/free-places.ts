/** Frees places of keys with a concurrency limit that crashed calls left. Must never free the place of a call that runs. */
import { lapsedPlaces, withoutPlaces } from '../../billing/parts/places.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveTries } from './reserve-tries.ts';

/** The part as it is then. Undefined: every place is taken by a call that runs. */
export async function freePlaces(tries: ReserveTries, item: QuotaItem): Promise<QuotaItem | undefined> {
  const { ports, request, backoff } = tries;
  const { key } = request.need;
  const lapsed = lapsedPlaces(item, key, ports.clock.now() / 1000);
  if (lapsed.size === 0) return undefined;
  const { account, part } = item;
  const reply = await backoff.until(() => ports.quotas.freePlaces({ account, part, key, lapsed }));
  return reply.done ? withoutPlaces(item, key, [...lapsed.keys()]) : reply.item;
}
