/** The receivers that the relay can report to. */
import type { Notice } from '../../../wire/public/notice.ts';

export type NoticeTarget =
  /** The stack's topic. */
  | { kind: 'topic' }
  /** `signs`: the reference of the secret; `account`: a customer's receiver, which has a secret of its own. */
  | { kind: 'webhook'; url: string; signs: string; account?: string }
  | { kind: 'mail'; to: string };

export interface NoticeSender {
  /** What this deployment can send beside webhooks. */
  offers: { topic: boolean; mail: boolean };
  /** Tries once, within 10 s. Undefined: delivered; else the reason in one word. Never rejects. */
  send(target: NoticeTarget, notice: Notice): Promise<string | undefined>;
}
