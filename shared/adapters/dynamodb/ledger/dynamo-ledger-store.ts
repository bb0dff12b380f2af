/** Puts rows of `ledger`. Rows may arrive in any order and repeatedly. */
import { PutItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { CloseRow } from '../../../billing/ledger-row.ts';
import type { LedgerStore } from '../../../relay/ports/stores/ledger-store.ts';
import { Poisoned } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { conditionalCall, isInvalid } from '../dynamo-client.ts';
import { ledgerAttributes } from '../ledger-attributes.ts';

/**
 * States of an id:
 *
 *     absent --any row--> taken
 *     absent --cancelled--> a tombstone's row --settled, released or expired--> taken
 *
 * A settled call's id can also belong to a tombstone that is cancelled later. The tombstone's row must not
 * block the call's own row, whichever arrives first.
 */
const isAbsent = 'attribute_not_exists(id)';
const isTombstone = '#kind = :cancelled';

export function dynamoLedgerStore(client: DynamoDBClient, stack: string): LedgerStore {
  const TableName = physicalTableName(stack, 'ledger');
  return {
    async putIfAbsent(row) {
      const command = new PutItemCommand({ TableName, Item: ledgerAttributes(row), ...unlessTaken(row) });
      try {
        await conditionalCall(() => client.send(command));
      } catch (error) {
        if (isInvalid(error)) throw new Poisoned('ledger: the row is refused', { cause: error });
        throw error;
      }
    },
  };
}

const unlessTaken = ({ kind }: CloseRow) =>
  kind === 'cancelled'
    ? { ConditionExpression: isAbsent }
    : {
        ConditionExpression: `${isAbsent} OR ${isTombstone}`,
        ExpressionAttributeNames: { '#kind': 'kind' },
        ExpressionAttributeValues: marshall({ ':cancelled': 'cancelled' }),
      };
