/**
 * The states of background responses. Each write names the states that it may follow; a write whose reply was lost may be
 * repeated. No write but the last one of a run has the content with it.
 */
import type { UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { RunStore } from '../../../relay/ports/stored/run-store.ts';
import type { ResponseHead } from '../../../relay/ports/stored/stored-response.ts';
import { quotaCall } from '../dynamo-client.ts';
import { contentsOf } from './item-contents.ts';
import { itemOfResponse, removeReplaced, responseOf } from './dynamo-response-store.ts';
import { headOfItem } from './head-attributes.ts';
import { partIdsOf } from './item-contents.ts';
import {
  isKept,
  isResponseId,
  marshalled,
  placeholders,
  removeResponseItems,
  removeRest,
  type ResponseItem,
  type ResponseKey,
  type ResponseTable,
} from './response-items.ts';

const exists = '#expires > :now';
const isQueued = '#status = :queued';
const isInProgress = '#status = :in_progress';
const isCancelled = '#status = :cancelled';
const isOwn = '#run = :run';
/** Of a run at all. */
const isBackground = 'attribute_exists(#until)';
const hasEndedNot = `(${isQueued} OR ${isInProgress})`;
/** The reply of an earlier try was lost. */
const isFinishedSo = '#body_name = :content';
const isDead = '#until < :now';

const all = (...conditions: string[]): string => conditions.join(' AND ');

/** What the item was made, or was when the condition did not hold. */
interface Updated {
  done: boolean;
  item: ResponseItem | undefined;
}

interface Update extends ResponseKey {
  set: Record<string, unknown>;
  condition: string;
  /** Further values of the condition. */
  values?: Record<string, unknown>;
}

export function dynamoRunStore(table: ResponseTable): RunStore {
  const update = (change: Update): Promise<Updated> => updateHead(table, change);
  const headNow = ({ item }: Updated): ResponseHead | undefined =>
    isKept(item, table.now()) ? headOfItem(item) : undefined;
  return {
    async claim({ run, ...key }, until) {
      const condition = all(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);
      const claimed = await update({ ...key, set: { status: 'in_progress', run, until }, condition });
      if (!claimed.done || !claimed.item) return undefined;
      const of = { account: key.account, items: [claimed.item] };
      return (await contentsOf(table, of, responseOf)).get(key.id);
    },
    async renew({ run, ...key }, until) {
      const values = { ':run': run };
      const renewed = await update({ ...key, set: { until }, condition: all(isInProgress, isOwn), values });
      const head = headNow(renewed);
      return head?.background?.run === run ? head : undefined;
    },
    async finish({ run, ...key }, response) {
      if (!isResponseId(key.id)) return false;
      const item = await itemOfResponse(table, response);
      // A client that was reported so finds what was cancelled cancelled.
      const from = response.head.status === 'cancelled' ? [isInProgress, isCancelled] : [isInProgress];
      const condition = all(exists, isOwn, `(${[...from, isFinishedSo].join(' OR ')})`);
      const values = { ':run': run, ':content': item['body_name'] };
      const put = {
        TableName: table.name,
        Item: marshalled(item),
        ...conditionOf(condition, table.now(), { values }),
        ReturnValues: 'ALL_OLD' as const,
      };
      const reply = await quotaCall(() => table.client.call('PutItem', put));
      const attributes = reply.done ? reply.reply.Attributes : reply.item;
      const old = attributes && unmarshall(attributes);
      if (reply.done) await removeReplaced(table, old, item);
      // What was deleted while it ran leaves nothing behind; of what ended otherwise, only this content goes.
      else if (!isKept(old, table.now())) await removeRest(table, key);
      else await removeResponseItems(table, key.account, partIdsOf(item));
      return reply.done;
    },
    async cancel(account, id) {
      return headNow(await update({ account, id, set: { status: 'cancelled' }, condition: hasEndedNot }));
    },
    async fail(account, id, events) {
      const condition = all(isBackground, hasEndedNot, isDead);
      return headNow(await update({ account, id, set: { status: 'failed', events }, condition }));
    },
  };
}

async function updateHead(
  table: ResponseTable,
  { account, id, set, condition, values = {} }: Update,
): Promise<Updated> {
  if (!isResponseId(id)) return { done: false, item: undefined };
  const names = Object.keys(set);
  const assignments = names.map((name) => `#${name} = :${name}`).join(', ');
  const given = Object.fromEntries(names.map((name) => [`:${name}`, set[name]]));
  const input: UpdateItemCommandInput = {
    TableName: table.name,
    Key: marshall({ account, id }),
    UpdateExpression: `SET ${assignments}`,
    ...conditionOf(all(exists, condition), table.now(), {
      values: { ...values, ...given },
      other: assignments,
    }),
    ReturnValues: 'ALL_NEW',
  };
  const reply = await quotaCall(() => table.client.call('UpdateItem', input));
  const item = reply.done ? reply.reply.Attributes : reply.item;
  return { done: reply.done, item: item && unmarshall(item) };
}

/** A condition with the names and values that it and the other expression have. */
function conditionOf(
  condition: string,
  now: number,
  { values, other = '' }: { values: Record<string, unknown>; other?: string },
) {
  const text = `${condition} ${other}`;
  const known: Record<string, unknown> = {
    ':now': now,
    ':queued': 'queued',
    ':in_progress': 'in_progress',
    ':cancelled': 'cancelled',
    ...values,
  };
  const named = new Set(text.match(/:\w+/g));
  return {
    ConditionExpression: condition,
    ExpressionAttributeNames: placeholders(...new Set(text.match(/(?<=#)\w+/g))),
    ExpressionAttributeValues: marshall(
      Object.fromEntries(Object.entries(known).filter(([name]) => named.has(name))),
    ),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}
