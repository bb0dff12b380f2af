/** Payments in DynamoDB. A payment and the grants that follow from it are written in one transaction. */
import {
  GetItemCommand,
  paginateScan,
  TransactWriteItemsCommand,
  type DynamoDBClient,
  type TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
import { marshall, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import { formatYuan } from '../../../billing/amount.ts';
import type { Grant } from '../../../billing/grant.ts';
import type { PaymentStore } from '../../../relay/ports/stores/payment-store.ts';
import type { PaymentChange } from '../../../billing/payments/payment-grants.ts';
import { StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName, type TableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import { storeCall } from '../dynamo-client.ts';
import { transactionCall } from '../dynamo-transactions.ts';
import type { Store } from '../operator-client.ts';
import type { AuthorMarks, RowAuthor } from '../row-author.ts';
import { paymentAttributes, paymentOf } from './payment-attributes.ts';

const isNewPayment = 'attribute_not_exists(id)';
const isUnchanged = 'version = :before';
const isNewGrant = 'attribute_not_exists(grant_id)';

/** @param author absent: a function writes, whose rows need no author */
export function dynamoPaymentStore(client: DynamoDBClient, stack: string, author?: RowAuthor): PaymentStore {
  const get = async (table: TableName, key: Record<string, string>): Promise<Attributes | undefined> => {
    const TableName = physicalTableName(stack, table);
    const command = new GetItemCommand({ TableName, Key: marshall(key), ConsistentRead: true });
    return (await storeCall(() => client.send(command))).Item;
  };
  return {
    async find(id) {
      const item = await get('payments', { id });
      return item && paymentOf(item);
    },
    async write(change) {
      const marks = await author?.();
      const TransactItems = [
        putPayment(physicalTableName(stack, 'payments'), change),
        ...change.grants.map((grant) => putGrant(physicalTableName(stack, 'grants'), { ...grant, ...marks })),
      ];
      const reply = await transactionCall(() =>
        client.send(new TransactWriteItemsCommand({ TransactItems })),
      );
      if (reply.done) return 'written';
      if (reply.invalid) throw reply.error;
      const taken = reply.refused.flatMap(({ grant_id }) => grant_id?.S ?? []);
      const isOutdated = reply.refused.length > taken.length;
      if (isOutdated) return 'outdated';
      if (taken.length > 0) return { taken };
      throw new StoreBusy('The transaction did not go through.', { cause: reply.error });
    },
    hasAccount: async (account) => (await get('accounts', { account })) !== undefined,
    async *all() {
      const input = { TableName: physicalTableName(stack, 'payments'), ConsistentRead: true };
      for await (const { Items = [] } of paginateScan({ client }, input)) yield Items.map(paymentOf);
    },
  };
}

/** For operators, with errors that say what to do. */
export function explainedPaymentStore({ client, target, explained }: Store, author: RowAuthor): PaymentStore {
  const store = dynamoPaymentStore(client, target.stack, author);
  return {
    find: (...given) => explained(store.find(...given)),
    write: (...given) => explained(store.write(...given)),
    hasAccount: (...given) => explained(store.hasAccount(...given)),
    all: async function* all(...given) {
      yield* await explained(Array.fromAsync(store.all(...given)));
    },
  };
}

const putPayment = (TableName: string, { before, after }: PaymentChange): TransactWriteItem => ({
  Put: {
    TableName,
    Item: paymentAttributes(after),
    ...(before
      ? {
          ConditionExpression: isUnchanged,
          ExpressionAttributeValues: marshall({ ':before': before.version }),
        }
      : { ConditionExpression: isNewPayment }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  },
});

const putGrant = (
  TableName: string,
  { amount, ...grant }: Grant & Partial<AuthorMarks>,
): TransactWriteItem => ({
  Put: {
    TableName,
    Item: marshall(
      { ...grant, amount: NumberValue.from(formatYuan(amount)) },
      { removeUndefinedValues: true },
    ),
    ConditionExpression: isNewGrant,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  },
});
