import {
  ConditionalCheckFailedException,
  GetItemCommand,
  paginateScan,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type DynamoDBClient,
  type TransactionCanceledException,
  type TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
import { parseYuan } from '../../../billing/amount.ts';
import { grantLedgerId } from '../../../billing/grant.ts';
import type { GrantLedgerRow } from '../../../billing/ledger-row.ts';
import type { AppliedGrant, GrantMarks, GrantStore } from '../../../relay/ports/grant-store.ts';
import { Poisoned, StoreBusy } from '../../../relay/ports/store-errors.ts';
import { storeCall } from '../dynamo-client.ts';
import { isInvalid, ledgerAttributes } from './dynamo-ledger-store.ts';
import { numberAttribute, textAttribute, type Attributes } from '../quotas/quota-attributes.ts';
import { readGrantImage } from '../../table-streams/table-stream-records.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

export function dynamoGrantStore(client: DynamoDBClient, stack: string): GrantStore {
  const ledger = physicalTableName(stack, 'ledger');
  const grants = physicalTableName(stack, 'grants');
  return {
    async find(account, grantId) {
      const Key = { account: textAttribute(account), id: textAttribute(grantLedgerId(grantId)) };
      const command = new GetItemCommand({ TableName: ledger, Key, ConsistentRead: true });
      const { Item } = await storeCall(() => client.send(command));
      return Item && appliedOf(Item);
    },
    async apply(row) {
      const TransactItems = [putOnce(ledger, row), addToBalance(physicalTableName(stack, 'quotas'), row)];
      try {
        await storeCall(() => client.send(new TransactWriteItemsCommand({ TransactItems })));
        return { amount: row.amount, at: row.at };
      } catch (error) {
        if (isInvalid(error)) throw new Poisoned('grants: the transaction is refused', { cause: error });
        if (!isCancelled(error)) throw error;
        return whyCancelled(error);
      }
    },
    async mark(account, grantId, marks) {
      const command = new UpdateItemCommand({
        TableName: grants,
        Key: { account: textAttribute(account), grant_id: textAttribute(grantId) },
        ...markExpression(marks),
      });
      await storeCall(() => client.send(command)).catch((error: unknown) => {
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      });
    },
    async *unapplied() {
      const FilterExpression = 'attribute_not_exists(#applied)';
      const ExpressionAttributeNames = { '#applied': '_applied' };
      const input = { TableName: grants, ConsistentRead: true, FilterExpression, ExpressionAttributeNames };
      for await (const { Items = [] } of paginateScan({ client }, input)) yield* Items.map(readGrantImage);
    },
  };
}

const putOnce = (TableName: string, row: GrantLedgerRow): TransactWriteItem => ({
  Put: {
    TableName,
    Item: ledgerAttributes(row),
    ConditionExpression: 'attribute_not_exists(id)',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  },
});

/** An account's first grant makes its item, whole: later writes go into maps that have to be there. */
const addToBalance = (TableName: string, { account, amount }: GrantLedgerRow): TransactWriteItem => ({
  Update: {
    TableName,
    Key: { account: textAttribute(account) },
    UpdateExpression: `SET available = if_not_exists(available, :zero) + :amount,
      granted = if_not_exists(granted, :zero) + :amount, spent = if_not_exists(spent, :zero),
      settled = if_not_exists(settled, :zero), #open = if_not_exists(#open, :none),
      #plan = if_not_exists(#plan, :none), busy = if_not_exists(busy, :none), #rate = if_not_exists(#rate, :none)`,
    ExpressionAttributeNames: { '#open': 'open', '#plan': 'plan', '#rate': 'rate' },
    ExpressionAttributeValues: {
      ':amount': numberAttribute(amount),
      ':zero': numberAttribute(0),
      ':none': { M: {} },
    },
  },
});

const isCancelled = (error: unknown): error is TransactionCanceledException =>
  error instanceof Error && error.name === 'TransactionCanceledException';

/** Applied before, or not to be applied now, or never. */
function whyCancelled(error: TransactionCanceledException): AppliedGrant {
  const reasons = error.CancellationReasons ?? [];
  const [putting] = reasons;
  if (putting?.Code === 'ConditionalCheckFailed' && putting.Item) return appliedOf(putting.Item);
  if (reasons.some(({ Code }) => Code === 'ValidationError'))
    throw new Poisoned("grants: the account's item does not take the amount", { cause: error });
  throw new StoreBusy('The transaction did not go through.', { cause: error });
}

function appliedOf({ amount, at }: Attributes): AppliedGrant {
  const applied = parseYuan(amount?.N ?? '');
  if (applied === undefined || at?.S === undefined)
    throw new Poisoned('ledger: the row of a grant is unreadable');
  return { amount: applied, at: at.S };
}

function markExpression({ applied, problem }: GrantMarks) {
  const set = [
    ...(applied === undefined ? [] : ['#applied = :applied']),
    ...(problem === undefined ? [] : ['#problem = :problem']),
  ];
  const values: Attributes = {
    ...(applied !== undefined && { ':applied': textAttribute(applied) }),
    ...(problem !== undefined && { ':problem': textAttribute(problem) }),
  };
  return {
    ConditionExpression: 'attribute_exists(account)',
    UpdateExpression: `${set.length > 0 ? `SET ${set.join(', ')}` : ''}${problem === undefined ? ' REMOVE #problem' : ''}`,
    ExpressionAttributeNames: {
      ...(applied !== undefined && { '#applied': '_applied' }),
      '#problem': '_problem',
    },
    ...(set.length > 0 && { ExpressionAttributeValues: values }),
  };
}
