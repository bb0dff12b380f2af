/** Ends the tries of a reserve that may still be applied. Must never close an entry that its call uses. */
import type { CloseRecord, OpenEntry } from '../../billing/quota-item.ts';
import type { Clock } from '../ports/clock.ts';
import type { QuotaStore, WriteReply } from '../ports/stores/quota-store.ts';
import { StoreUnavailable } from '../ports/stores/store-errors.ts';
import type { Backoff } from './backoff.ts';
import type { Reservation, ReservationRequest, ReservationsPorts } from './open-reservation.ts';

/** A finished reserve, with its tries that may still be applied. */
export type GuardedReserve = Pick<Reservation, 'account' | 'part' | 'id' | 'triesInFlight'> &
  Pick<ReservationRequest, 'entry'>;

/** Longer than a try of a reserve can be under way. */
const tombstoneSeconds = 30;

/**
 * Closes any applied try of a reserve, and puts a tombstone under its id, so that tries still in flight fail.
 * Returns whether no try was applied, and none will be.
 */
export async function guard(
  ports: Pick<ReservationsPorts, 'clock' | 'random' | 'quotas' | 'log'>,
  reserve: GuardedReserve,
  backoff: Backoff,
): Promise<boolean> {
  const { quotas, clock, log } = ports;
  const { account, part, id } = reserve;
  try {
    for (let inFlight = reserve.triesInFlight; inFlight > 0; inFlight -= 1) {
      const bar = (): ReturnType<QuotaStore['tombstone']> =>
        quotas.tombstone({ account, part, id, entry: tombstoneOf(reserve, clock) });
      let reply = await backoff.until(bar);
      if (isMissing(reply)) {
        // A grant may create the item before the try arrives.
        if (part === 0) await backoff.until(() => quotas.create(account));
        reply = await backoff.until(bar);
        if (isMissing(reply)) throw new StoreUnavailable(`part ${part} of ${account} is missing`);
      }
      const applied = reply.done ? undefined : reply.item?.open.get(id);
      if (!applied || applied.tombstone) return inFlight === reserve.triesInFlight;
      const at = secondsOf(clock);
      const closeRecord: CloseRecord = { id, kind: 'released', charge: 0n, at };
      const close = { account, part, id, entry: applied, releaseSlot: true, closeRecord };
      await backoff.until(() => quotas.close(close));
    }
  } catch {
    log.event('reserve_unknown', { request_id: id, account });
  }
  return false;
}

const secondsOf = (clock: Clock): number => Math.floor(clock.now() / 1000);

const tombstoneOf = ({ entry }: GuardedReserve, clock: Clock): OpenEntry => ({
  ...entry,
  until: secondsOf(clock) + tombstoneSeconds,
  amount: 0n,
  input: 0n,
  slot: '',
  budget: undefined,
  busy: false,
  tombstone: true,
  queued: undefined,
});

const isMissing = (reply: WriteReply): boolean => !reply.done && !reply.item;
