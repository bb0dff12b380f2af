/** Notices that wait for delivery. */
import type { Notice } from '../../../wire/public/notice.ts';

/** Whom a notice goes to; the addresses are looked up at each try. */
export const receivers = ['topic', 'webhook', 'customer_webhook', 'customer_mail'] as const;
export type Receiver = (typeof receivers)[number];

export interface StoredNotice {
  notice: Notice;
  /** Tries that were begun. */
  tries: number;
  /** Epoch milliseconds before which nobody tries again. */
  dueMs: number;
  /** Who has not got it yet. */
  left: Receiver[];
}

/** Throws StoreUnavailable. Every write is safe to repeat. */
export interface NoticeStore {
  /** Read consistently. Undefined: there is none, or it is ended. */
  find(id: string): Promise<StoredNotice | undefined>;
  /** Begins a try: counts it if `tries` is still the count. False: another consumer began it. */
  claim(id: string, tries: number, dueMs: number): Promise<boolean>;
  /** Who is left after the try with this number; nobody: the notice is ended. */
  leave(id: string, tries: number, left: readonly Receiver[]): Promise<void>;
  /** The ids of notices that need another try, at most about a thousand. */
  waiting(): Promise<string[]>;
  await(id: string): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
}
