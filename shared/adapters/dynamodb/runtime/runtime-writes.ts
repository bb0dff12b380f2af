/**
 * Single conditional writes to the table `runtime`; true: the write was done. The SDK repeats a write whose
 * reply was lost, so each condition also accepts the writer's own earlier write.
 */
import { PutCommand, UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Pointer } from '../../../relay/ports/stores/config-store.ts';
import { conditionalCall, storeCall } from '../dynamo-client.ts';
import { pointerId, pointerItem, type RuntimeItem, type RuntimeTable } from './runtime-items.ts';

export interface WrittenRuntimeTable extends RuntimeTable {
  documents: DynamoDBDocumentClient;
}

const isAbsent = 'attribute_not_exists(id)';
const isOwnPart = 'writer = :writer';
const pointsTo = (which: 'from' | 'to'): string =>
  `(#version = :${which}_version AND #digest = :${which}_digest)`;
const isKept = 'attribute_exists(id) AND attribute_not_exists(expires)';

export const putItem = async (
  { documents, name }: WrittenRuntimeTable,
  id: string,
  item: RuntimeItem,
): Promise<void> => {
  const command = new PutCommand({ TableName: name, Item: { id, ...item } });
  await storeCall(() => documents.send(command));
};

/** @param item its `writer` is unique to this write and is stored in the item */
export const putIfAbsent = (
  table: WrittenRuntimeTable,
  id: string,
  item: RuntimeItem & { writer: string },
): Promise<boolean> =>
  ifHolds(table, {
    Item: { id, ...item },
    ConditionExpression: `${isAbsent} OR ${isOwnPart}`,
    ExpressionAttributeValues: { ':writer': item.writer },
  });

/**
 * @param from the pointer that must still be stored; undefined: no pointer may be stored
 * @param to the caller must own its version, so that a stored pointer to it is the caller's own write
 */
export const movePointer = (
  table: WrittenRuntimeTable,
  from: Pointer | undefined,
  to: Pointer,
): Promise<boolean> =>
  ifHolds(table, {
    Item: { id: pointerId, ...pointerItem(to) },
    ConditionExpression: `${from ? pointsTo('from') : isAbsent} OR ${pointsTo('to')}`,
    ExpressionAttributeNames: { '#version': 'version', '#digest': 'digest' },
    ExpressionAttributeValues: { ...(from && valuesOf('from', from)), ...valuesOf('to', to) },
  });

const valuesOf = (which: 'from' | 'to', { version, digest }: Pointer): RuntimeItem => ({
  [`:${which}_version`]: version,
  [`:${which}_digest`]: digest,
});

async function ifHolds(
  { documents, name }: WrittenRuntimeTable,
  write: Omit<PutCommand['input'], 'TableName'>,
): Promise<boolean> {
  const command = new PutCommand({ TableName: name, ...write });
  return (await conditionalCall(() => documents.send(command))).done;
}

/**
 * @param expires Unix seconds after which DynamoDB removes the item
 * @param isRetired the item is the first part of a version that has served
 */
export async function expireItem(
  { documents, name }: WrittenRuntimeTable,
  id: string,
  { expires, isRetired = false }: { expires: number; isRetired?: boolean },
): Promise<void> {
  const command = new UpdateCommand({
    TableName: name,
    Key: { id },
    UpdateExpression: `SET expires = :expires${isRetired ? ', retired = :retired' : ''}`,
    ConditionExpression: isKept,
    ExpressionAttributeValues: { ':expires': expires, ...(isRetired && { ':retired': true }) },
  });
  await conditionalCall(() => documents.send(command));
}

/** Of an item that expires later. */
export async function expireSooner(
  { documents, name }: WrittenRuntimeTable,
  id: string,
  expires: number,
): Promise<void> {
  const command = new UpdateCommand({
    TableName: name,
    Key: { id },
    UpdateExpression: 'SET expires = :expires',
    ConditionExpression: 'expires > :expires',
    ExpressionAttributeValues: { ':expires': expires },
  });
  await conditionalCall(() => documents.send(command));
}
