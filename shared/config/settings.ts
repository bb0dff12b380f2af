/**
 * Parsed settings and their defaults. The schemas are in setting-rows.ts, because serving needs no schemas.
 */
export interface Settings {
  relayClosed: boolean;
  subscriptionEnabled: boolean;
  unpricedModels: 'free' | 'refuse';
  /** Shown in refusals that only the operator can resolve. Empty: nothing is shown. */
  contact: string;
  page: boolean;
  accountPage: boolean;
  notices: PublicNotice[];
  corsOrigins: string[];
  /** The calendar of budgets. */
  timeZone: string;
  endUsers: {
    /** Vendors that ask for an end user get a hash of the account where the client names none. */
    hashAccounts: boolean;
  };
  /** How URLs of images and files that upstreams fetch may begin, in lower case. */
  contentUrls: string[];
  limits: {
    defaultOutputTokens: number;
    requestSeconds: number;
    stateDays: number;
    /** Free calls are counted in the account, too. */
    countFree: boolean;
    /** What an account may have at once and in a minute if its row sets no limit of its own. Absent: see docs/tables.md. */
    accountConcurrency?: number | undefined;
    accountRpm?: number | undefined;
    accountTpm?: number | undefined;
  };
  /** What the pages of models say of each. Tokens, kinds of content. */
  modelFacts?: Record<string, ModelFacts> | undefined;
  /** Who sells, as statements name it. Absent: they name nobody. */
  seller?: { name: string; address: string } | undefined;
  /** Names that channels have are left out. */
  aliases: AliasSettings[];
  store: {
    /** Keys that do not say `store` themselves may store. */
    allKeys: boolean;
    days: number;
    /** How long the events of a background response are kept after its end. */
    eventMinutes: number;
  };
  /** Absent: models named `web-...` answer without a search. */
  search?: SearchSettings;
  /** Absent: alerts go to the stack's topic and to the contacts of accounts that need no signature. */
  alerts?: AlertSettings;
  /** Absent: no payments are taken in by machine. */
  payments?: { stripe: StripeSettings };
  /** Where customers top up if no session of a checkout is made for them; `{account}` stands for theirs. */
  topUpUrl?: string | undefined;
}

/** What the operator says to all customers. Times in epoch milliseconds. */
export interface PublicNotice {
  text: string;
  fromMs?: number | undefined;
  untilMs?: number | undefined;
  models?: string[] | undefined;
}

export interface ModelFacts {
  context?: number | undefined;
  /** Of one answer. */
  output?: number | undefined;
  takes?: string[] | undefined;
  makes?: string[] | undefined;
  about?: string | undefined;
}

export interface AliasSettings {
  name: string;
  /** In the order in which they are tried; at least one. */
  models: string[];
  /** The next model is also asked when one finds the request too long for its context. */
  onContextLength: boolean;
}

/** Whom the relay tells about accounts, and how long before a date. */
export interface AlertSettings {
  webhook?: string | undefined;
  /** A secret reference. Absent: nothing is posted. */
  secret?: string | undefined;
  /** Days before the end of a plan, and of a key, at which it is reported. */
  planDays: number;
  keyDays: number;
}

export interface StripeSettings {
  /** true: real payments count. false: those of the test mode. */
  live: boolean;
  webhookSecrets: string[];
  /** References, at least one. The last signs; all are accepted. */
  linkSecrets: string[];
  /** Yuan for one unit of each currency, as exact decimals. */
  rates: Record<string, string>;
  /** What happens to payments without a reference of this relay. */
  unsigned: 'park' | 'ignore';
  /** Absent: the relay makes no sessions of checkouts. */
  checkout?: CheckoutSettings | undefined;
}

/** How the relay makes sessions of checkouts for customers who ask. */
export interface CheckoutSettings {
  /** A reference of Stripe's secret key. */
  secretKey: string;
  /** With a rate. */
  currency: string;
  /** The base address of Stripe's API. */
  endpoint: string;
}

export interface SearchSettings {
  type: 'searxng' | 'tavily';
  /** The base address, without a slash at its end; `/search` is appended to it. */
  endpoint: string;
  secret?: string | undefined;
  results: number;
  language?: string | undefined;
  /** Yuan for each search, with at most 9 decimals. Absent: only calls that pay for their model may search, for nothing more. */
  price?: number | undefined;
  /** What a search costs the operator, in yuan. Absent: nothing. */
  cost?: number | undefined;
  /** Searches of a key in a minute. Absent: no limit where they have a price, else `freeSearchesOfMinute`. */
  perMinute?: number | undefined;
}

export const defaultSettings: Settings = {
  relayClosed: false,
  subscriptionEnabled: false,
  unpricedModels: 'free',
  contact: '',
  page: true,
  accountPage: true,
  notices: [],
  corsOrigins: [],
  timeZone: 'UTC',
  endUsers: { hashAccounts: true },
  limits: { defaultOutputTokens: 16_384, requestSeconds: 600, stateDays: 30, countFree: true },
  contentUrls: ['https:', 'data:image/'],
  aliases: [],
  store: { allKeys: false, days: 30, eventMinutes: 10 },
};

export const defaultAlerts: AlertSettings = { planDays: 7, keyDays: 7 };

/** The notices that are shown at a time, as clients get them: with Unix seconds. */
export const listCurrentNotices = ({ notices }: Settings, nowMs: number) =>
  notices
    .filter(({ fromMs = -Infinity, untilMs = Infinity }) => fromMs <= nowMs && nowMs < untilMs)
    .map(({ text, fromMs, untilMs, models }) => ({
      text,
      from: secondsOf(fromMs),
      until: secondsOf(untilMs),
      models: models ?? null,
    }));

const secondsOf = (timeMs: number | undefined): number | null =>
  timeMs === undefined ? null : Math.floor(timeMs / 1000);
