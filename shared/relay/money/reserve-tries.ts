/**
 * The tries of one reserve: a first one on what was last seen of the account, the next ones on what the store returned. Must never
 * leave a shard while a try on it may still be applied.
 */
import { formatBudgetCounters } from '../../billing/ledger-row.ts';
import { createQuotaItem, type QuotaItem, type ReserveWrite } from '../../billing/quota-item.ts';
import {
  findUncountedLeases,
  isOfAccount,
  isRefusal,
  minuteOf,
  planReservation,
  type CallPayment,
  type ReserveNeed,
} from '../../billing/reservation.ts';
import { drawCounter, listSlotsWithRoom, pickShard, shareNeed } from '../../billing/shares.ts';
import type { WriteReply } from '../ports/money-stores.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import { Backoff } from '../retry.ts';
import { BudgetHolds } from './budget-hold.ts';
import type { CachedBalances } from './cached-balances.ts';
import {
  nameBudget,
  type NextTry,
  type Reservation,
  type ReservationRequest,
  type ReservationsPorts,
  type ReserveStep,
} from './open-reservation.ts';

const triesMax = 4;
const shardWritesMax = 3;
const reserveBudgetMs = 1_500;

/** How long an entry counts without a renewal. Calls up to this long cost two writes. */
const leaseMs = 60_000;
/** A lease is renewed shortly before its end. */
export const renewEveryMs = leaseMs - 2_000;

/** The end of a lease that starts now, in Unix seconds. No call lives longer than its host. */
export const computeLeaseEnd = (nowMs: number, hostDeadlineMs: number): number =>
  Math.ceil(Math.min(nowMs + leaseMs, hostDeadlineMs) / 1000);

/** A settle must finish before the host kills the invocation, some seconds after the deadline. */
const settleBudgetMs = 4_000;

const hostDeadlineOf = ({ deadlineMs }: Pick<ReservationRequest, 'deadlineMs'>): number =>
  deadlineMs + settleBudgetMs;

interface Tries {
  ports: ReservationsPorts;
  request: ReservationRequest;
  balances: CachedBalances;
  /** True while a settle of the account waits for a throttled store: then reserves wait too. */
  mustWait: () => boolean;
  /** Backoff of the reserve's own writes. */
  backoff: Backoff;
  /** Backoff of reads, which leave nothing behind. */
  reads: Backoff;
  holds: BudgetHolds;
  /** When an entry that may have been applied ends, in epoch milliseconds. */
  endMs: number;
}

/** Entries that a failed reserve may have left behind. */
export interface FailedReserve extends Pick<Tries, 'request' | 'holds' | 'endMs'> {
  error: unknown;
  /** The shard of the last try. */
  shard: number;
  triesInFlight: number;
}

/** `throttled`: tries that the store put off. */
export type ReserveOutcome = { reservation: Reservation; throttled: number } | { failed: FailedReserve };

/** The state of a reserve before a try. */
interface TryState extends NextTry {
  shard: number;
  writes: number;
  payments: readonly CallPayment[];
}

/** Never rejects. */
export async function tryToReserve(
  ports: ReservationsPorts,
  request: ReservationRequest,
  { balances, mustWait }: Pick<Tries, 'balances' | 'mustWait'>,
): Promise<ReserveOutcome> {
  const { repeats, clock } = ports;
  const backoff = new Backoff(ports, reserveBudgetMs, { repeats });
  const reads = new Backoff(ports, reserveBudgetMs, { repeats });
  const endMs = Math.min(clock.now() + leaseMs, request.deadlineMs);
  const holds = new BudgetHolds(ports.counters, reads, request);
  let state: TryState | undefined;
  try {
    const tries: Tries = { ports, request, balances, mustWait, backoff, reads, holds, endMs };
    const { shard } = request;
    const item = { ...estimateShard(tries, request.shardCount), ...(shard !== undefined && { shard }) };
    state = { item, search: {}, shard: 0, writes: 0, payments: [] };
    for (let count = 1; count <= triesMax && state.writes < limitWrites(state.item); count += 1) {
      const result: TryResult = await tryOnce(tries, state, count === triesMax);
      if ('reservation' in result) return { ...result, throttled: backoff.throttled };
      state = result;
    }
    const { refuseContended } = await import('./reserve-refusals.ts');
    throw await refuseContended(stepOf(tries, state), state.item);
  } catch (error) {
    // Once a try may be applied, all further ones are on its shard.
    const shard = state?.item.shard ?? 0;
    return { failed: { error, request, shard, triesInFlight: backoff.unknowns, holds, endMs } };
  }
}

type TryResult = TryState | { reservation: Reservation };

async function tryOnce(tries: Tries, state: TryState, isLastTry: boolean): Promise<TryResult> {
  const { request, holds, backoff, balances, ports } = tries;
  const { need } = request;
  const { item, writes } = state;
  const { shard } = item;
  const step = stepOf(tries, state);
  const onShard = item.shardCount === 1 ? need : shareNeed(step.needWithRoom(item), item);
  const own = { ...onShard, budgetLeft: holds.tightest?.left };
  const lastTry = isLastTry || writes === limitWrites(item) - 1;
  const payment = planReservation(own, item, { lastTry });
  if (isRefusal(payment)) {
    const { planAfterRefusal } = await import('./shards.ts');
    return { ...state, ...(await planAfterRefusal(step, item, payment)) };
  }
  if (!(await holds.tryHold(payment.amount))) return state;
  const write = reserveWriteOf(request, { item, payment, need: own }, ports.clock.now());
  const payments = [...state.payments, payment];
  const reply = await backoff.until(() => send(tries, write));
  if (reply.item) balances.keepShard(reply.item);
  if (reply.done) {
    const { entry } = write;
    return { reservation: await keepReservation(tries, { shard, entry, payment, item: reply.item }) };
  }
  // Refused, but the id is open: an earlier try, whose reply was lost, was applied.
  const applied = reply.item?.open.get(need.id);
  if (applied) {
    // Perhaps not the last one, which was planned on another state: by its payment the upstream's limit is set.
    const isOfIt = ({ amount, slot }: CallPayment): boolean =>
      amount === applied.amount && (slot?.key ?? '') === applied.slot;
    const paid = { entry: applied, payment: payments.find(isOfIt) ?? payment, item: undefined };
    return { reservation: await keepReservation(tries, { shard, ...paid }) };
  }
  const { planAfterRefusedWrite } = await import('./shards.ts');
  const tried = { ...state, shard, payments, writes: writes + 1 };
  return { ...tried, ...(await planAfterRefusedWrite(stepOf(tries, tried), item, reply.item)) };
}

/** The tries as the code sees them that only few reserves need. */
function stepOf(tries: Tries, { search, shard, writes }: TryState): ReserveStep {
  const { ports, request, balances, reads, backoff, holds } = tries;
  const { need, account } = request;
  return {
    ...search,
    ports,
    request,
    shard,
    reads,
    isPinned: backoff.unknowns > 0,
    isLast: writes >= shardWritesMax - 1,
    keepSums: (sums, shardCount) => balances.storeSums(sums, shardCount),
    estimateShard: () => estimateShard(tries),
    needWithRoom: ({ shardCount }) =>
      shardCount === 1
        ? need
        : { ...need, slots: listSlotsWithRoom(need.slots, balances.estimateSums(account).plan) },
    refuse: async (refusal, sums) => {
      if (isOfAccount(refusal)) balances.keepRefusal(sums, refusal.reason === 'open_entries');
      if (refusal.reason === 'budget') await holds.readUse();
      return request.createRefusal(nameBudget(refusal, holds.tightest), sums);
    },
  };
}

function estimateShard({ request, balances, ports }: Tries, shardCount?: number): QuotaItem {
  const { account, need } = request;
  const counter = need.metered ? drawCounter(need, ports.random.next()) : undefined;
  if (counter !== undefined) return createQuotaItem(account, counter);
  const sums = balances.estimateSums(account, shardCount);
  if (sums.shardCount === 1) return sums;
  // A shard without a share in a slot may have got room from another one.
  const plan = new Map(need.slots.map(({ key }) => [key, -1]));
  return { ...sums, plan, shard: pickShard(need, sums, ports.random.next()) };
}

async function send(
  { ports, request, endMs, mustWait }: Tries,
  write: ReserveWrite,
): Promise<WriteReply<{ item: QuotaItem }>> {
  // An environment may resume from a freeze after the sweeper has closed an earlier try; a new try would then be
  // charged a second time.
  if (ports.clock.now() >= endMs)
    throw await request.createRefusal({ reason: 'out_of_time' }, createQuotaItem(request.account));
  if (mustWait()) throw new StoreBusy('settles go first');
  return ports.quotas.reserve(write);
}

/** Frees what budgets hold beyond the amount. */
async function keepReservation(
  { request, holds, backoff: { unknowns } }: Tries,
  { shard, ...reserved }: Pick<Reservation, 'entry' | 'payment' | 'item'> & { shard: number },
): Promise<Reservation> {
  const { account, need, rateCount } = request;
  await holds.reduceTo(reserved.entry.amount);
  const { ofKey } = holds;
  const used = ofKey?.usedByOthers;
  return {
    account,
    shard,
    id: need.id,
    ...reserved,
    rateCount,
    budget: ofKey && used !== undefined ? { ...ofKey.budget, used } : undefined,
    countsTokens: need.accountTpm !== undefined,
    triesInFlight: reserved.item ? unknowns : unknowns - 1,
    hostDeadlineMs: hostDeadlineOf(request),
  };
}

/** A shard of several is not contested: others take from it too. */
const limitWrites = ({ shardCount }: QuotaItem): number => (shardCount === 1 ? triesMax : shardWritesMax);

/** @param need with the limits of this shard */
function reserveWriteOf(
  { account, entry, budgets = [], deadlineMs }: ReservationRequest,
  { item, payment, need }: { item: QuotaItem; payment: CallPayment; need: ReserveNeed },
  nowMs: number,
): ReserveWrite {
  const { key, id, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const { shardCount, shard } = item;
  const counted = item.rate?.minute;
  // Another environment's clock may be ahead; its later minute is then used.
  const minute = Math.max(minuteOf(need.nowMs), counted ?? 0);
  const { slot, amount, balanceNeeded } = payment;
  const { leases, countOfKey } = findUncountedLeases(need, item);
  const shares = [slot?.limit ?? undefined, maxConcurrency, accountConcurrency, accountRpm, accountTpm];
  const hasRate = accountRpm !== undefined || accountTpm !== undefined;
  return {
    account,
    shard,
    id,
    entry: {
      ...entry,
      until: computeLeaseEnd(nowMs, hostDeadlineOf({ deadlineMs })),
      amount,
      slot: slot?.key ?? '',
      budget:
        amount > 0n
          ? formatBudgetCounters(
              key,
              budgets.map(({ counter }) => counter),
            )
          : undefined,
      tombstone: false,
      ...(need.metered && { metered: true }),
    },
    balanceNeeded,
    shardCount: shares.some((share) => share !== undefined) ? shardCount : undefined,
    uncountedLeases: leases,
    openMax: accountConcurrency === undefined ? undefined : accountConcurrency + leases.size,
    slot,
    permit: maxConcurrency === undefined ? undefined : { key, max: maxConcurrency + countOfKey },
    rate: hasRate
      ? {
          minute,
          max: accountRpm,
          tokensMax: accountTpm,
          tokens: need.estimate.inputTokens,
          starts: counted !== minute,
        }
      : undefined,
  };
}
