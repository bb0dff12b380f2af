/** Parsed settings and their defaults. Schemas are in setting-rows.ts, because serving a call needs none. */
import type { BonusStep } from '../billing/payments.ts';
import type { CustomerPrice } from '../billing/price.ts';

export interface Settings {
  relayClosed: boolean;
  subscriptionEnabled: boolean;
  unpricedModels: 'free' | 'refuse';
  /** Shown in refusals that only the operator can resolve. */
  contact: string;
  page: boolean;
  accountPage: boolean;
  notices: PublicNotice[];
  corsOrigins: string[];
  /** The calendar of budgets. */
  timeZone: string;
  endUsers: {
    /** Vendors that ask for an end user get a hash of the account if the client names none. */
    hashAccounts: boolean;
  };
  /** Lower-case beginnings of URLs that upstreams may fetch. */
  contentUrls: string[];
  limits: {
    defaultOutputTokens: number;
    requestSeconds: number;
    stateDays: number;
    /** Free calls are counted in the account, too. */
    countFree: boolean;
    /** For accounts whose row sets no limit of its own. Without these: docs/tables.md. */
    accountConcurrency?: number | undefined;
    accountRpm?: number | undefined;
    accountTpm?: number | undefined;
  };
  modelFacts?: Record<string, ModelFacts> | undefined;
  /** Named on statements. */
  seller?: { name: string; address: string } | undefined;
  /** Without names that channels have. */
  aliases: AliasSettings[];
  /** Prices that several customers share, by the name of the group. */
  priceGroups?: Record<string, CustomerPrice[]> | undefined;
  store: {
    /** Keys whose row has no `store` may store. */
    allKeys: boolean;
    days: number;
    /** Events of a background response are kept so long after its end. */
    eventMinutes: number;
  };
  /** Without it, models named `web-...` answer without a search. */
  search?: SearchSettings;
  /** Without it, alerts go to the stack's topic and to contacts that need no signature. */
  alerts?: AlertSettings;
  payments?: { stripe: StripeSettings };
  /** The page on which customers top up if the relay creates no checkout session. `{account}` is replaced. */
  topUpUrl?: string | undefined;
  /** Lowest first. */
  topUpBonus?: BonusStep[] | undefined;
}

export interface PublicNotice {
  text: string;
  fromMs?: number | undefined;
  untilMs?: number | undefined;
  models?: string[] | undefined;
}

export interface ModelFacts {
  vendor?: string | undefined;
  context?: number | undefined;
  output?: number | undefined;
  takes?: string[] | undefined;
  makes?: string[] | undefined;
  about?: string | undefined;
}

export interface AliasSettings {
  name: string;
  /** At least one, in the order of tries. */
  models: string[];
  /** Also tries the next model if the request is too long for one's context. */
  onContextLength: boolean;
}

export interface AlertSettings {
  webhook?: string | undefined;
  /** A secret reference. Nothing is posted without it. */
  secret?: string | undefined;
  /** Alerts come so many days before the end of a plan or a key. */
  planDays: number;
  keyDays: number;
}

export interface StripeSettings {
  /** false accepts payments of the test mode only. */
  live: boolean;
  webhookSecrets: string[];
  /** The last reference signs; all are accepted. */
  linkSecrets: string[];
  /** Yuan for one unit of each currency, as exact decimals. */
  rates: Record<string, string>;
  /** For payments without a reference of this relay. */
  unsigned: 'park' | 'ignore';
  checkout?: CheckoutSettings | undefined;
}

/** For checkout sessions that the relay makes for customers. */
export interface CheckoutSettings {
  secretKey: string;
  /** Must have a rate. */
  currency: string;
  /** The base address of Stripe's API. */
  endpoint: string;
  /** Customers may have their card charged when the balance is low. Snapshots of earlier versions lack this field and `plans`. */
  autoTopUp?: boolean | undefined;
  /** Plan levels that customers may buy, at the price in the plan's row. */
  plans?: number[] | undefined;
}

export interface SearchSettings {
  type: 'searxng' | 'tavily';
  /** Without a slash at its end. `/search` is appended. */
  endpoint: string;
  secret?: string | undefined;
  results: number;
  language?: string | undefined;
  /** Yuan for each search. Without it, searches are free, but only for calls that pay for their model. */
  price?: number | undefined;
  /** The operator's cost of a search, in yuan. */
  cost?: number | undefined;
  /** For each key. Without it, only free searches have a limit: `freeSearchesOfMinute`. */
  perMinute?: number | undefined;
}

/** The most minutes that a deployment can allow a background run. Lambda ends functions that events invoke after 30 or 15 minutes. */
export const runMinutesMax = 30;

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

/** Times for clients are Unix seconds. */
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
