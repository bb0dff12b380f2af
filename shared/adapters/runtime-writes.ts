/** Single conditional writes to the table `runtime`: true when the condition held and the write was done. */
import { ConditionalCheckFailedException, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { storeCall } from './dynamo.ts';
import { numberAttribute, textAttribute, type Attributes } from './quota-attributes.ts';
import { pointerAttributes, pointerId, type Pointer } from './runtime-items.ts';

export interface RuntimeTable {
  client: DynamoDBDocumentClient;
  name: string;
}

export const putItem = async (table: RuntimeTable, id: string, attributes: Attributes): Promise<void> => {
  const command = new PutItemCommand({
    TableName: table.name,
    Item: { id: textAttribute(id), ...attributes },
  });
  await storeCall(() => table.client.send(command));
};

export const putIfAbsent = (table: RuntimeTable, id: string, attributes: Attributes): Promise<boolean> =>
  ifHolds(() =>
    table.client.send(
      new PutItemCommand({
        TableName: table.name,
        Item: { id: textAttribute(id), ...attributes },
        ConditionExpression: 'attribute_not_exists(id)',
      }),
    ),
  );

/** @param from the pointer that must still be there; undefined: there must be none */
export function movePointer(table: RuntimeTable, from: Pointer | undefined, to: Pointer): Promise<boolean> {
  if (from === undefined) return putIfAbsent(table, pointerId, pointerAttributes(to));
  const command = new PutItemCommand({
    TableName: table.name,
    Item: { id: textAttribute(pointerId), ...pointerAttributes(to) },
    ConditionExpression: '#version = :version AND #digest = :digest',
    ExpressionAttributeNames: { '#version': 'version', '#digest': 'digest' },
    ExpressionAttributeValues: {
      ':version': numberAttribute(from.version),
      ':digest': textAttribute(from.digest),
    },
  });
  return ifHolds(() => table.client.send(command));
}

/** @param expires Unix seconds after which DynamoDB removes the item */
export function expireItem(table: RuntimeTable, id: string, expires: number): Promise<boolean> {
  const command = new UpdateItemCommand({
    TableName: table.name,
    Key: { id: textAttribute(id) },
    UpdateExpression: 'SET expires = :expires',
    ConditionExpression: 'attribute_exists(id) AND attribute_not_exists(expires)',
    ExpressionAttributeValues: { ':expires': numberAttribute(expires) },
  });
  return ifHolds(() => table.client.send(command));
}

async function ifHolds(write: () => Promise<unknown>): Promise<boolean> {
  try {
    await storeCall(write);
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
