/**
 * Bodies of `GET /v1/account` and `GET /v1/account/usage`: extensions of the relay's contract. Amounts are yuan as
 * JSON numbers, times are Unix seconds, and every key is always present: null where there is nothing.
 */

export interface AccountBody {
  object: 'account';
  currency: 'CNY';
  /** What new calls may spend. available + reserved + spent = granted. */
  available: number;
  /** Held for calls that are under way. */
  reserved: number;
  spent: number;
  granted: number;
  plan: AccountPlan | null;
  key: AccountKey;
}

export interface AccountPlan {
  level: number;
  until: number | null;
  items: AccountPlanItem[];
}

export interface AccountPlanItem {
  id: string;
  name: string;
  /** Calls counted in the current month. */
  used: number;
  /** Calls a month; -1 is unlimited. */
  value: number;
  resets_at: number;
}

/** The key that asks. */
export interface AccountKey {
  hint: string;
  /** null: every model. */
  models: string[] | null;
  expires_at: number | null;
  limits: { max_concurrency: number | null; rpm: number | null };
}

export interface UsageList {
  object: 'list';
  /** Newest first. */
  data: UsageEntry[];
  has_more: boolean;
  /** To be sent as `cursor` for the next page; null on the last one. */
  next_cursor: string | null;
}

/** One row of the ledger: a call that ended, or a top-up. */
export interface UsageEntry {
  /** The request id; `grant#...` for a top-up. */
  id: string;
  object: 'usage';
  /** When the call began, or the top-up was booked. */
  created: number;
  kind: 'settled' | 'released' | 'expired' | 'cancelled' | 'grant';
  endpoint: string | null;
  model: string | null;
  /** First 12 hex digits of the SHA-256 of the key. */
  key: string | null;
  charge: number;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  /** The tokens are the relay's estimate, or counts of the upstream after clamping. */
  estimated: boolean;
  /** `completed`, `failed` or `client_gone`. */
  end: string | null;
  /** The rule's id and its prices, as they were. */
  price: string | null;
  /** The plan entry and month that the call was counted on. */
  plan_slot: string | null;
  official: boolean;
  /** Official calls: what the call would have cost. */
  cost: number | null;
  /** Top-ups: what was added. */
  amount: number | null;
  /** Top-ups: why, in the operator's words. */
  reason: string | null;
}
