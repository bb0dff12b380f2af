import * as z from 'zod/mini';
import { ambiguousCurrency, rateDecimals } from '../../billing/payments/payment-amount.ts';
import { parseDecimal } from '../../billing/amount.ts';
import { flag, text, textList } from '../rows/attribute-schemas.ts';
import { referenceProblem, type ReferenceRules } from '../rows/secret-reference.ts';
import type { PaymentSettings } from './settings.ts';

const wantedSecret = 'a reference, or a list of references';
const wantedRates = 'a map of currencies in small letters to yuan, such as {"usd": 7.1}';
const wantedRate = `yuan for one unit of the currency: a number above 0 with at most ${rateDecimals} decimals`;

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

/** The setting `payments`: money in by machine. */
export const PaymentsValue = z.strictObject(
  {
    stripe: z.strictObject(
      {
        /** true: real payments count. false: those of Stripe's test mode. */
        live: flag,
        /** The signing secret of the webhook's endpoint; while it is rotated, the old one and the new one. */
        webhook_secret: secret,
        /** Signs the references of checkouts. Of a list, the last signs and all are accepted. */
        link_secret: secret,
        rates: z.record(currency, rate, wantedRates),
        /** What to do with payments that carry no reference of this relay. */
        unsigned: z._default(z.enum(['park', 'ignore'], '"park" or "ignore"'), 'park'),
      },
      'a map {live, webhook_secret, link_secret, rates, unsigned}',
    ),
  },
  'a map {stripe}',
);
type PaymentsValue = z.infer<typeof PaymentsValue>;

/** Checks the rules beyond the schema. Secrets follow the same rules as a channel's. */
export function readPayments(
  { stripe }: PaymentsValue,
  rules: ReferenceRules,
): { problem: string } | { payments: PaymentSettings } {
  const webhookSecrets = [stripe.webhook_secret].flat();
  const linkSecrets = [stripe.link_secret].flat();
  const named = { webhook_secret: webhookSecrets, link_secret: linkSecrets };
  for (const [name, references] of Object.entries(named))
    for (const reference of references) {
      const problem = referenceProblem(reference, rules);
      if (problem !== undefined) return { problem: `value.stripe.${name}: ${problem}` };
    }
  if (Object.hasOwn(stripe.rates, ambiguousCurrency)) {
    const wanted = 'no rate for it, since Stripe describes its amounts both with and without decimals';
    return { problem: `value.stripe.rates.${ambiguousCurrency}: found a rate, wanted ${wanted}` };
  }
  const { live, rates, unsigned } = stripe;
  return { payments: { stripe: { live, webhookSecrets, linkSecrets, rates, unsigned } } };
}
