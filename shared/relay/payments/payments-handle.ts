/**
 * POST /hooks/payments/stripe: Stripe reports payments, refunds and disputes. Without the setting `payments` the path
 * does not exist. Must answer 2xx only when what was reported is stored, because Stripe then forgets it.
 */
import { isOn, storeCard, turnOff, type AutoTopUp } from '../../billing/auto-top-up.ts';
import { buyMonth, returnMonth } from '../../billing/plan-sale.ts';
import type { Settings, StripeSettings } from '../../config/settings.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { parseJson } from '../../wire/json.ts';
import type { Handle, RelayRequest } from '../http/http.ts';
import { createLoggedHandle } from '../http/logged-handle.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { respondJson, smallBody } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { refusalAgeMsMax, type SecretStore } from '../ports/config-store.ts';
import { readStripeEvent, type StripeEvent, checkSignature, type PaidCheckout, isSigned } from './stripe.ts';
import {
  parseReference,
  formatTextToSign,
  findBonus,
  type PaymentReference,
  type PaidFact,
  applyFact,
  type ReversalFact,
  explainOperatorNeed,
  isTakenBack,
  mayStoreCard,
  type Payment,
  type Reversal,
  planPaymentChange,
  type PaymentChange,
} from '../../billing/payments.ts';
import type { AutoTopUpStore } from '../ports/alerts.ts';
import type { Hmac } from '../ports/host.ts';
import type { PaymentStore } from '../ports/money-stores.ts';
import { Backoff } from '../retry.ts';
import { StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';
import type { Metrics } from '../ports/telemetry.ts';

interface PaymentsPorts extends RecordPorts, Pick<ChatPorts, 'config'> {
  topUps: Pick<AutoTopUpStore, 'change'>;
  hmac: Hmac;
  secrets: Pick<SecretStore, 'read'>;
}

export const stripePath = '/hooks/payments/stripe';
/** Stripe's events have some kilobytes. */
const bodyBytesMax = 256 * 1024;

export const createPaymentsHandle = (ports: PaymentsPorts): Handle =>
  createLoggedHandle(ports, { endpoint: 'payments' }, async (request, found) => {
    const isStored = await store(ports, await readEvent(ports, request));
    if (!isStored) found({ endpoint: 'payments', reason: 'ignored' });
    return respondJson(request.id, { received: true });
  });

type PaymentSettings = StripeSettings & Pick<Settings, 'topUpBonus'>;
type ReceivedEvent = StripeEvent & { settings: PaymentSettings };

async function readEvent(ports: PaymentsPorts, request: RelayRequest): Promise<ReceivedEvent> {
  // An older configuration would park a payment whose currency has a rate by now, and Stripe does not send it again.
  const { payments, topUpBonus } = (await ports.config.notOlderThan(refusalAgeMsMax)).settings;
  const settings = payments && { ...payments.stripe, topUpBonus };
  if (!settings || request.path !== stripePath || request.method !== 'POST') throw refuseRoute(request);
  const body = smallBody(request, bodyBytesMax);
  const header = request.headers['stripe-signature'];
  const { webhookSecrets: secrets } = settings;
  await checkSignature(ports, { header, body, secrets, nowMs: ports.clock.now() }).catch((error: unknown) => {
    if (error instanceof StoreUnavailable) ports.log.fault(request.id, error);
    throw error;
  });
  const json = parseJson(new TextDecoder().decode(body));
  if (json === undefined) throw new InvalidRequest('invalid_json', null, 'The body is not valid JSON.');
  return { ...readStripeEvent(json), settings };
}

/** @returns false if the event reports nothing that counts here */
async function store(ports: PaymentsPorts, { live, at, reports, settings }: ReceivedEvent): Promise<boolean> {
  // Test payments are no money. Real ones that a relay in test mode gets are kept for an operator.
  if (!live && settings.live) return false;
  let isStored = false;
  for (const report of reports) {
    const fact =
      report.kind === 'checkout'
        ? await carryOutPayment(ports, { ...report, live, at }, settings)
        : { ...report, at };
    if (!fact) continue;
    if (fact.kind === 'reversal') await stopTopUpsAfterReversal(ports, fact);
    const payment = await recordFact(ports, fact);
    if (fact.kind === 'paid' && report.kind === 'checkout')
      await forgetReversedCard(ports, await keepCard(ports, payment, report));
    // A dispute that is won later must not turn off what the customer has asked for again since.
    else if (fact.kind === 'reversal' && fact.reversal.state === 'taken')
      await forgetReversedCard(ports, payment);
    isStored = true;
  }
  return isStored;
}

/**
 * Turns automatic top-ups off, so that no card is charged because its money was given back. Runs before the refund or dispute is recorded,
 * so that a retry after a crash repeats it. A repeated report changes nothing here.
 */
async function stopTopUpsAfterReversal(
  { payments, topUps }: PaymentsPorts,
  fact: ReversalFact,
): Promise<void> {
  if (fact.reversal.state !== 'taken') return;
  const { account, reversals = {} } = (await payments.find(fact.payment)) ?? {};
  if (account === undefined || reversals[fact.id]) return;
  await topUps.change(account, (auto) =>
    auto && isOn(auto) ? turnOff(auto, offReasonOf(fact.reversal)) : undefined,
  );
}

const offReasonOf = ({ kind }: Reversal) => (kind === 'dispute' ? 'disputed' : 'refunded');

/**
 * Turns automatic top-ups on if the account asked for them with this payment, unless a refund or dispute was reported before it.
 * @returns the payment as stored afterwards
 */
async function keepCard(
  { clock, topUps, payments }: PaymentsPorts,
  stored: Payment,
  { card = stored.card, references, payment }: PaidCheckout,
): Promise<Payment> {
  const { account } = stored;
  const { nonce } = parseReference(references[0] ?? '')?.reference ?? {};
  if (!card || account === undefined || nonce === undefined || !mayStoreCard(stored))
    return { ...stored, card };
  const nowMs = clock.now();
  await topUps.change(account, (auto) => storeCard(auto, { nonce, card, payment, nowMs }));
  return { ...stored, ...(await payments.find(payment)), card };
}

/** Turns automatic top-ups off if a refund or dispute was recorded while the payment stored its card: whichever writes last sees the other. */
async function forgetReversedCard(
  { topUps }: PaymentsPorts,
  { id, account, card, reversals }: Payment,
): Promise<void> {
  const reversal = Object.values(reversals).find(({ state }) => state !== 'void');
  if (account === undefined || !reversal) return;
  const isOfPayment = ({ pending, card: kept }: AutoTopUp): boolean =>
    pending?.payment === id || (card !== undefined && card.method === kept?.method);
  await topUps.change(account, (auto) =>
    auto && isOn(auto) && isOfPayment(auto) ? turnOff(auto, offReasonOf(reversal)) : undefined,
  );
}

// Finds the account of a paid checkout: only a reference that this relay signed names it. What cannot
// be granted is kept with the reason, for an operator.

/** Reasons for which payments are parked. They stand in rows and in the log, so they quote nothing. */
const problems = {
  unsigned: 'the payment has no reference of this relay',
  forged: 'the reference of the payment is not signed by this relay',
  testMode: 'the payment is real, but the setting payments has live: false',
  notSingle: 'the checkout was not a one-time payment',
  otherAmount: 'the amount paid differs from the amount in the reference',
  noAccount: 'the customer in the reference does not exist',
  noRate: 'the setting payments has no rate for the currency',
};

/** Returns nothing for a checkout of another shop, which the setting says to ignore. */
async function carryOutPayment(
  ports: PaymentsPorts,
  checkout: PaidCheckout & { live: boolean; at: string },
  settings: PaymentSettings,
): Promise<PaidFact | undefined> {
  const { payment, paid, live, at, isSingle, card } = checkout;
  const found = await referenceOf(ports, checkout, settings);
  if (found === 'unsigned' && settings.unsigned === 'ignore') return undefined;
  const rate = settings.rates[paid.currency];
  const findProblem = async (): Promise<string | undefined> => {
    if (typeof found === 'string') return problems[found];
    if (live && !settings.live) return problems.testMode;
    if (!isSingle) return problems.notSingle;
    if (found.minor !== paid.minor || found.currency !== paid.currency) return problems.otherAmount;
    if (!(await ports.payments.account(found.account))) return problems.noAccount;
    return rate === undefined ? problems.noRate : undefined;
  };
  const { account, level } = typeof found === 'string' ? {} : found;
  const bonus = level === undefined ? findBonus(settings.topUpBonus, paid, rate) : undefined;
  const problem = await findProblem();
  return { kind: 'paid', payment, at, paid, live, rate, bonus, account, card, level, problem };
}

async function referenceOf(
  ports: PaymentsPorts,
  { references }: PaidCheckout,
  { linkSecrets }: StripeSettings,
): Promise<PaymentReference | 'unsigned' | 'forged'> {
  const parsed = references.flatMap((text) => parseReference(text) ?? []);
  for (const { reference, signature, body } of parsed) {
    const signed = { message: formatTextToSign(body, reference.level), signatures: [signature] };
    if (await isSigned(ports, linkSecrets, signed)) return reference;
  }
  return parsed.length > 0 ? 'forged' : 'unsigned';
}

// Records a fact about a payment, with the grants that follow from it. Safe to repeat, and to run at once with others
// for the same payment.

interface RecordPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  payments: PaymentStore;
  metrics: Metrics;
}

/** Stripe waits 20 s for an answer at most and then sends the event again. */
const budgetMs = 8_000;

/** Resolves when the fact is stored. Throws the store's error; the fact may be stored then, too. */
export async function recordFact(ports: RecordPorts, fact: PaidFact | ReversalFact): Promise<Payment> {
  const { payments, log } = ports;
  const tryOnce = async (): Promise<PaymentChange> => {
    const before = await payments.find(fact.payment);
    const { finalFact, plan } = await decidePlan(ports, before, fact);
    const after = applyFact(before, finalFact);
    // Reported as if it were new: the report of the call that wrote it may have been lost with the call.
    if (after === before) return { before: undefined, after: before, grants: [] };
    const change = { ...planPaymentChange(before, after), plan };
    await writeChange(ports, change);
    return change;
  };
  const change = await new Backoff(ports, budgetMs).until(tryOnce);
  const { after, grants } = change;
  for (const { account, grant_id } of grants)
    log.event('payment_granted', { account, grant_id, payment: after.id });
  report(ports, change, explainOperatorNeed(change));
  return after;
}

/** Decides on the plan's change. It is written in the transaction that records the payment, so it happens once. */
async function decidePlan(
  { payments, clock }: RecordPorts,
  before: Payment | undefined,
  fact: PaidFact | ReversalFact,
): Promise<{ finalFact: PaidFact | ReversalFact; plan?: PaymentChange['plan'] }> {
  const nowMs = clock.now();
  if (fact.kind === 'paid') {
    const { level, account, problem } = fact;
    const isNew = before === undefined || before.state === 'expected' || before.state === 'parked';
    if (!isNew || level === undefined || account === undefined || problem !== undefined)
      return { finalFact: fact };
    // A refund may be reported before its payment.
    if (before && isTakenBack({ ...before, paid: fact.paid })) return { finalFact: fact };
    const seen = await payments.account(account);
    const month = seen ? buyMonth(seen.plan, level, nowMs) : problems.noAccount;
    if (typeof month === 'string') return { finalFact: { ...fact, problem: month } };
    return { finalFact: { ...fact, bought: month.bought }, plan: seen && { seen, plan: month.plan } };
  }
  const { state, level, account, bought } = before ?? {};
  if (!before || state !== 'plan' || level === undefined || account === undefined || !bought)
    return { finalFact: fact };
  if (isTakenBack(before) || !isTakenBack(applyFact(before, fact))) return { finalFact: fact };
  const seen = await payments.account(account);
  const plan = returnMonth(seen?.plan, { level, bought, nowMs });
  return { finalFact: fact, plan: seen && plan && { seen, plan } };
}

/** Throws StoreBusy when another write came between: the payment has to be read again. */
async function writeChange(ports: RecordPorts, change: PaymentChange): Promise<void> {
  const written = await ports.payments.write(change);
  if (written === 'outdated') throw new StoreBusy('Another fact of the payment was written meanwhile.');
  if (written === 'written') return;
  // Somebody granted it by hand under the same id. Their row counts; an operator should compare the amounts.
  const grants = change.grants.filter(({ grant_id }) => !written.taken.includes(grant_id));
  await writeChange(ports, { ...change, grants });
  report(ports, change, 'a grant with this id already exists');
}

function report({ log, metrics }: RecordPorts, { after }: PaymentChange, problem: string | undefined): void {
  if (problem === undefined) return;
  metrics.count('PaymentParked');
  log.event('payment_parked', { payment: after.id, state: after.state, account: after.account, problem });
}
