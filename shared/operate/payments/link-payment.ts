/** Signs the reference that a checkout of Stripe carries, so that its payment is granted to an account. Writes nothing. */
import { decimalsOf, parsePayment, paymentText, yuanOf } from '../../billing/payments/payment-amount.ts';
import {
  referenceBody,
  referenceLengthMax,
  signedReference,
  withSignature,
} from '../../billing/payments/payment-reference.ts';
import type { NanoYuan } from '../../billing/amount.ts';
import type { PaymentAmount } from '../../billing/payments/payment-amount.ts';
import { findAccount } from '../find-account.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { stripeSetting } from './stripe-setting.ts';

export interface LinkInput {
  account: string;
  /** In the currency, as people write it: `10.50`. */
  amount: string;
  currency: string;
}

export interface PaymentLink extends PaymentAmount {
  account: string;
  /** For `client_reference_id`, or for `relay_reference` in the metadata of the checkout's session. */
  reference: string;
  /** What the account will be granted at the present rate. */
  granted: NanoYuan;
  live: boolean;
  /** Where the customer is sent after the payment. */
  returnUrl: string;
}

export async function linkPayment(ports: OperatorPorts, input: LinkInput): Promise<PaymentLink> {
  const { account } = input;
  const currency = input.currency.toLowerCase();
  const { live, rates, linkSecrets } = await stripeSetting(ports);
  const rate = rates[currency];
  if (rate === undefined)
    throw new Failure(
      `the setting payments has no rate for ${currency}, only for ${Object.keys(rates).join(', ')}`,
    );
  const paid = checkedAmount(input.amount, currency);
  await findAccount(ports, account);
  const body = referenceBody({ account, ...paid, nonce: ports.random.hex(8) });
  const secret = await ports.secrets.read(linkSecrets.at(-1) ?? '');
  const reference = withSignature(body, ports.hmac.sign(secret, signedReference(body)));
  if (reference.length > referenceLengthMax)
    throw new Failure(
      `the name ${account} is too long: a reference has ${referenceLengthMax} characters at most, this one ${reference.length}`,
    );
  const baseUrl = await ports.baseUrl();
  const returnUrl = baseUrl?.replace(/v1$/, '') ?? 'https://example.com/';
  return { account, ...paid, reference, granted: yuanOf(paid, rate), live, returnUrl };
}

function checkedAmount(written: string, currency: string): PaymentAmount {
  const paid = parsePayment(written, currency);
  if (!paid || paid.minor <= 0n || paid.minor >= 10n ** 12n)
    throw usageFailure(
      `--amount ${written}: wanted ${currency} above 0 with ${decimalsOf(currency)} decimals at most`,
    );
  // Stripe takes no other amounts in currencies with three decimals.
  if (decimalsOf(currency) === 3 && paid.minor % 10n !== 0n)
    throw usageFailure(`--amount ${paymentText(paid)}: wanted two decimals at most, as Stripe has it`);
  return paid;
}
