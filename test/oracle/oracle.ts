import { Endings, exactly, nothing, type Bounds, type CallAsked, type Delivered } from './endings.ts';
import type { ChargeText } from './price-list.ts';

/** A disagreement between the oracle and what was written. */
export class Disagreement extends Error {
  override readonly name = 'Disagreement';
}

export function agree(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Disagreement(what);
}

/** The reservation of a running call. */
export interface Holding {
  amount: bigint;
  /** The plan slot, or an empty text. */
  slot: string;
  /** The budgets that also hold the amount: `counter period`. */
  budgets?: readonly string[] | undefined;
}

interface Call {
  asked: CallAsked;
  delivered?: Delivered;
  /** Output tokens that the upstream may write for all answers; undefined without a limit. */
  outputMax?: number | undefined;
  holding?: Holding;
  /** The reservation of a late retry. */
  again?: Holding;
  /** The amount that the expiry charged. */
  expiredFor?: bigint;
  charged: bigint;
  /** True after the close. A late retry of its reserve may open it once more, for nothing. */
  isClosed: boolean;
  /** True once its ledger row is written, so its budget has the cost instead of the reserved amount. */
  isInLedger: boolean;
}

/** The oracle's view of one account. */
export class Account {
  granted = 0n;
  spent = 0n;
  /** The part that no balance paid. */
  metered = 0n;
  held = 0n;
  closes = 0;
  /** The largest allowed debt: upstream output beyond limits, late charges, corrections. */
  overrun = 0n;
  /** Calls counted on a plan, by slot. */
  readonly planCalls = new Map<string, number>();
}

/** All calls and accounts, recomputed only from the clients' requests and the upstreams' answers. */
export class Oracle {
  readonly endings: Endings;
  readonly accounts = new Map<string, Account>();
  readonly calls = new Map<string, Call>();
  /** The account of each redeemed code. */
  readonly codes = new Map<string, string>();
  /** The amounts that codes and payments must credit, by grant. */
  readonly dues = new Map<string, bigint>();
  /** The spent and reserved amounts of budgets: `counter period`. */
  readonly budgets = new Map<string, { used: bigint; overrun: bigint }>();

  constructor(list: readonly ChargeText[], searchPrice?: number) {
    this.endings = new Endings(list, searchPrice);
  }

  account(name: string): Account {
    const account = this.accounts.get(name) ?? new Account();
    this.accounts.set(name, account);
    return account;
  }

  call(id: string): Call {
    const call = this.calls.get(id);
    agree(call !== undefined, `${id} was never asked for`);
    return call;
  }

  budget(name: string): { used: bigint; overrun: bigint } {
    const budget = this.budgets.get(name) ?? { used: 0n, overrun: 0n };
    this.budgets.set(name, budget);
    return budget;
  }

  granted(name: string, amount: bigint): void {
    const account = this.account(name);
    account.granted += amount;
    if (amount < 0n) account.overrun -= amount;
  }

  /** Records a credit that must exist in the end. */
  due(name: string, amount: bigint): void {
    this.dues.set(name, (this.dues.get(name) ?? 0n) + amount);
  }

  /** Credits the first account that sends a code, once, and no other (docs/payments.md). */
  redeemed(code: string, account: string, amount: bigint): void {
    const by = this.codes.get(code);
    agree(by === undefined, `code ${code} of ${by} is redeemed again, by ${account}`);
    this.codes.set(code, account);
    this.due(account, amount);
  }

  /** Records that a customer was told whether the code was credited to the account. */
  toldOfCode(code: string, account: string, isCredited: boolean): void {
    const by = this.codes.get(code);
    agree(by !== undefined, `${account} got an answer about code ${code}, which nobody redeemed`);
    agree((by === account) === isCredited, `${account} was told wrong about code ${code} of ${by}`);
  }

  asked(id: string, asked: CallAsked): void {
    this.calls.set(id, { asked, charged: 0n, isClosed: false, isInLedger: false });
  }

  /** `outputMax` is the limit in the request that reached the upstream. */
  delivered(id: string, delivered: Delivered, outputMax: number | undefined): void {
    Object.assign(this.call(id), { delivered, outputMax });
  }

  opened(id: string, holding: Holding): void {
    const call = this.call(id);
    const { official } = call.asked;
    const { amount, slot, budgets = [] } = holding;
    const isFree = official || slot !== '' || this.endings.isFree(call.asked);
    const search = this.endings.searchOf(call.asked);
    // A metered call reserves an amount only in its budgets.
    const isHeld = !call.asked.metered || budgets.length > 0;
    agree(amount >= (isHeld ? search : 0n), `${id} holds ${amount}, which doesn't cover its search`);
    agree(
      !isFree || amount <= search,
      `${id} holds ${amount}, but nothing is to pay beside a search of ${search}`,
    );
    this.#holds(call, amount);
    if (slot !== '') this.#countOnPlan(call, slot, 1);
    if (call.isClosed) {
      call.again = holding;
      return;
    }
    call.holding = holding;
    this.#spendBudgets(call, amount);
  }

  /** Returns the balance's charge for a call that ended this way. */
  #due({ asked, delivered, holding }: Call, expired: boolean): Bounds {
    if (asked.official) return nothing;
    if (holding?.slot !== '') {
      const search = expired ? this.endings.searchOf(asked) : this.endings.search(delivered ?? {});
      return exactly(search);
    }
    if (expired) return this.endings.expired(asked);
    return delivered ? this.endings.cost(asked, delivered) : nothing;
  }

  closed(id: string, how: { kind: string; charge: bigint; cost?: bigint | undefined }): void {
    const call = this.call(id);
    const { asked, delivered, holding } = call;
    const { kind, charge, cost } = how;
    agree(holding !== undefined, `${id} was closed, but held nothing`);
    if (call.isClosed) return this.#closedAgain(id, call, charge);
    call.isClosed = true;
    const isNothing = !delivered || this.endings.isNothing(delivered);
    const isMade = kind === 'settled' || kind === 'expired';
    agree(kind !== 'settled' || !isNothing, `${id} is settled, but the upstream gave nothing`);
    agree(kind !== 'released' || isNothing, `${id} is released, but the upstream answered`);
    within(charge, this.#due(call, kind === 'expired'), `${kind} call ${id} is charged`);
    if (asked.official && kind === 'settled' && delivered)
      within(cost ?? -1n, this.endings.cost(asked, delivered), `official call ${id} has a cost of`);
    const account = this.account(asked.account);
    this.#holds(call, -holding.amount);
    account.closes += 1;
    this.#charge(call, charge);
    if (kind === 'expired') call.expiredFor = charge;
    else if (!isMade || this.endings.isFreeModel(asked, delivered?.model)) this.#freeSlot(call);
    const above = charge - holding.amount;
    if (above <= 0n) return;
    this.#overrun(call, above);
    const isBounded = !asked.metered || (holding.budgets ?? []).length > 0;
    const mayBeAbove =
      !isBounded || isBeyond(call) || above <= this.endings.leftOpen(asked, delivered?.model);
    agree(mayBeAbove, `${id} holds ${holding.amount} and costs ${charge}, from an honest upstream`);
  }

  #closedAgain(id: string, call: Call, charge: bigint): void {
    const { amount = 0n, slot = '' } = call.again ?? {};
    agree(charge === 0n, `${id} was closed, and is charged ${charge} again`);
    const account = this.account(call.asked.account);
    this.#holds(call, -amount);
    account.closes += 1;
    if (slot !== '') this.#countOnPlan(call, slot, -1);
  }

  /** Records that a tombstone was closed. */
  cancelled(account: string, charge: bigint): void {
    agree(charge === 0n, `a tombstone of ${account} is charged ${charge}`);
    this.account(account).closes += 1;
  }

  late(id: string, difference: bigint): void {
    const call = this.call(id);
    agree(call.expiredFor !== undefined, `${id} is charged late, but did not expire`);
    within(call.charged + difference, this.#due(call, false), `late call ${id} is charged`);
    this.account(call.asked.account).closes += 1;
    this.#charge(call, difference);
    this.#overrun(call, difference);
    this.#spendBudgets(call, difference);
  }

  /** Records the ledger row of a close, which returns the unused part to the budget. */
  inLedger(id: string): void {
    const call = this.call(id);
    if (call.isInLedger || !call.holding) return;
    call.isInLedger = true;
    const first = call.expiredFor ?? call.charged;
    this.#spendBudgets(call, first - call.holding.amount);
  }

  /** Reserves the amount of the balance, unless the account is metered. */
  #holds({ asked }: Call, amount: bigint): void {
    if (!asked.metered) this.account(asked.account).held += amount;
  }

  #charge(call: Call, amount: bigint): void {
    const account = this.account(call.asked.account);
    call.charged += amount;
    account.spent += amount;
    if (call.asked.metered) account.metered += amount;
  }

  #overrun({ asked, holding }: Call, amount: bigint): void {
    if (amount <= 0n) return;
    if (!asked.metered) this.account(asked.account).overrun += amount;
    for (const name of holding?.budgets ?? []) this.budget(name).overrun += amount;
  }

  #spendBudgets({ holding }: Call, amount: bigint): void {
    for (const name of holding?.budgets ?? []) this.budget(name).used += amount;
  }

  /** Calls without an answer, and calls answered by a free model, do not count on a plan. */
  #freeSlot(call: Call): void {
    const { slot = '' } = call.holding ?? {};
    if (slot !== '') this.#countOnPlan(call, slot, -1);
  }

  #countOnPlan({ asked }: Call, slot: string, by: number): void {
    const { planCalls } = this.account(asked.account);
    planCalls.set(slot, (planCalls.get(slot) ?? 0) + by);
  }
}

/** The upstream wrote or counted more than its request allowed. */
function isBeyond({ asked, delivered, outputMax = Infinity }: Call): boolean {
  if (!delivered) return false;
  const { reported, outputTokens } = delivered;
  const beyond = (reported?.input ?? 0) > asked.inputTokens;
  return beyond || Math.max(outputTokens, reported?.output ?? 0) > outputMax;
}

function within(amount: bigint, { least, most }: Bounds, what: string): void {
  const wanted = least === most ? `${least}` : `${least} to ${most}`;
  agree(amount >= least && amount <= most, `${what} ${amount}, the oracle says ${wanted}`);
}
