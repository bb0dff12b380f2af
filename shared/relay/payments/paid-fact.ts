/**
 * Whose a paid checkout is. The account comes from a reference that this relay signed and from nothing else. What cannot
 * be granted is kept with the reason, for an operator.
 */
import {
  parseReference,
  signedReference,
  type PaymentReference,
} from '../../billing/payments/payment-reference.ts';
import type { PaidFact } from '../../billing/payments/payment.ts';
import type { StripeSettings } from '../../config/settings/settings.ts';
import type { Hmac } from '../ports/hmac.ts';
import type { PaymentStore } from '../ports/stores/payment-store.ts';
import type { SecretStore } from '../ports/stores/secret-store.ts';
import type { PaidCheckout } from './stripe-event.ts';
import { isSigned } from './stripe-signature.ts';

export interface PaidFactPorts {
  hmac: Hmac;
  secrets: Pick<SecretStore, 'read'>;
  payments: Pick<PaymentStore, 'hasAccount'>;
}

/** Reasons for which payments are parked. They stand in rows and in the log, so they quote nothing. */
const problems = {
  unsigned: 'no reference of this relay came with the payment',
  forged: 'the reference of the payment is not signed by this relay',
  testMode: 'real money came in while the setting payments has live: false',
  notSingle: 'the checkout was no single payment',
  otherAmount: 'the amount paid is not the one that the reference names',
  noAccount: 'the table accounts has no row of the account that the reference names',
  noRate: 'the setting payments has no rate for the currency',
};

/** Undefined: a checkout of another shop, which the setting says to ignore. */
export async function paidFact(
  ports: PaidFactPorts,
  checkout: PaidCheckout & { live: boolean; at: string },
  settings: StripeSettings,
): Promise<PaidFact | undefined> {
  const { payment, paid, live, at, isSingle } = checkout;
  const found = await referenceOf(ports, checkout, settings);
  if (found === 'unsigned' && settings.unsigned === 'ignore') return undefined;
  const reference = typeof found === 'string' ? undefined : found;
  const rate = settings.rates[paid.currency];
  const problem = async (): Promise<string | undefined> => {
    if (typeof found === 'string') return problems[found];
    if (live && !settings.live) return problems.testMode;
    if (!isSingle) return problems.notSingle;
    if (found.minor !== paid.minor || found.currency !== paid.currency) return problems.otherAmount;
    if (!(await ports.payments.hasAccount(found.account))) return problems.noAccount;
    return rate === undefined ? problems.noRate : undefined;
  };
  const account = reference?.account;
  return { kind: 'paid', payment, at, paid, live, rate, account, problem: await problem() };
}

async function referenceOf(
  ports: PaidFactPorts,
  { references }: PaidCheckout,
  { linkSecrets }: StripeSettings,
): Promise<PaymentReference | 'unsigned' | 'forged'> {
  const parsed = references.flatMap((text) => parseReference(text) ?? []);
  for (const { reference, signature, body } of parsed) {
    const signed = { message: signedReference(body), signatures: [signature] };
    if (await isSigned(ports, linkSecrets, signed)) return reference;
  }
  return parsed.length > 0 ? 'forged' : 'unsigned';
}
