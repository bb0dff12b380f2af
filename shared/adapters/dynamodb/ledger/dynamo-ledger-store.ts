import {
  ConditionalCheckFailedException,
  PutItemCommand,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import { formatYuan } from '../../../billing/amount.ts';
import type { CloseRow, GrantLedgerRow, LedgerRow } from '../../../billing/ledger-row.ts';
import { type LedgerStore } from '../../../relay/ports/ledger-store.ts';
import { Poisoned } from '../../../relay/ports/store-errors.ts';
import { storeCall } from '../dynamo-client.ts';
import { numberAttribute, textAttribute, type Attributes } from '../quotas/quota-attributes.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

export function dynamoLedgerStore(client: DynamoDBClient, stack: string): LedgerStore {
  const TableName = physicalTableName(stack, 'ledger');
  return {
    async putIfAbsent(row) {
      const command = new PutItemCommand({
        TableName,
        Item: ledgerAttributes(row),
        ...unlessThere(row),
      });
      try {
        await storeCall(() => client.send(command));
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return;
        if (isInvalid(error)) throw new Poisoned('ledger: the row is refused', { cause: error });
        throw error;
      }
    },
  };
}

/**
 * The id of a settled call may be taken once more, by a tombstone that is cancelled later. Its row must not stand in the
 * way of the call's own, in whichever order they come.
 */
const unlessThere = ({ kind }: CloseRow) =>
  kind === 'cancelled'
    ? { ConditionExpression: 'attribute_not_exists(id)' }
    : {
        ConditionExpression: 'attribute_not_exists(id) OR #kind = :cancelled',
        ExpressionAttributeNames: { '#kind': 'kind' },
        ExpressionAttributeValues: { ':cancelled': textAttribute('cancelled') },
      };

/** The store understood the write and will never take it. */
export const isInvalid = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationException';

/** A ledger row as the table holds it: amounts in yuan, as exact decimals. */
export const ledgerAttributes = (row: LedgerRow): Attributes =>
  row.kind === 'grant' ? grantAttributes(row) : closeAttributes(row);

const grantAttributes = ({ account, id, at, kind, amount, reason }: GrantLedgerRow): Attributes => ({
  ...texts({ account, id, at, kind, reason }),
  ...yuan({ amount }),
});

function closeAttributes(row: CloseRow): Attributes {
  const { account, id, at, kind, endpoint, model, key, end, price, plan_slot, official, estimated } = row;
  return {
    ...texts({ account, id, at, kind, endpoint, model, key }),
    ...yuan({ charge: row.charge, reserved: row.reserved }),
    ...counts({ prompt_tokens: row.prompt_tokens, completion_tokens: row.completion_tokens }),
    ...(estimated === true && { estimated: { BOOL: true } }),
    ...texts({ end, price, plan_slot }),
    ...(official === true && { official: { BOOL: true } }),
    ...yuan({ cost: row.cost }),
  };
}

const texts = (values: Record<string, string | undefined>): Attributes => present(values, textAttribute);
const counts = (values: Record<string, number | undefined>): Attributes => present(values, numberAttribute);
const yuan = (values: Record<string, bigint | undefined>): Attributes =>
  present(values, (amount) => ({ N: formatYuan(amount) }));

function present<Value>(
  values: Record<string, Value | undefined>,
  attribute: (value: Value) => Attributes[string],
): Attributes {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, attribute(value)]],
    ),
  );
}
