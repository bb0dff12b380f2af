/** What operators' and customers' receivers get about an account. */

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
