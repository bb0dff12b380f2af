import type { CloseKind, OpenEntry, QuotaItem } from '../../shared/billing/quota-item.ts';
import { imbalance } from '../../shared/billing/quota-item.ts';
import type { LateCharge } from '../../shared/relay/ports/stores/quota-store.ts';
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

/** What one account may have come to, kept apart from the item that the store keeps. */
class Tally {
  granted = 0n;
  /** How far the balance may be below zero: charges above what was reserved, and corrections. */
  overrun = 0n;
  /** Calls counted and kept, by slot. */
  readonly kept = new Map<string, number>();
  /** Calls let in, by key and minute. */
  readonly rate = new Map<string, number>();
}

/** Checks what must hold after every single write, and remembers what must hold at the end. */
export class Watch {
  readonly tallies = new Map<string, Tally>();
  /** Every close that was done, by reservation. */
  readonly closes = new Map<string, Close[]>();
  /** Late charges, by reservation. */
  readonly late = new Map<string, bigint>();
  /** When what is open was opened, in true time. */
  readonly openedMs = new Map<string, number>();

  tally(account: string): Tally {
    const tally = this.tallies.get(account) ?? new Tally();
    this.tallies.set(account, tally);
    return tally;
  }

  granted(account: string, amount: bigint): void {
    const tally = this.tally(account);
    tally.granted += amount;
    if (amount < 0n) tally.overrun -= amount;
  }

  saw(change: Change, nowMs: number): void {
    for (const id of change.after.open.keys()) if (!change.before?.open.has(id)) this.openedMs.set(id, nowMs);
    if (change.reserve) this.#opened(change);
    if (change.close) this.#closed(change);
    if (change.late) this.#chargedLate(change.late);
    const { account, part } = change.after;
    const off = imbalance(change.after);
    hold(off === undefined, `part ${part} of ${account} is off by ${off}`);
    this.#balanced(change.whole);
    this.#counted(change.whole);
  }

  #opened({ before, after, account, reserve }: Change): void {
    if (!reserve) return;
    const { id, slot, rate } = reserve;
    hold(!before?.open.has(id), `${id} was opened while it was open`);
    const tally = this.tally(account);
    if (slot) {
      tally.kept.delete(slot.staleKey);
      tally.kept.set(slot.key, (tally.kept.get(slot.key) ?? 0) + 1);
      const calls = after.plan.get(slot.key) ?? 0;
      hold(
        slot.limit === null || calls <= slot.limit,
        `${id} is call ${calls} of ${slot.limit} on ${slot.key}`,
      );
    }
    if (!rate) return;
    const minute = String(rate.minute);
    const calls = (tally.rate.get(minute) ?? 0) + 1;
    tally.rate.set(minute, calls);
    hold(calls <= (rate.max ?? Infinity), `${calls} calls in a minute of ${rate.max}`);
  }

  #closed({ before, account, close }: Change): void {
    if (!close) return;
    const { id, closeRecord } = close;
    const entry = before?.open.get(id);
    hold(entry !== undefined, `${id} was closed without being open`);
    const closes = this.closes.get(id) ?? [];
    closes.push({ kind: closeRecord.kind, charge: closeRecord.charge, entry });
    this.closes.set(id, closes);
    const charged = closes.filter(({ charge }) => charge > 0n).length;
    hold(charged <= 1, `${id} was charged ${charged} times`);
    const tally = this.tally(account);
    if (closeRecord.charge > entry.amount) tally.overrun += closeRecord.charge - entry.amount;
    if (entry.slot !== '' && closeRecord.kind === 'released')
      tally.kept.set(entry.slot, (tally.kept.get(entry.slot) ?? 0) - 1);
  }

  #chargedLate({ row, difference }: LateCharge): void {
    const id = row.id.replace('late#', '');
    hold(!this.late.has(id), `${id} was charged late twice`);
    const kinds = this.closes.get(id)?.map(({ kind }) => kind) ?? [];
    hold(kinds.includes('expired'), `${id} was charged late, though it did not expire`);
    this.late.set(id, difference);
    if (difference > 0n) this.tally(row.account).overrun += difference;
  }

  /** What a call was charged, by its close and after it. */
  charged(id: string): bigint {
    const closes = this.closes.get(id) ?? [];
    return closes.reduce((sum, { charge }) => sum + charge, this.late.get(id) ?? 0n);
  }

  #balanced(item: QuotaItem): void {
    const { account, available } = item;
    hold(item.moved === 0n, `${item.moved} came to the parts of ${account} from nowhere`);
    const { granted, overrun } = this.tally(account);
    hold(item.granted === granted, `${account} was granted ${granted}, the item says ${item.granted}`);
    hold(available >= -overrun, `${account} is at ${available}, though overruns sum to ${overrun}`);
  }

  #counted({ account, open, plan, places }: QuotaItem): void {
    for (const [key, ids] of places)
      for (const id of ids)
        hold(open.get(id)?.key === key, `${account}: a place of ${key} is taken by ${id}, which is not open`);
    const { kept } = this.tally(account);
    // Room that moved for a call that was refused in the end leaves a count of none.
    for (const [slot, calls] of plan)
      hold(calls === (kept.get(slot) ?? 0), `${account}: ${slot} counts ${calls}, wanted ${kept.get(slot)}`);
  }
}
