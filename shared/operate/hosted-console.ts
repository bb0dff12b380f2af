/**
 * A deployed console's items in `runtime`: sessions, forms waiting for confirmation, refunds by support per
 * day, and the history of writes. Permissions are decided elsewhere.
 */
import type { NanoYuan } from '../billing/money.ts';

/** Each may what those before it may. */
export const roles = ['viewer', 'support', 'operator'] as const;

export type Role = (typeof roles)[number];

export interface ConsoleSession {
  /** The name in rows and history: a verified e-mail address, else `sub:` and the issuer's subject. */
  name: string;
  /** Those of the groups that roles are given to, as of the login. */
  groups: readonly string[];
  formToken: string;
}

/** A write through a hosted console. A line that has no end is under way, or its process was ended in between. */
export interface HistoryLine {
  /** Counts the entries of its day from 1. */
  number: number;
  at: string;
  by: string;
  role: Role;
  title: string;
  effect: readonly string[];
  result?: readonly string[];
}

/** A number without a line: its write was not begun, or the line is gone. */
export interface HistoryGap {
  number: number;
  at?: undefined;
}

/** A form as it is kept between two requests, opaque here. */
export interface KeptText {
  owner: string;
  text: string;
}

export interface ConsoleStore {
  /** Returns the cookie of a new session, which nobody can guess. The store has its hash alone. */
  beginSession(person: Omit<ConsoleSession, 'formToken'>): Promise<string>;
  /** Counts as use. Returns nothing for a session that is unknown, idle too long, expired, logged out or revoked. */
  session(cookie: string): Promise<ConsoleSession | undefined>;
  endSession(cookie: string): Promise<void>;
  /** Ends all sessions that a person has now, or with `all` those of everybody. Needs no clock that is right. */
  revoke(name: string): Promise<void>;
  /** False: this text was given before, within an hour. */
  isFirst(text: string): Promise<boolean>;
  /** Returns its id. Throws a Failure for what is too large. */
  keep(text: KeptText): Promise<string>;
  /** Returns nothing when the form has expired, was used, or belongs to somebody else. */
  read(owner: string, id: string): Promise<string | undefined>;
  /** True once. */
  take(owner: string, id: string): Promise<boolean>;
  /** Adds to what a person has returned on this UTC day. False: it would be more than the limit, and nothing was added. */
  countRefund(name: string, amount: NanoYuan, limit: NanoYuan): Promise<boolean>;
  /** Counts a page that a person begins to watch. False: it would be more than `watchesMax` in these five minutes. */
  countWatch(name: string): Promise<boolean>;
  /** Appends a line, and returns what appends its end. */
  append(
    line: Omit<HistoryLine, 'at' | 'number' | 'result'>,
  ): Promise<(result: readonly string[]) => Promise<void>>;
  /** The newest numbers of a UTC day, or those before a number, the last one first: `historyMax`, or all down to 1. */
  history(day: string, before?: number): Promise<(HistoryLine | HistoryGap)[]>;
}

export const historyMax = 50;

/** Each may hold a run of the function for five minutes, and an account has 1,000 for customers' calls too. */
export const watchesMax = 30;
