import type {
  CloseKind,
  OpenEntry,
  QuotaItem,
  CloseWrite,
  ReserveWrite,
} from '../../shared/billing/quota-item.ts';
import { Oracle } from '../oracle/oracle.ts';
import { priceList, searchPrice } from './accounts.ts';
import { sumsOf, totalOf } from './sums.ts';
import { countersOf } from './budgets-watch.ts';
import type { Change } from './stored-quotas.ts';

export class Broken extends Error {
  override readonly name = 'Broken';
}

export function hold(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Broken(what);
}

export interface Close {
  kind: CloseKind;
  charge: bigint;
  entry: OpenEntry;
}

/** Checks the invariants after every write with the oracle, and records those that must hold at the end. */
export class Watch {
  readonly oracle = new Oracle(priceList, searchPrice);
  /** Every applied close, by reservation. */
  readonly closes = new Map<string, Close[]>();
  /** Late charges, by reservation. */
  readonly late = new Map<string, bigint>();
  /** When each open entry was opened, in true time. */
  readonly openedMs = new Map<string, number>();

  saw(change: Change, nowMs: number): void {
    this.#entries(change, nowMs);
    if (change.reserve) this.#opened(change, change.reserve);
    if (change.close) this.#closed(change, change.close);
    // A transaction reports each changed part, and a late charge changes one.
    if (change.late) this.#chargedLate(change.late.row.id.replace('late#', ''), change.late.difference);
    const off = totalOf(change.after);
    const { account, shard: part } = change.after;
    hold(off === 0n, `part ${part} of ${account} is off by ${off}`);
    this.#balanced(change);
  }

  /** An id stays in its part for life: only a close removes its open entry. */
  #entries({ before, after, reserve, close }: Change, nowMs: number): void {
    for (const [id, { tombstone }] of after.open) {
      if (before?.open.has(id)) continue;
      hold(tombstone || id === reserve?.id, `${id} came to part ${after.shard} without a reserve`);
      this.openedMs.set(id, nowMs);
    }
    for (const id of before?.open.keys() ?? [])
      hold(after.open.has(id) || id === close?.id, `${id} left part ${after.shard} without a close`);
    hold(!reserve || !before?.open.has(reserve.id), `${reserve?.id} was opened while it was open`);
  }

  #opened({ before, account, parts }: Change, { id, entry, slot }: ReserveWrite): void {
    const { available } = sumsOf(parts);
    const { metered = false } = this.oracle.call(id).asked;
    hold(
      (entry.metered ?? false) === metered,
      `${id} is ${metered ? '' : 'not '}metered, its entry says else`,
    );
    hold(metered || entry.amount <= 0n || available >= 0n, `${id} is paid by a sum below zero: ${available}`);
    this.oracle.opened(id, { ...entry, budgets: countersOf(entry) });
    // Counts of the month before are dropped when they are found.
    const stale = before?.plan.get(slot?.staleKey ?? '') ?? 0;
    const { planCalls } = this.oracle.account(account);
    if (slot && stale !== 0) planCalls.set(slot.staleKey, (planCalls.get(slot.staleKey) ?? 0) - stale);
  }

  #closed({ before, account }: Change, { id, closeRecord }: CloseWrite): void {
    const { kind, charge, cost } = closeRecord;
    const entry = before?.open.get(id);
    hold(entry !== undefined, `${id} was closed without being open`);
    const closes = this.closes.get(id) ?? [];
    closes.push({ kind, charge, entry });
    this.closes.set(id, closes);
    const charged = closes.filter((close) => close.charge > 0n).length;
    hold(charged <= 1, `${id} was charged ${charged} times`);
    hold(entry.tombstone === (kind === 'cancelled'), `${id} is ${kind}, but a tombstone is not`);
    if (entry.tombstone) this.oracle.cancelled(account, charge);
    else this.oracle.closed(id, { kind, charge, cost });
  }

  #chargedLate(id: string, difference: bigint): void {
    hold(!this.late.has(id), `${id} was charged late twice`);
    this.oracle.late(id, difference);
    this.late.set(id, difference);
  }

  /** The charge of a call, at its close and later. */
  charged(id: string): bigint {
    const closes = this.closes.get(id) ?? [];
    return closes.reduce((sum, { charge }) => sum + charge, this.late.get(id) ?? 0n);
  }

  #balanced({ account, parts }: Change): void {
    const sums = sumsOf(parts);
    const { granted, spent, metered, held, overrun, closes, planCalls } = this.oracle.account(account);
    const is = (what: string, found: bigint | number, wanted: bigint | number): void =>
      hold(found === wanted, `${account}: ${what} sums to ${found}, the oracle says ${wanted}`);
    is('moved', sums.moved, 0n);
    is('granted', sums.granted, granted);
    is('spent', sums.spent, spent);
    is('what is open', sums.open, held);
    is('settled', sums.settled, closes);
    is('metered', sums.metered, metered);
    is('available', sums.available, granted + metered - spent - held);
    hold(sums.available >= -overrun, `${account} is at ${sums.available}, though overruns sum to ${overrun}`);
    for (const [slot, calls] of sums.plan) is(slot, calls, planCalls.get(slot) ?? 0);
    places(account, parts);
    debts(account, parts);
  }
}

/** No part may pay while another one is overdrawn, so all parts carry the mark. */
function debts(account: string, parts: readonly QuotaItem[]): void {
  const used = parts.filter(({ shard: part }) => part < (parts[0]?.shardCount ?? 1));
  const marked = used.filter(({ overdraft }) => overdraft).length;
  hold(marked === 0 || marked === used.length, `${account}: ${marked} of ${used.length} parts are marked`);
  const owing = parts.find(({ available }) => available < 0n);
  hold(
    owing === undefined || used.length === 1 || marked > 0,
    `part ${owing?.shard} of ${account} is below zero, and the others do not say so`,
  );
}

function places(account: string, parts: readonly QuotaItem[]): void {
  for (const { permits: taken, open } of parts)
    for (const [key, ids] of taken)
      for (const id of ids)
        hold(open.get(id)?.key === key, `${account}: a place of ${key} is taken by ${id}, which is not open`);
}
