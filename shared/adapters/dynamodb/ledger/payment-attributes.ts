/** Converts payments to and from DynamoDB attributes. Amounts are whole numbers of the currency's smallest unit. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Payment, Reversal } from '../../../billing/payments/payment.ts';
import type { PaymentAmount } from '../../../billing/payments/payment-amount.ts';
import { Poisoned } from '../../../relay/ports/stores/store-errors.ts';
import type { Attributes } from '../attributes.ts';

export function paymentAttributes({ paid, reversals, ...payment }: Payment): Attributes {
  const flat = Object.entries(reversals).map(([id, { minor, grewFrom, ...rest }]) => [
    id,
    { ...rest, amount: minor, grew_from: grewFrom },
  ]);
  return marshall(
    { ...payment, amount: paid?.minor, currency: paid?.currency, reversals: Object.fromEntries(flat) },
    { removeUndefinedValues: true },
  );
}

const states = ['expected', 'parked', 'granted', 'rejected'] as const;
const reversalStates = ['taken', 'returned', 'void'] as const;

/** Throws Poisoned when an attribute has another form than functions write. */
export function paymentOf(attributes: Attributes): Payment {
  const { id, version, state, at, account, problem, rate, live, amount, reversals } = attributes;
  return {
    id: need(id?.S, 'id'),
    version: Number(need(version?.N, 'version')),
    state: need(
      states.find((each) => each === state?.S),
      'state',
    ),
    at: need(at?.S, 'at'),
    ...(amount && { paid: amountOf(attributes) }),
    rate: rate?.S,
    account: account?.S,
    problem: problem?.S,
    live: live?.BOOL,
    reversals: Object.fromEntries(
      Object.entries(need(reversals?.M, 'reversals')).map(([key, value]) => [key, reversalOf(value)]),
    ),
  };
}

function reversalOf(value: AttributeValue): Reversal {
  const { kind, state, grew_from, ...rest } = need(value.M, 'reversals');
  const grewFrom = grew_from?.L?.map(({ N }) => BigInt(need(N, 'grew_from')));
  return {
    kind: kind?.S === 'dispute' ? 'dispute' : 'refund',
    state: need(
      reversalStates.find((each) => each === state?.S),
      'reversals',
    ),
    ...amountOf(rest),
    ...(grewFrom && { grewFrom }),
  };
}

function amountOf({ amount, currency }: Attributes): PaymentAmount {
  const digits = need(amount?.N, 'amount');
  if (!/^\d+$/.test(digits)) throw unreadable('amount');
  return { minor: BigInt(digits), currency: need(currency?.S, 'currency') };
}

function need<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw unreadable(name);
  return value;
}

const unreadable = (name: string): Poisoned => new Poisoned(`payments: ${name} is not what functions write`);
