/**
 * Payments from outside: signs the reference that a checkout of Stripe carries, so that its payment is granted to an account;
 * lists payments; and what an operator decides about a parked one: to which account it is granted, or that it is no account's.
 */
import {
  assignPayment,
  decimalsOf,
  formatGrant,
  parsePayment,
  planPaymentChange,
  formatPayment,
  formatReferenceBody,
  referenceLengthMax,
  rejectPayment,
  formatTextToSign,
  addSignature,
  convertToYuan,
  findBonus,
  mayStoreCard,
  type BonusStep,
  type Payment,
  type PaymentAmount,
  type PaymentChange,
} from '../billing/payments.ts';
import { parseYuan } from '../billing/money.ts';
import { readSetting } from '../config/setting-rows.ts';
import type { StripeSettings } from '../config/settings.ts';
import { compareCodeUnits } from '../wire/json.ts';
import { readAllRows } from './ledger/ledger.ts';
import type { OperatorPorts } from './operator-ports.ts';
import { Failure, requireValid, usageFailure, type Plan } from './plan.ts';
import { findAccount } from './rows.ts';

export interface LinkInput {
  account: string;
  /** In the currency, as people write it: `10.50`. */
  amount: string;
  currency: string;
}

/** `reference`: for `client_reference_id`, or for `relay_reference` in the metadata of the checkout's session. `granted`: at the present rate. */
export type PaymentLink = Awaited<ReturnType<typeof linkPayment>>;

export async function linkPayment(ports: OperatorPorts, input: LinkInput) {
  const { account } = input;
  const currency = input.currency.toLowerCase();
  const [{ live, rates, linkSecrets }, bonusSteps] = await Promise.all([
    readStripeSetting(ports),
    readBonusSteps(ports),
  ]);
  const rate = rates[currency];
  if (rate === undefined)
    throw new Failure(
      `the setting payments has no rate for ${currency} (only for ${Object.keys(rates).join(', ')})`,
    );
  const paid = parseAmount(input.amount, currency);
  await findAccount(ports, account);
  const body = formatReferenceBody({ account, ...paid, nonce: ports.random.hex(8) });
  const secret = await ports.secrets.read(linkSecrets.at(-1) ?? '', { purpose: 'payments' });
  const reference = addSignature(body, ports.hmac.sign(secret, formatTextToSign(body)));
  if (reference.length > referenceLengthMax)
    throw new Failure(
      `the customer name ${account} is too long: its reference has ${reference.length} characters, the maximum is ${referenceLengthMax}`,
    );
  const baseUrl = await ports.baseUrl();
  const returnUrl = baseUrl?.replace(/v1$/, '') ?? 'https://example.com/';
  const granted = convertToYuan(paid, rate) + (parseYuan(findBonus(bonusSteps, paid, rate) ?? '0') ?? 0n);
  return { account, ...paid, reference, granted, live, returnUrl };
}

function parseAmount(written: string, currency: string): PaymentAmount {
  const paid = parsePayment(written, currency);
  if (!paid || paid.minor <= 0n || paid.minor >= 10n ** 12n)
    throw usageFailure(
      `--amount ${written}: use an amount in ${currency} above 0, with at most ${decimalsOf(currency)} decimals`,
    );
  // Stripe takes no other amounts in currencies with three decimals.
  if (decimalsOf(currency) === 3 && paid.minor % 10n !== 0n)
    throw usageFailure(`--amount ${formatPayment(paid)}: Stripe allows at most two decimals`);
  return paid;
}

/** View: payments that providers reported, the newest first. */
export async function listPayments(
  { payments }: OperatorPorts,
  { parked }: { parked?: boolean | undefined },
): Promise<{ found: Payment[]; problems: string[] }> {
  const { rows, problems } = await readAllRows(payments.all());
  const found = rows
    .filter(({ state }) => !parked || state === 'parked')
    .toSorted((a, b) => compareCodeUnits(b.at, a.at) || compareCodeUnits(a.id, b.id));
  return { found, problems };
}

export async function planAssignPayment(
  ports: OperatorPorts,
  { id, account }: { id: string; account: string },
): Promise<Plan<PaymentChange>> {
  const { payment, paid } = await findParkedPayment(ports, id);
  if (!(await ports.payments.account(account))) throw usageFailure(`no customer ${account}: create it first`);
  // Take the bonus from the same time as the rate.
  const rate = payment.rate ?? (await readStripeSetting(ports)).rates[paid.currency];
  const bonus =
    payment.rate === undefined ? findBonus(await readBonusSteps(ports), paid, rate) : payment.bonus;
  if (rate === undefined)
    throw new Failure(`the setting payments has no rate for ${paid.currency}: add one and try again`);
  const change = planPaymentChange(payment, assignPayment(payment, { account, rate, bonus }));
  return {
    changes: [change],
    effect: [
      ...(payment.problem === undefined ? [] : [`Parked because ${payment.problem}`]),
      ...change.grants.map((grant) => `Credit ${account} once for the ${formatGrant(grant)}`),
      // The card is stored only for the account that asked for automatic top-ups.
      ...(payment.card && (payment.account ?? account) === account && mayStoreCard(change.after)
        ? ['To store the card for automatic top-ups, resend an event of the payment in Stripe afterwards']
        : []),
    ],
    questions: [`Credit payment ${id} of ${formatPayment(paid)} to ${account}?`],
  };
}

export async function planRejectPayment(ports: OperatorPorts, id: string): Promise<Plan<PaymentChange>> {
  const { payment, paid } = await findParkedPayment(ports, id);
  return {
    changes: [planPaymentChange(payment, rejectPayment(payment))],
    effect: ['Never credit this payment; refund the customer in Stripe'],
    questions: [`Reject payment ${id} of ${formatPayment(paid)}?`],
  };
}

export async function carryOutDecision(
  { payments }: OperatorPorts,
  plan: Plan<PaymentChange>,
): Promise<void> {
  for (const change of plan.changes) {
    const written = await payments.write(change);
    if (written === 'outdated')
      throw new Failure('nothing was written: the payment changed in the meantime. Review it and try again');
    if (written !== 'written')
      throw new Failure(
        `nothing was written: ${change.after.account} already has a grant ${written.taken.join(', ')}; reject the payment instead`,
      );
  }
}

async function findParkedPayment({ payments }: OperatorPorts, id: string) {
  const payment = await payments.find(id);
  if (!payment) throw new Failure(`no payment ${id}: see \`payment list\``);
  const { state, account, paid } = payment;
  if (state !== 'parked' || !paid)
    throw new Failure(`payment ${id} is not parked: ${stateWords[state]} ${account ?? ''}`.trim());
  return { payment, paid };
}

const stateWords: Record<Payment['state'], string> = {
  expected: 'only a refund or dispute was reported so far',
  parked: 'its amount is unknown',
  granted: 'it was credited to',
  rejected: 'it was rejected',
  plan: 'it paid for a plan of',
};

const readBonusSteps = async (ports: OperatorPorts): Promise<BonusStep[] | undefined> =>
  (await readNamedSetting(ports, 'top_up_bonus'))?.topUpBonus;

/** Reads the setting `payments` from its row. Throws a Failure without one. */
async function readStripeSetting(ports: OperatorPorts): Promise<StripeSettings> {
  const settings = await readNamedSetting(ports, 'payments');
  if (!settings) throw new Failure('payments are not set up: see docs/payments.md');
  if (!settings.payments) throw new Failure('the setting payments has no provider');
  return settings.payments.stripe;
}

async function readNamedSetting({ tables, target }: OperatorPorts, name: string) {
  const raw = await tables.get('settings', name);
  return raw && requireValid(readSetting(raw, target), `the setting ${name} is invalid: `).row;
}
