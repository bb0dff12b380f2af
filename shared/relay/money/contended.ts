/** The refusal of a call whose tries met those of others. */
import { needOn } from '../../billing/parts/shares.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import { isForMoney, isRefusal, planReserve } from '../../billing/reservation.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import type { ReserveUnderWay } from './open-reservation.ts';

/** Others took each time what this call was to have. `item`: what the last try was made on. */
export function contended(tries: ReserveUnderWay, item: QuotaItem): Refusal {
  const { request, whole = item } = tries;
  const short = planReserve(needOn(tries.roomyNeed(item), item), { ...item, available: -1n });
  if (item.parts > 1 && isRefusal(short) && isForMoney(short))
    return request.refused({ reason: 'reserved', available: whole.available, need: short.need }, whole);
  return refuse('unavailable', 'The account is very busy at the moment. Nothing was charged; try again.', {
    headers: { 'retry-after': '1' },
    reason: 'reserve_contended',
  });
}
