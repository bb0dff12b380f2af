/**
 * Stores payments. A payment and its grants are written in one transaction. Amounts are whole numbers of the currency's
 * smallest unit.
 */
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Payment, Reversal, PaymentAmount, PaymentChange } from '../../billing/payments.ts';
import { Poisoned, StoreBusy } from '../../relay/ports/store-errors.ts';
import {
  attributesOf,
  buildExpressions,
  changeIfUnchanged,
  Table,
  valuesOf,
  type Attributes,
  type TableClient,
} from './table-client.ts';
import type { BoughtMonth } from '../../billing/plan-sale.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { formatYuan } from '../../billing/money.ts';
import { unappliedMark, type Grant } from '../../billing/ledger-row.ts';
import type { PaymentStore } from '../../relay/ports/money-stores.ts';
import { writeTransaction } from './transactions.ts';
import { tryReading, type AuthorMarks, type RowAuthor } from './operator-store.ts';

function encodePayment({ paid, reversals, ...payment }: Payment): Attributes {
  const flat = Object.entries(reversals).map(([id, { minor, grewFrom, ...rest }]) => [
    id,
    { ...rest, amount: minor, grew_from: grewFrom },
  ]);
  const { minor: amount, currency } = paid ?? {};
  return attributesOf({ ...payment, amount, currency, reversals: Object.fromEntries(flat) });
}

const states = ['expected', 'parked', 'granted', 'rejected', 'plan'] as const;
const reversalStates = ['taken', 'returned', 'void'] as const;

/** Throws Poisoned if functions did not write it. */
function decodePayment(attributes: Attributes): Payment {
  const { id, version, at, account, card, problem, rate, bonus, live, level, bought, amount, reversals } =
    attributes;
  const state = states.find((each) => each === attributes['state']?.S);
  return {
    id: requireValue(id?.S, 'id'),
    version: Number(requireValue(version?.N, 'version')),
    state: requireValue(state, 'state'),
    at: requireValue(at?.S, 'at'),
    ...(amount && { paid: decodeAmount(attributes) }),
    rate: rate?.S,
    bonus: bonus?.S,
    account: account?.S,
    card: card?.M && (valuesOf(card.M) as unknown as Payment['card']),
    problem: problem?.S,
    live: live?.BOOL,
    level: level && Number(level.N),
    bought: bought?.M && (valuesOf(bought.M) as unknown as BoughtMonth),
    reversals: Object.fromEntries(
      Object.entries(requireValue(reversals?.M, 'reversals')).map(([key, value]) => [
        key,
        decodeReversal(value),
      ]),
    ),
  };
}

function decodeReversal(value: AttributeValue): Reversal {
  const { kind, state: written, grew_from, ...paid } = requireValue(value.M, 'reversals');
  const state = reversalStates.find((each) => each === written?.S);
  const grewFrom = grew_from?.L?.map(({ N }) => BigInt(requireValue(N, 'grew_from')));
  return {
    kind: kind?.S === 'dispute' ? 'dispute' : 'refund',
    state: requireValue(state, 'reversals'),
    ...decodeAmount(paid),
    ...(grewFrom && { grewFrom }),
  };
}

function decodeAmount({ amount, currency }: Attributes): PaymentAmount {
  const digits = requireValue(amount?.N, 'amount');
  if (!/^\d+$/.test(digits)) throw createFormatError('amount');
  return { minor: BigInt(digits), currency: requireValue(currency?.S, 'currency') };
}

function requireValue<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw createFormatError(name);
  return value;
}

const createFormatError = (name: string): Poisoned =>
  new Poisoned(`payments: ${name} is not what functions write`);

const isNewPayment = 'attribute_not_exists(id)';
const isUnchanged = 'version = :before';
const isNewGrant = 'attribute_not_exists(grant_id)';

/** @param author missing for functions, whose rows need no author */
export function createPaymentStore(client: TableClient, stack: string, author?: RowAuthor): PaymentStore {
  const payments = new Table(client, stack, 'payments');
  const grants = new Table(client, stack, 'grants');
  const accounts = new Table(client, stack, 'accounts');
  return {
    async find(id) {
      const item = await payments.get({ id });
      return item && decodePayment(item);
    },
    async write(change) {
      const marks = await author?.();
      const TransactItems = [
        putPayment(payments.name, change),
        ...(change.plan ? [{ Update: buildPlanUpdate(accounts, change.plan, change.after.id) }] : []),
        ...change.grants.map((grant) => putGrant(grants.name, { ...grant, ...marks })),
      ];
      const reply = await writeTransaction(client, TransactItems);
      if (reply.done) return 'written';
      if (reply.invalid) throw reply.error;
      const taken = reply.refused.flatMap(({ grant_id }) => grant_id?.S ?? []);
      const isOutdated = reply.conditions.length > taken.length;
      if (isOutdated) return 'outdated';
      if (taken.length > 0) return { taken };
      throw new StoreBusy('The transaction did not go through.', { cause: reply.error });
    },
    async account(account) {
      const stored = await accounts.get({ account });
      if (!stored) return undefined;
      // Read only the plan: a mistake elsewhere in the row must not cost the account its paid time.
      const reading = readRow(AccountRow, { account, plan: valuesOf(stored)['plan'] });
      return { account, plan: 'row' in reading ? reading.row.plan : undefined, stored };
    },
    async *all() {
      for await (const items of payments.readPages('Scan'))
        yield items.map((item) => tryReading(item, `payments ${item['id']?.S}`, decodePayment));
    },
  };
}

const putPayment = (TableName: string, { before, after }: PaymentChange): TransactWriteItem => ({
  Put: {
    TableName,
    Item: encodePayment(after),
    ...buildExpressions(
      { ConditionExpression: before ? isUnchanged : isNewPayment },
      { ':before': before?.version },
    ),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  },
});

/** Compares only the plan, so that an operator's edit of another attribute does not fail the write. */
function buildPlanUpdate(
  accounts: Table,
  { seen, plan }: NonNullable<PaymentChange['plan']>,
  payment: string,
) {
  const [since, until] = [plan.since, plan.until].map((ms) => ms && isoTime(ms));
  const marks = { _by: `payment ${payment}`, _at: isoTime(Date.now()) };
  const attributes = { plan: { level: plan.level, since, until }, ...marks };
  const unchanged = { key: 'account', names: ['plan'], stored: seen.stored as Attributes };
  return { ...accounts.keyInput({ account: seen.account }), ...changeIfUnchanged(unchanged, attributes) };
}

export const putGrant = (TableName: string, { amount, ...grant }: Grant & Partial<AuthorMarks>) => ({
  Put: {
    TableName,
    Item: { ...attributesOf({ ...grant, ...unappliedMark }), amount: { N: formatYuan(amount) } },
    ConditionExpression: isNewGrant,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  },
});
