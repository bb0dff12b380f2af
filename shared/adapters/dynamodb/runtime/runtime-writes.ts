/**
 * Single conditional writes to the table `runtime`: true when the condition held and the write was done. The SDK
 * repeats a write whose reply was lost, so a condition also holds against the same writer's own write.
 */
import { ConditionalCheckFailedException, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { storeCall } from '../dynamo-client.ts';
import { numberAttribute, textAttribute, type Attributes } from '../quotas/quota-attributes.ts';
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

/** @param writer whose write this is: unique to it, and kept in the item */
export const putIfAbsent = (
  table: RuntimeTable,
  id: string,
  attributes: Attributes,
  writer: string,
): Promise<boolean> =>
  ifHolds(() =>
    table.client.send(
      new PutItemCommand({
        TableName: table.name,
        Item: { id: textAttribute(id), ...attributes, writer: textAttribute(writer) },
        ConditionExpression: 'attribute_not_exists(id) OR writer = :writer',
        ExpressionAttributeValues: { ':writer': textAttribute(writer) },
      }),
    ),
  );

/**
 * @param from the pointer that must still be there; undefined: there must be none
 * @param to its version must be the caller's alone: a pointer that names it is the caller's own write
 */
export function movePointer(table: RuntimeTable, from: Pointer | undefined, to: Pointer): Promise<boolean> {
  const command = new PutItemCommand({
    TableName: table.name,
    Item: { id: textAttribute(pointerId), ...pointerAttributes(to) },
    ConditionExpression: `(${from ? names('from') : 'attribute_not_exists(id)'}) OR (${names('to')})`,
    ExpressionAttributeNames: { '#version': 'version', '#digest': 'digest' },
    ExpressionAttributeValues: { ...(from && valuesOf('from', from)), ...valuesOf('to', to) },
  });
  return ifHolds(() => table.client.send(command));
}

const names = (which: 'from' | 'to'): string => `#version = :${which}_version AND #digest = :${which}_digest`;
const valuesOf = (which: 'from' | 'to', { version, digest }: Pointer): Attributes => ({
  [`:${which}_version`]: numberAttribute(version),
  [`:${which}_digest`]: textAttribute(digest),
});

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
