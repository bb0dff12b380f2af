/**
 * Handles writes that arrive late: a close after its reservation expired, and tries of a reserve after its call is over. A late
 * close is charged the difference from the expiry's charge, once. It must never charge again after an earlier try of the same close
 * that may have charged.
 */
import {
  computeExpiryCharge,
  type CloseWrite,
  type CloseKind,
  type CloseRecord,
  type OpenEntry,
} from '../../billing/quota-item.ts';
import { formatLoss } from '../../billing/audit/loss-lines.ts';
import { firstCounter } from '../../billing/shares.ts';
import { buildLateRow } from '../../billing/ledger-row.ts';
import type { Backoff } from '../retry.ts';
import type { ReservationsPorts, Reservation, ReservationRequest } from './open-reservation.ts';
import type { Clock } from '../ports/host.ts';
import type { QuotaStore, WriteReply } from '../ports/money-stores.ts';
import { StoreUnavailable } from '../ports/store-errors.ts';

/** The ledger has the row of a close some seconds after it. */
const rowPauseMs = 1_000;
const rowTriesMax = 5;

/**
 * @param backoff the backoff of the close: an unknown outcome means that one of its tries may have been applied
 * @param isShared another invocation may have settled the call
 */
export async function settleLate(
  ports: ReservationsPorts,
  write: CloseWrite,
  backoff: Backoff,
  isShared = false,
): Promise<void> {
  const { quotas, log } = ports;
  const unsure = isShared || backoff.unknowns > 0;
  const kind = unsure ? await findCloseKind(ports, write, backoff) : 'expired';
  if (kind === undefined || kind === 'cancelled')
    return log.event('settle_late', { ...formatLoss(write), unsure: true });
  if (kind !== 'expired') return;
  const difference = write.closeRecord.charge - computeExpiryCharge(write.entry);
  if (difference !== 0n) {
    const row = buildLateRow(write, difference);
    await backoff.until(() => quotas.chargeLate({ difference, row }));
  }
  log.event('settle_late', { ...formatLoss(write), difference_nano: String(difference) });
}

async function findCloseKind(
  { quotas, clock }: ReservationsPorts,
  { account, id, shard }: CloseWrite,
  backoff: Backoff,
): Promise<CloseKind | undefined> {
  for (let tries = 0; tries < rowTriesMax; tries += 1) {
    const kind = await backoff.until(() => quotas.closedAs(account, id, shard));
    if (kind !== undefined) return kind;
    await clock.sleep(rowPauseMs);
  }
  return undefined;
}

// Ends the tries of a reserve that may still be applied. Must never close an entry that its call uses.

/** A finished reserve, with its tries that may still be applied. */
export type GuardedReserve = Pick<Reservation, 'account' | 'shard' | 'id' | 'triesInFlight'> &
  Pick<ReservationRequest, 'entry'>;

/** Longer than a try of a reserve can be under way. */
const tombstoneSeconds = 30;

/**
 * Closes any applied try of a reserve, and puts a tombstone under its id, so that tries still in flight fail.
 * Returns whether no try was applied, and none will be.
 */
export async function guardReserve(
  ports: Pick<ReservationsPorts, 'clock' | 'random' | 'quotas' | 'log'>,
  reserve: GuardedReserve,
  backoff: Backoff,
): Promise<boolean> {
  const { quotas, clock, log } = ports;
  const { account, shard, id } = reserve;
  try {
    for (let inFlight = reserve.triesInFlight; inFlight > 0; inFlight -= 1) {
      const putTombstone = (): ReturnType<QuotaStore['tombstone']> =>
        quotas.tombstone({ account, shard, id, entry: tombstoneOf(reserve, clock) });
      let reply = await backoff.until(putTombstone);
      if (isMissing(reply)) {
        // A grant may create the item before the try arrives.
        if (shard === 0 || shard >= firstCounter) await backoff.until(() => quotas.create(account, shard));
        reply = await backoff.until(putTombstone);
        if (isMissing(reply)) throw new StoreUnavailable(`shard ${shard} of ${account} is missing`);
      }
      const applied = reply.done ? undefined : reply.item?.open.get(id);
      if (!applied || applied.tombstone) return inFlight === reserve.triesInFlight;
      const at = secondsOf(clock);
      const closeRecord: CloseRecord = { id, kind: 'released', charge: 0n, at };
      const close = { account, shard, id, entry: applied, releaseSlot: true, closeRecord };
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
  searchPrice: undefined,
  budget: undefined,
  tariff: undefined,
  tombstone: true,
});

const isMissing = (reply: WriteReply): boolean => !reply.done && !reply.item;
