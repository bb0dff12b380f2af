/**
 * What a run needs of the call that it answers, as it is stored with the queued response. Must hold no secret: neither the
 * key nor its header, only the row that the key was found by.
 */
import { isRecord, type JsonRecord } from '../../wire/json.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { ChatCall } from '../call/call.ts';
import type { Reservation, ReservationsPorts } from '../money/open-reservation.ts';
import type { StoredResponse } from '../ports/stored.ts';
import type { CloseRecord, OpenEntry } from '../../billing/quota-item.ts';
import { storedTariff, type StoredTariff } from '../../billing/tariff.ts';
import { Backoff } from '../retry.ts';
import { hostDeadlineOf, leaseEnd } from '../money/reservations.ts';

/** How long after its acceptance a call may begin. */
const beginsWithinMs = 60_000;

export interface HandedCall extends Pick<ChatCall, 'key' | 'parts' | 'entry' | 'startedMs' | 'attribution'> {
  /** Until when it may begin, in epoch milliseconds. */
  untilMs: number;
  /** As the client sent it. */
  body: JsonRecord;
  account: Pick<AccountRow, 'account' | 'plan' | 'concurrency' | 'rpm' | 'tpm'> | undefined;
  /** Absent: an earlier version accepted the call. */
  tariff?: StoredTariff | undefined;
  /** Undefined: the call was free, and nothing limited it. */
  reservation: HandedReservation | undefined;
}

/** @param nowMs its acceptance, which may come long after it has arrived */
export function handedCall(
  call: ChatCall,
  { body, reservation, nowMs }: { body: unknown; reservation: Reservation | undefined; nowMs: number },
): HandedCall {
  const { key, parts, entry, startedMs, attribution } = call;
  const { account, plan, concurrency, rpm, tpm } = call.account ?? {};
  return {
    untilMs: nowMs + beginsWithinMs,
    body: isRecord(body) ? body : {},
    key,
    account: account === undefined ? undefined : { account, plan, concurrency, rpm, tpm },
    parts,
    entry,
    startedMs,
    attribution,
    tariff: storedTariff(call.tariff),
    reservation: reservation && handedReservation(reservation),
  };
}

/** Undefined: the response is answered. */
export const callIn = ({ body }: Pick<StoredResponse, 'body'>): HandedCall | undefined =>
  body.request as HandedCall | undefined;

export function waitingIn({ head, body }: StoredResponse): Waiting | undefined {
  const handed = callIn({ body })?.reservation;
  return handed && { account: head.account, id: requestIdOf(head.id), handed };
}

/** The run that claims a response so that no other can. */
export const withdrawnRun = (id: string): string => `withdrawn ${id}`;

/** The name of its call: of its reservation, its log line, its ledger row. */
export const requestIdOf = (id: string): string => id.replace(/^resp-/, '');

/** What a run reads of the request: its answer is made as events, whether or not somebody follows them. */
export const runBody = ({ body }: HandedCall): JsonRecord => ({ ...body, stream: true });

// A reservation on its way from the invocation that made it to the run that goes on with it. Both ends change its open entry
// only while that has the flag `queued`, so that they never close what the other one uses.

type AmountName = 'amount' | 'input' | 'searchPrice';

/** As it is stored. Amounts are texts: JSON has no whole numbers of that size. */
export interface HandedReservation extends Pick<Reservation, 'part' | 'countsTokens' | 'triesInFlight'> {
  entry: Omit<OpenEntry, AmountName> & { amount: string; input: string; searchPrice?: string | undefined };
  payment: Pick<Reservation['payment'], 'slot' | 'limitedTo' | 'limitedBy'>;
}

/** What is waiting, under the name of its call. */
export interface Waiting {
  account: string;
  id: string;
  handed: HandedReservation;
}

type HandedPorts = Pick<ReservationsPorts, 'clock' | 'random' | 'quotas' | 'log'>;

const takeOverMsMax = 10_000;
const releaseMsMax = 4_000;

export function handedReservation(reservation: Reservation): HandedReservation {
  const { part, countsTokens, triesInFlight, entry, payment } = reservation;
  const { slot, limitedTo, limitedBy } = payment;
  return {
    part,
    countsTokens,
    triesInFlight,
    entry: {
      ...entry,
      amount: String(entry.amount),
      input: String(entry.input),
      searchPrice: entry.searchPrice === undefined ? undefined : String(entry.searchPrice),
    },
    payment: { slot, limitedTo, limitedBy },
  };
}

/**
 * Makes the reservation that of a call under way. Undefined: it was closed before, so nothing may be asked of an upstream.
 * Throws StoreUnavailable when that stays unknown. Only for the one run that has claimed the response.
 */
export async function takeOver(
  ports: HandedPorts,
  { account, id, handed }: Waiting,
  deadlineMs: number,
): Promise<Reservation | undefined> {
  const { clock, quotas } = ports;
  const { part, payment } = handed;
  const hostDeadlineMs = hostDeadlineOf({ deadlineMs });
  const entry = entryOf(handed);
  const backoff = new Backoff(ports, takeOverMsMax);
  const reply = await backoff.until(() => {
    const until = leaseEnd(clock.now(), hostDeadlineMs);
    return quotas.renew({ account, shard: part, id, entry, until, startsRun: true });
  });
  if (!reply.done && !(backoff.unknowns > 0 && isTaken(reply.item?.open.get(id)))) return undefined;
  return {
    ...handed,
    account,
    id,
    entry: { ...entry, queued: undefined },
    payment: { ...payment, amount: entry.amount, balanceNeeded: entry.amount },
    item: undefined,
    hostDeadlineMs,
  };
}

/** Not by a tombstone, and not waiting: an earlier try was applied. */
const isTaken = (open: OpenEntry | undefined): boolean =>
  open !== undefined && !open.tombstone && open.queued !== true;

/**
 * Closes what waits, for nothing. Never throws: what cannot be closed is closed by the sweeper.
 * @param own true for the run alone: also what a try of its take-over may have changed
 */
export async function releaseWaiting(ports: HandedPorts, waiting: Waiting, own = false): Promise<void> {
  const { clock, quotas, log } = ports;
  const { account, id, handed } = waiting;
  const { part, triesInFlight } = handed;
  const entry = entryOf(handed);
  const backoff = new Backoff(ports, releaseMsMax);
  const close = (open: OpenEntry) => {
    const at = Math.floor(clock.now() / 1000);
    const closeRecord: CloseRecord = { id, kind: 'released', charge: 0n, at };
    return backoff.until(() =>
      quotas.close({ account, shard: part, id, entry: open, releaseSlot: true, closeRecord }),
    );
  };
  try {
    const reply = await close(entry);
    const open = reply.done ? undefined : reply.item?.open.get(id);
    if (own && open && isTaken(open)) await close(open);
    if (triesInFlight === 0) return;
    const { guard } = await import('../money/late-settle.ts');
    await guard(ports, { account, part, id, entry, triesInFlight }, new Backoff(ports, releaseMsMax));
  } catch (error) {
    log.fault(id, error);
  }
}

const entryOf = ({ entry }: HandedReservation): OpenEntry => ({
  ...entry,
  amount: BigInt(entry.amount),
  input: BigInt(entry.input),
  searchPrice: entry.searchPrice === undefined ? undefined : BigInt(entry.searchPrice),
});
