/** The ports of alerts: causes, marks of what was reported, notices and their receivers. */
import type { AutoTopUp } from '../../billing/auto-top-up.ts';
import type { DailyFigures } from '../../billing/daily-figures.ts';
import type { NanoYuan } from '../../billing/money.ts';
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Notice } from '../../wire/public-api.ts';

/** The state of a cause: whether it holds and was reported. `changes` counts the mark's writes. */
export interface AlertMark {
  open: boolean;
  changes: number;
}

export interface RaisedMark {
  cause: string;
  /** The mark as it was read; undefined: there was none. */
  seen: AlertMark | undefined;
  notice: Notice;
  /** Unix seconds after which the mark may go; absent: it stays. */
  expires?: number;
}

/** Throws StoreUnavailable. A repeat after a lost reply finds the mark changed. */
export interface AlertStore {
  /** The marks of these causes, read consistently; absent ones have no entry. */
  marks(causes: readonly string[]): Promise<ReadonlyMap<string, AlertMark>>;
  /** Opens the mark and puts the notice, together or not at all. False: the mark is not as it was seen. */
  raise(raised: RaisedMark): Promise<boolean>;
  /** Closes an open mark. False: the mark is not as it was seen. */
  clear(cause: string, seen: AlertMark): Promise<boolean>;
}

/** Throws StoreUnavailable. A row with a mistake counts as absent. */
export interface AlertAccounts {
  /** The account's row, read consistently. */
  row(account: string): Promise<AlertedAccount | undefined>;
  /** Its `alertBelow`, up to 5 minutes old: the scheduled pass finds what an edit changes. */
  alertBelow(account: string): Promise<NanoYuan | undefined>;
  /**
   * Granted minus spent over all shards of the account, read consistently. Includes the money of calls in flight; moves between
   * shards do not change it. Undefined for an account that was never used.
   */
  balance(account: string): Promise<NanoYuan | undefined>;
  /** All accounts, page by page. */
  accounts(): AsyncIterable<AlertedAccount[]>;
  /** All keys, page by page. */
  keys(): AsyncIterable<KeyRow[]>;
}

/** Automatic top-ups of accounts. Throws StoreUnavailable; reads are consistent. */
export interface AutoTopUpStore {
  find(account: string): Promise<AutoTopUp | undefined>;
  /** The balance below which the card is charged, up to 5 minutes old. Undefined: no card is charged. */
  below(account: string): Promise<NanoYuan | undefined>;
  /** True if the ledger has the grant of the payment, so the balance read after this includes it. */
  isCredited(account: string, payment: string): Promise<boolean>;
  /** Returns the accounts whose top-ups are on, or have a failure to report. */
  listActive(accounts: readonly string[]): Promise<string[]>;
  /** Writes the next version and the notice, or neither. Returns false if another version was written first. */
  write(after: AutoTopUp, notice?: Notice): Promise<boolean>;
  /** Retries until no other write interferes. Returns the written version; nothing if `apply` returns nothing. */
  change(
    account: string,
    apply: (auto: AutoTopUp | undefined) => AutoTopUp | undefined,
  ): Promise<AutoTopUp | undefined>;
}

/** Throws StoreUnavailable. */
export interface WatchedChannels {
  /** Valid rows. */
  rows(): Promise<ChannelRow[]>;
  /** Stores the found balance as the row's `_balance`, unless the row was deleted. */
  mark(id: string, balance: { at: number; low: boolean; text: string }): Promise<void>;
}

/** The sum of a channel's attempts at a model with one of its secrets in an hour. */
export interface HourSum {
  /** `2026-11-22T09`, in UTC. */
  hour: string;
  model: string;
  figures: DailyFigures;
}

export const markKinds = ['failing', 'slower', 'costlier'] as const;

export interface ChannelMark {
  channel: string;
  mark: (typeof markKinds)[number];
  /** Missing if it holds for the channel as a whole. */
  model?: string | undefined;
  /** `now` and `usual`: share of failed attempts, milliseconds to first content, or yuan per million tokens. */
  now: number;
  usual: number;
}

/** The attempts of channels by hour. Reads may be a few seconds old. Throws StoreUnavailable. */
export interface ChannelHours {
  /** The ids of enabled channels. */
  channels(): Promise<string[]>;
  /** Includes both hours, such as `2026-11-22T09`. Leaves out hours without attempts. */
  read(channel: string, from: string, to: string): Promise<HourSum[]>;
  /** Replaces the marks that the console and the command line show. */
  keep(marks: readonly ChannelMark[], nowMs: number): Promise<void>;
}

// Notices that wait for delivery.

/** Whom a notice goes to; the addresses are looked up at each try. */
export const receivers = ['topic', 'webhook', 'customer_webhook', 'customer_mail'] as const;
export type Receiver = (typeof receivers)[number];

export interface StoredNotice {
  notice: Notice;
  tries: number;
  /** Epoch milliseconds before which nobody tries again. */
  dueMs: number;
  left: Receiver[];
}

/** Throws StoreUnavailable. Every write is safe to repeat. */
export interface NoticeStore {
  /** Read consistently. */
  find(id: string): Promise<StoredNotice | undefined>;
  /** Begins a try: counts it if `tries` is still the count. False: another consumer began it. */
  claim(id: string, tries: number, dueMs: number): Promise<boolean>;
  /** The receivers that are left after this try. An empty list ends the notice. */
  leave(id: string, tries: number, left: readonly Receiver[]): Promise<void>;
  /** The ids of notices that need another try, at most about a thousand. */
  waiting(): Promise<string[]>;
  await(id: string): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
}

// The receivers that the relay can report to.

export type NoticeTarget =
  /** The stack's topic. */
  | { kind: 'topic' }
  /** `signs`: the reference of the secret; `account`: a customer's receiver, which has a secret of its own. */
  | { kind: 'webhook'; url: string; signs: string; account?: string }
  | { kind: 'mail'; to: string };

export interface NoticeSender {
  /** The channels of this deployment beside webhooks. */
  offers: { topic: boolean; mail: boolean };
  /** Tries once, within 10 s. Returns why it failed, in one word. Never rejects. */
  send(target: NoticeTarget, notice: Notice): Promise<string | undefined>;
}
