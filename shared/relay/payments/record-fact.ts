/**
 * Records a fact about a payment, with the grants that follow from it. Safe to repeat, and to run at once with others
 * for the same payment.
 */
import { afterFact, type PaidFact, type ReversalFact } from '../../billing/payments/payment.ts';
import { needsOperator, paymentChange, type PaymentChange } from '../../billing/payments/payment-grants.ts';
import { Backoff } from '../money/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/ids.ts';
import type { PaymentStore } from '../ports/stores/payment-store.ts';
import { StoreBusy } from '../ports/stores/store-errors.ts';
import type { Log, Metrics } from '../ports/telemetry.ts';

export interface RecordPorts {
  payments: PaymentStore;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
}

/** Stripe waits 20 s for an answer at most and then sends the event again. */
const budgetMs = 8_000;

/** Resolves when the fact is stored. Throws the store's error; the fact may be stored then, too. */
export async function recordFact(ports: RecordPorts, fact: PaidFact | ReversalFact): Promise<void> {
  const { payments, log } = ports;
  const tryOnce = async (): Promise<PaymentChange> => {
    const before = await payments.find(fact.payment);
    const after = afterFact(before, fact);
    // Reported as if it were new: the report of the call that wrote it may have been lost with the call.
    if (after === before) return { before: undefined, after: before, grants: [] };
    const change = paymentChange(before, after);
    await writeChange(ports, change);
    return change;
  };
  const change = await new Backoff(ports, budgetMs).until(tryOnce);
  const { after, grants } = change;
  for (const { account, grant_id } of grants)
    log.event('payment_granted', { account, grant_id, payment: after.id });
  report(ports, change, needsOperator(change));
}

/** Throws StoreBusy when another write came between: the payment has to be read again. */
async function writeChange(ports: RecordPorts, change: PaymentChange): Promise<void> {
  const written = await ports.payments.write(change);
  if (written === 'outdated') throw new StoreBusy('Another fact of the payment was written meanwhile.');
  if (written === 'written') return;
  // Somebody granted it by hand under the same id. Their row counts; an operator should compare the amounts.
  const grants = change.grants.filter(({ grant_id }) => !written.taken.includes(grant_id));
  await writeChange(ports, { ...change, grants });
  report(ports, change, 'a grant of this id exists already');
}

function report({ log, metrics }: RecordPorts, { after }: PaymentChange, problem: string | undefined): void {
  if (problem === undefined) return;
  metrics.count('PaymentParked');
  log.event('payment_parked', { payment: after.id, state: after.state, account: after.account, problem });
}
