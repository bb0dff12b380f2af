/** What an operator decides about a parked payment: which account it is granted to, or that it is no account's. */
import { paymentText } from '../../billing/payments/payment-amount.ts';
import { assigned, rejected, type Payment } from '../../billing/payments/payment.ts';
import { grantText, paymentChange, type PaymentChange } from '../../billing/payments/payment-grants.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import { stripeSetting } from './stripe-setting.ts';

export type DecisionPlan = Plan<PaymentChange>;

export async function planAssignPayment(
  ports: OperatorPorts,
  { id, account }: { id: string; account: string },
): Promise<DecisionPlan> {
  const { payment, paid } = await parkedPayment(ports, id);
  if (!(await ports.payments.hasAccount(account)))
    throw usageFailure(`there is no account ${account}: make a key for it first`);
  const rate = payment.rate ?? (await stripeSetting(ports)).rates[paid.currency];
  if (rate === undefined)
    throw new Failure(`the setting payments has no rate for ${paid.currency}: add one, then repeat`);
  const change = paymentChange(payment, assigned(payment, account, rate));
  return {
    changes: [change],
    effect: [
      ...(payment.problem === undefined ? [] : [`it was parked because ${payment.problem}`]),
      ...change.grants.map((grant) => `account ${account} is granted, once, for the ${grantText(grant)}`),
    ],
    questions: [`Grant payment ${id} of ${paymentText(paid)} to account ${account}?`],
  };
}

export async function planRejectPayment(ports: OperatorPorts, id: string): Promise<DecisionPlan> {
  const { payment, paid } = await parkedPayment(ports, id);
  return {
    changes: [paymentChange(payment, rejected(payment))],
    effect: [
      'nothing is granted for it, now or later; what the customer paid is returned at Stripe, not here',
    ],
    questions: [`Grant payment ${id} of ${paymentText(paid)} to nobody?`],
  };
}

export async function carryOutDecision({ payments }: OperatorPorts, plan: DecisionPlan): Promise<void> {
  for (const change of plan.changes) {
    const written = await payments.write(change);
    if (written === 'outdated')
      throw new Failure(
        'the payment was changed meanwhile and nothing was written: look at it again, then repeat',
      );
    if (written !== 'written')
      throw new Failure(
        `nothing was written: ${change.after.account} has a grant ${written.taken.join(', ')} already; reject the payment instead`,
      );
  }
}

async function parkedPayment({ payments }: OperatorPorts, id: string) {
  const payment = await payments.find(id);
  if (!payment) throw new Failure(`nothing is known of a payment ${id}: see \`payment list\``);
  const { state, account, paid } = payment;
  if (state !== 'parked' || !paid)
    throw new Failure(`payment ${id} is not parked: ${stateWords[state]} ${account ?? ''}`.trim());
  return { payment, paid };
}

const stateWords: Record<Payment['state'], string> = {
  expected: 'only a refund or dispute of it was reported yet',
  parked: 'its amount is not known',
  granted: 'it was granted to',
  rejected: 'it was rejected',
};
