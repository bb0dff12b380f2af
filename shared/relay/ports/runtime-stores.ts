/**
 * The health of candidates, shared by all environments through one small item of the table `runtime`. A candidate without
 * an entry is healthy. What the entries mean, and how they change, stands in `health/health-states.ts`.
 */
import type { LearnedFact, ServedModel } from '../../upstreams/quirks.ts';
import type { NanoYuan } from '../../billing/money.ts';
import type { BudgetName, BudgetUse } from '../../billing/ledger-row.ts';

/** The cause of a cooldown: a rate limit for one model, a refused or unpaid account, or failures. */
export type CooldownKind = 'rate_limit' | 'credentials' | 'failing';

/** The candidate comes after all others until its time is over; then one call probes it. Times in epoch milliseconds. */
export interface Cooldown {
  readonly kind: CooldownKind;
  readonly untilMs: number;
  /** The time that the upstream itself named. May be later than `untilMs`. */
  readonly statedUntilMs?: number | undefined;
  /** Until when a probe of any environment may be running. */
  readonly probeUntilMs?: number | undefined;
  /** A hash of the account whose probe failed: the next one is of another account. */
  readonly failedBy?: string | undefined;
}

/** Failures in a row that have not led to a cooldown. */
export interface FailureRun {
  readonly kind: 'failures';
  readonly count: number;
  /** Hashes of the accounts whose calls failed, two at most. */
  readonly accounts: readonly string[];
  readonly lastMs: number;
}

export type HealthEntry = Cooldown | FailureRun;

/** The key of an entry is a hash of a candidate modulo this number: six characters of [0-9a-z]. */
export const healthKeySpace = 36 ** 6;

/** How long a candidate is offered as a probe after its cooldown, and how long a probe may run. */
export const probeMs = 60_000;
/** How long failures in a row are remembered after the last of them. */
const runMs = 120_000;

/** From when on an entry means nothing: it may be dropped. */
export const expiryMsOf = (entry: HealthEntry): number =>
  entry.kind === 'failures'
    ? entry.lastMs + runMs
    : Math.max(entry.untilMs, entry.probeUntilMs ?? 0) + probeMs;

/** Must return the same object when nothing changes. No entry means healthy. */
export type HealthChange = (entry: HealthEntry | undefined) => HealthEntry | undefined;

export interface ChannelHealth {
  /** As last read, with later changes by this environment; entries may be over. Makes no store call. */
  entries(): Promise<ReadonlyMap<number, HealthEntry>>;
  /**
   * Changes one entry in one conditional write, and no other entry but by dropping it: those that are over, and when
   * there is no room the one that ends first. `change` may be called several times. True: its result was written. False:
   * it changed nothing, there was no room, or other environments were faster three times.
   */
  change(key: number, change: HealthChange): Promise<boolean>;
}

// Facts that answers taught about models, shared by all environments through one item of the table `runtime`.

/** How old what an environment knows may be before a missing fact says nothing: it reads its facts this often. */
export const factsFreshMs = 8_000;

export interface LearnedFacts {
  /** The facts in force about a model, of each rule the newest, as last read or learned by this environment. Makes no store call. */
  of(served: ServedModel): readonly LearnedFact[];
  /** Adds a fact in the place of what was known of its rule, or prolongs it. A fact too many is known to this environment alone. */
  learn(fact: LearnedFact): Promise<void>;
  /**
   * True if a missing `keeps_state` means that the model needs no state: the facts were read at `sinceMs` or later, or
   * this environment saw for itself, and that or its facts were new within `factsFreshMs` before `sinceMs`: another
   * environment may have seen the model keep state since. Makes no store call.
   */
  isSettled(served: ServedModel, sinceMs: number): boolean;
  /** Notes that this environment saw for itself. */
  settle(served: ServedModel): void;
}

/** For the publisher of the configuration, which says on a channel's row what was learned. */
export interface LearnedFactsReader {
  /** All facts in force. Throws StoreUnavailable. */
  all(): Promise<LearnedFact[]>;
}

// The state of turns that called tools, sealed, for clients that cannot send it back. The suite in
// `test/contract/turn-state-store.ts` defines the contract.

/** A turn: its account, and the id of its first call as the client saw it. */
export interface TurnKey {
  account: string;
  callId: string;
}

export interface TurnStateStore {
  /**
   * Keeps a sealed state until `expiresAt` (Unix seconds); a state that was kept under the same key is replaced. Throws
   * StateTooLarge, StoreUnavailable or the store's own error.
   */
  put(key: TurnKey, sealed: string, expiresAt: number): Promise<void>;
  /**
   * The sealed states of an account's turns, by call id, from consistent reads. Turns without an entry were not kept, or
   * have expired. Throws StoreUnavailable.
   */
  read(account: string, callIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The state does not fit into the store. */
export class StateTooLarge extends Error {
  override readonly name = 'StateTooLarge';
}

// The header Idempotency-Key: one row per owner and header value, kept for 24 hours. Every method throws StoreUnavailable.

export type ClaimReply =
  | { state: 'claimed' }
  | { state: 'running'; requestId: string }
  | { state: 'completed'; requestId: string }
  /** `differs`: a member of the body; absent: that is not known. */
  | { state: 'other_body'; requestId: string; differs?: string };

export interface IdempotencyStore {
  /**
   * Claims a key for a request if no other request holds it. The key of a crashed request is free again once its
   * call has a ledger row that says so, and after `untilMs` in any case.
   */
  claim(claim: IdempotencyClaimWrite): Promise<ClaimReply>;
  /** Ends a claim: the key is then used, or free again if nothing was charged. */
  finish(claim: IdempotencyClaimWrite, free: boolean): Promise<void>;
}

export interface IdempotencyClaimWrite {
  /** The hash of the API key, because two customers may send the same header value. */
  owner: string;
  idempotencyKey: string;
  requestId: string;
  /** The account of the API key. Its ledger has the call's row. */
  account: string;
  body: unknown;
  /** A repeat with another body gets the member that differs: hashes of all are kept. */
  namesMembers?: boolean;
  /** From when on the request can no longer be running, in epoch milliseconds. */
  untilMs: number;
}

// Counters of budgets, and of keys with a limit of their own. They are separate items that expire, so that an account's
// item does not grow with its keys. The suite in `test/contract/key-counters.ts` defines the contract.

/** One period of a budget. */
export interface BudgetCounter extends BudgetName {
  /** Unix seconds: when the counter may be removed. */
  expires: number;
}

export interface KeyCounters {
  /**
   * Counts one call in a minute of a key (minutes since the epoch) if fewer than `max` are counted. A repeat after a
   * lost reply counts twice. Returns the count; undefined: the minute is full.
   */
  countCall(key: string, minute: number, max: number): Promise<number | undefined>;
  /**
   * Holds an amount if the budget `most` covers what is used and the amount. `done: false`: nothing was held. A repeat
   * holds nothing more, unless another hold came between. `name`: unlike that of any other hold.
   */
  hold(
    hold: BudgetCounter & { name: string },
    amount: NanoYuan,
    most: NanoYuan,
  ): Promise<BudgetUse & { done: boolean }>;
  /** The reserved part of a budget, and the number of calls that hold it. */
  use(counter: BudgetCounter): Promise<BudgetUse>;
  /** Changes what is held and how many calls hold it, without a condition. Throws StoreBusy if it changed nothing. */
  change(counter: BudgetCounter, by: BudgetUse): Promise<void>;
}
