/** What the relay tells operators and customers, and the receivers that it can tell. */

export type NoticeType = 'balance.low' | 'plan.ending' | 'plan.ended' | 'key.expiring';

/** One event. Its id stays the same however often it is sent. */
export interface Notice {
  id: string;
  type: NoticeType;
  /** Unix seconds. */
  created: number;
  account: string;
  data: Record<string, string | number>;
}

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
