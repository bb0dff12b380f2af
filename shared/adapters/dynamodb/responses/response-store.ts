/** The stores on the table `responses`. */
import { unmarshall, marshall } from '@aws-sdk/util-dynamodb';
import type { UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import type { Clock } from '../../../relay/ports/host.ts';
import type {
  StoredPorts,
  Admit,
  ResponseStore,
  ResponseBody,
  ResponseHead,
  StoredResponse,
  RunStore,
} from '../../../relay/ports/stored.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { type TableClient, conditionalCall, quotaCall } from '../table-client.ts';
import { dynamoEventLog, dynamoResultStore } from './event-log.ts';
import {
  type ResponseTable,
  hasEnded,
  headAttributes,
  headOfItem,
  itemOfHead,
  contentsOf,
  partIdsOf,
  putContent,
  getResponseItems,
  isKept,
  isResponseId,
  marshalled,
  removeResponseItems,
  removedStatus,
  removeRest,
  type ResponseItem,
  type ResponseKey,
  placeholders,
} from './response-items.ts';

interface StoredParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
}

export function dynamoStored({ client, clock, stack }: StoredParts): Omit<StoredPorts, 'startRun'> {
  const now = (): number => Math.floor(clock.now() / 1000);
  const table: ResponseTable = { client, name: physicalTableName(stack, 'responses'), now };
  return {
    responses: dynamoResponseStore(table),
    runs: dynamoRunStore(table),
    events: dynamoEventLog(table),
    results: dynamoResultStore(table),
  };
}

// Responses: the head of each in an item of its own, with the first part of its content, further parts in items beside it.
// Parts are written before the head that names them, so a reader finds a whole content or none. The item of a response that
// still runs has no part, since each write to an item costs as much as the item is large. What is removed leaves a mark for a
// while: a put whose try comes late must not bring back what its client has deleted.

/** A content that is replaced while it is read is read again. */
const readsMax = 3;
/** An environment that was frozen with a try in hand is gone by then. */
const markedSeconds = 24 * 60 * 60;

export const dynamoResponseStore = (table: ResponseTable): ResponseStore => ({
  async put(response) {
    const item = await itemOfResponse(table, response);
    const reply = await putHead(table, item, 'attribute_not_exists(id)');
    if (reply.done) return;
    const old = reply.item && unmarshall(reply.item);
    // The parts that were written before: none has them, or what the response has become has others.
    if (isKept(old, table.now())) await removeReplaced(table, item, old);
    else await removeRest(table, response.head);
  },
  read: (account, ids, admit) => readResponses(table, { account, ids, admit }, (response) => response),
  readEach: (account, ids, take, admit) => readResponses(table, { account, ids, admit }, take),
  heads: (account, ids) => readHeads(table, account, ids),
  async remove(account, id) {
    if (!isResponseId(id)) return false;
    const asked = { ids: [id], attributes: headAttributes };
    const head = (await getResponseItems(table, account, asked)).get(id);
    // Parts without a head may be those of a put that is on its way.
    if (!head) return false;
    const isThere = isKept(head, table.now());
    if (isThere) await mark(table, { account, id }, 'attribute_exists(id)');
    // Also where there is a mark: an earlier try may have come so far.
    await removeRest(table, { account, id });
    return isThere;
  },
  async withdraw(account, id) {
    if (!isResponseId(id)) return;
    await mark(table, { account, id });
    await removeRest(table, { account, id });
  },
});

/** Whose head names nothing any more. */
const mark = (table: ResponseTable, key: ResponseKey, condition?: string) =>
  putHead(table, { ...key, status: removedStatus, expires: table.now() + markedSeconds }, condition);

const putHead = ({ client, name }: ResponseTable, item: ResponseItem, condition?: string) =>
  conditionalCall(() =>
    client.call('PutItem', {
      TableName: name,
      Item: marshalled(item),
      ...(condition && {
        ConditionExpression: condition,
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
      }),
    }),
  );

/** Writes the parts of a response, and returns the item that makes them visible. Throws ResponseTooLarge. */
async function itemOfResponse(table: ResponseTable, { head, body }: StoredResponse): Promise<ResponseItem> {
  const inside = !head.background || hasEnded(head.status);
  return { ...itemOfHead(head), ...(await putContent(table, head, { content: body, inside })) };
}

/** The parts of a content that no item names any more. What is not removed here, expires. */
async function removeReplaced(
  table: ResponseTable,
  old: ResponseItem | undefined,
  item: ResponseItem,
): Promise<void> {
  const kept = new Set(partIdsOf(item));
  const ids = old ? partIdsOf(old).filter((id) => !kept.has(id)) : [];
  await removeResponseItems(table, String(item['account']), ids).catch(() => {});
}

/** What the content of a response's item is. */
const responseOf = (body: unknown, item: ResponseItem): StoredResponse => ({
  head: headOfItem(item),
  body: body as ResponseBody,
});

async function readHeads(
  table: ResponseTable,
  account: string,
  ids: readonly string[],
): Promise<Map<string, ResponseHead>> {
  const asked = { ids: ids.filter(isResponseId), attributes: headAttributes };
  const found = await getResponseItems(table, account, asked);
  return new Map(
    [...found].flatMap(([id, item]) => (isKept(item, table.now()) ? [[id, headOfItem(item)] as const] : [])),
  );
}

async function readResponses<Taken>(
  table: ResponseTable,
  { account, ids, admit }: { account: string; ids: readonly string[]; admit: Admit | undefined },
  take: (response: StoredResponse) => Taken,
): Promise<Map<string, Taken>> {
  const whole = new Map<string, Taken>();
  let asked = ids.filter(isResponseId);
  for (let reads = 0; asked.length > 0 && reads < readsMax; reads += 1) {
    const items = [...(await getResponseItems(table, account, { ids: asked })).values()];
    const kept = items.filter((item) => isKept(item, table.now()));
    const taken = await contentsOf(table, { account, items: kept, admit }, (body, item) =>
      take(responseOf(body, item)),
    );
    for (const [id, response] of taken) whole.set(id, response);
    // Replaced or removed since its head was read.
    asked = kept.map((item) => String(item['id'])).filter((id) => !whole.has(id));
  }
  return whole;
}

// The states of background responses. Each write names the states that it may follow; a write whose reply was lost may be
// repeated. No write but the last one of a run has the content with it.

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

function dynamoRunStore(table: ResponseTable): RunStore {
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
