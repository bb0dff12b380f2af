/** Settings that lead to other services, and so name secrets and addresses: alerts, payments, top-up pages and web search. */
import * as z from 'zod/mini';
import {
  amount,
  flag,
  listOf,
  daysUpTo,
  optionMap,
  text,
  textList,
  integerBetween,
  positiveInteger,
} from './rows/read-row.ts';
import type { Settings } from './settings.ts';
import { findEndpointProblem, normaliseEndpoint } from '../upstreams/endpoint-rules.ts';
import type { ReferenceRules } from './rows/secret-reference.ts';
import { ambiguousCurrency, bonusOfStep, rateDecimals, type BonusStep } from '../billing/payments.ts';
import { parseDecimal, parseYuan } from '../billing/money.ts';

/** The settings that a value changes, or why it is not used. */
export type SettingReading = Partial<Settings> | { problem: string };

/** The names are paths in the value. */
function findFirstProblem(
  problems: Record<string, string | false | undefined>,
): { problem: string } | undefined {
  const first = Object.entries(problems).find(([, problem]) => problem);
  return first && { problem: `value.${first[0]}: ${first[1]}` };
}

export const AlertsValue = optionMap(
  {
    /** The operators' receiver. The rules of a channel's endpoint apply. */
    webhook: z.optional(text),
    /** A secret reference. It signs what is posted, to customers too. */
    secret: z.optional(text),
    plan_days: z._default(daysUpTo(90), 7),
    key_days: z._default(daysUpTo(90), 7),
  },
  'a map {webhook, secret, plan_days, key_days}',
);

export function readAlerts(value: z.infer<typeof AlertsValue>, rules: ReferenceRules): SettingReading {
  const { webhook, secret, plan_days: planDays, key_days: keyDays } = value;
  const unsigned = webhook && 'missing, expected a secret reference to sign webhooks with';
  return (
    findFirstProblem({
      webhook: webhook && findEndpointProblem(webhook, rules),
      secret: secret === undefined && unsigned,
    }) ?? { alerts: { webhook, secret, planDays, keyDays } }
  );
}

const wantedSecret = 'a reference, or a list of references';
const wantedRates = 'a map of lower-case currencies to yuan, such as {"usd": 7.1}';
const wantedRate = `yuan per unit of the currency: a number above 0 with at most ${rateDecimals} decimals`;

const secret = z.union([text, textList.check(z.minLength(1, wantedSecret))], wantedSecret);
const currency = z.string(wantedRates).check(z.regex(/^[a-z]{3}$/, wantedRates));

/** Kept as text, because a float would not hold it exactly. */
const rate = z.pipe(
  z.pipe(
    z.union([z.number(), z.string()], wantedRate),
    z.transform((written: number | string) => String(written).trim()),
  ),
  z.string(wantedRate).check(z.refine(isRate, wantedRate)),
);

function isRate(written: string): boolean {
  const micro = parseDecimal(written, rateDecimals, true);
  return micro !== undefined && micro > 0n && micro < 10n ** 12n;
}

export const PaymentsValue = z.strictObject(
  {
    stripe: z.strictObject(
      {
        live: flag,
        /** The signing secret of the webhook, or the old and the new one while it is rotated. */
        webhook_secret: secret,
        /** Signs the references of checkouts. In a list, the last signs and all are accepted. */
        link_secret: secret,
        rates: z.record(currency, rate, wantedRates),
        unsigned: z._default(z.enum(['park', 'ignore'], '"park" or "ignore"'), 'park'),
        checkout: z.optional(
          z.strictObject(
            {
              secret_key: text,
              currency,
              endpoint: z._default(text, 'https://api.stripe.com'),
              auto_top_up: z._default(flag, false),
              plans: z._default(
                z.array(integerBetween(1, 3, 'a plan level: 1, 2 or 3'), 'a list of plan levels'),
                [],
              ),
            },
            'a map {secret_key, currency, endpoint, auto_top_up, plans}',
          ),
        ),
      },
      'a map {live, webhook_secret, link_secret, rates, unsigned, checkout}',
    ),
  },
  'a map {stripe}',
);

export function readPayments(
  { stripe }: z.infer<typeof PaymentsValue>,
  rules: ReferenceRules,
): SettingReading {
  const { live, rates, unsigned, checkout: asked } = stripe;
  const checkout = asked && {
    secretKey: asked.secret_key,
    currency: asked.currency,
    endpoint: normaliseEndpoint(asked.endpoint),
    autoTopUp: asked.auto_top_up,
    plans: asked.plans,
  };
  const [webhookSecrets, linkSecrets] = [[stripe.webhook_secret].flat(), [stripe.link_secret].flat()];
  return (
    findFirstProblem({
      [`stripe.rates.${ambiguousCurrency}`]:
        rates[ambiguousCurrency] &&
        'found a rate, but Stripe documents this currency both with and without decimals: remove it',
      'stripe.checkout.currency':
        checkout &&
        !Object.hasOwn(rates, checkout.currency) &&
        'found a currency without a rate, expected one of rates',
      'stripe.checkout.endpoint': checkout && findEndpointProblem(checkout.endpoint, rules),
    }) ?? {
      payments: {
        stripe: { live, webhookSecrets, linkSecrets, rates, unsigned, ...(checkout && { checkout }) },
      },
    }
  );
}

const wantedTopUpUrl = 'an https URL, with {account} as an optional placeholder';
export const TopUpUrlValue = text.check(
  z.maxLength(2_000, wantedTopUpUrl),
  z.refine(isTopUpUrl, wantedTopUpUrl),
);

function isTopUpUrl(written: string): boolean {
  const url = URL.parse(written);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return false;
  return !/[{}\s]/.test(url.host + written.replaceAll('{account}', ''));
}

const wantedBonus =
  'a list of 1 to 20 steps such as {"pay": 100, "get": 110}, lowest first, with a bonus above 0 that never falls';
const wantedStep = 'yuan: a number from 0 to 1,000,000,000 with at most 9 decimals';
const bonusAmount = amount.check(
  z.refine((yuan) => yuan <= 1e9 && parseYuan(yuan) !== undefined, wantedStep),
);

export const TopUpBonusValue = listOf(
  z.strictObject({ pay: bonusAmount, get: bonusAmount }, 'a map {pay, get}'),
  20,
  wantedBonus,
).check(z.refine((steps) => steps.every((step, at) => isHigherStep(step, steps[at - 1])), wantedBonus));

/** A larger payment must not get a smaller bonus. */
const isHigherStep = (step: BonusStep, before: BonusStep = { pay: 0, get: 0 }): boolean =>
  step.pay > before.pay && bonusOfStep(step) > 0n && bonusOfStep(step) >= bonusOfStep(before);

const wantedSearchAmount = 'yuan per search: a number of 0 or more with at most 9 decimals, such as 0.08';
/** Exact in nano-yuan, so the charge of a call needs no second rounding. */
const searchAmount = amount.check(z.refine((yuan) => parseYuan(yuan) !== undefined, wantedSearchAmount));

const wantedLanguage = 'a language code such as "en" or "zh-CN"';

export const SearchValue = z.strictObject(
  {
    type: z.enum(['searxng', 'tavily'], '"searxng" or "tavily"'),
    /** Optional for Tavily, which has a default. */
    endpoint: z.optional(text),
    secret: z.optional(text),
    /** The number of results put into the prompt; fewer if they do not fit. */
    results: z._default(integerBetween(1, 10, 'a whole number from 1 to 10'), 5),
    /** Only for SearXNG. */
    language: z.optional(
      z.string(wantedLanguage).check(z.regex(/^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$/, wantedLanguage)),
    ),
    price: z.optional(searchAmount),
    cost: z.optional(searchAmount),
    per_minute: z.optional(positiveInteger),
  },
  'a map {type, endpoint, secret, results, language, price, cost, per_minute}',
);

const tavilyEndpoint = 'https://api.tavily.com';

export function readSearch(value: z.infer<typeof SearchValue>, rules: ReferenceRules): SettingReading {
  const { per_minute: perMinute, ...settings } = value;
  const isTavily = value.type === 'tavily';
  const endpoint = value.endpoint ?? (isTavily ? tavilyEndpoint : '');
  return (
    findFirstProblem({
      endpoint:
        endpoint === '' ? 'missing, expected the address of SearXNG' : findEndpointProblem(endpoint, rules),
      language: isTavily && value.language && 'not supported by tavily',
    }) ?? {
      search: {
        ...settings,
        endpoint: normaliseEndpoint(endpoint).replace(/\/search$/, ''),
        ...(perMinute && { perMinute }),
      },
    }
  );
}
