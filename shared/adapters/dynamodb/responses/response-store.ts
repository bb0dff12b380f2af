/**
 * Responses: the head of each in an item of its own, with the first part of its content, further parts in items beside it.
 * Parts are written before the head that names them, so a reader finds a whole content or none. The item of a response that
 * still runs has no part, since each write to an item costs as much as the item is large. What is removed leaves a mark for a
 * while: a put whose try comes late must not bring back what its client has deleted.
 */
import type {
  Admit,
  ResponseBody,
  ResponseHead,
  ResponseStatus,
  ResponseStore,
  RunStore,
  StoredPorts,
  StoredResponse,
} from '../../../relay/ports/stored.ts';
import { attributesOf, conditionalCall, quotaCall, valuesOf } from '../table-client.ts';
import { dynamoEventLog, dynamoResultStore } from './event-log.ts';
import {
  isResponseId,
  partIdsOf,
  placeholders,
  removedStatus,
  ResponseTable,
  type ResponseItem,
  type ResponseKey,
} from './response-items.ts';

export type StoredParts = ConstructorParameters<typeof ResponseTable>[0];

export function dynamoStored(parts: StoredParts): Omit<StoredPorts, 'startRun'> {
  const table = new ResponseTable(parts);
  return {
    responses: dynamoResponseStore(table),
    runs: dynamoRunStore(table),
    events: dynamoEventLog(table),
    results: dynamoResultStore(table),
  };
}

/** A head as its item has it; only functions write one. */
interface HeadItem {
  account: string;
  id: string;
  status: ResponseStatus;
  created: number;
  expires: number;
  ancestors: string[];
  turn: number;
  length: number;
  streamed?: boolean | undefined;
  run?: string | undefined;
  until?: number | undefined;
  events?: number | undefined;
  events_until?: number | undefined;
}

const headAttributes = ['account', 'id', 'status', 'created', 'expires', 'ancestors', 'turn', 'length'];
const runAttributes = ['streamed', 'run', 'until', 'events', 'events_until'];

export const itemOfHead = ({ background, ...head }: ResponseHead): HeadItem & ResponseItem => ({
  account: head.account,
  id: head.id,
  status: head.status,
  created: head.createdAt,
  expires: head.expires,
  ancestors: [...head.ancestors],
  turn: head.turn,
  length: head.conversationLength,
  streamed: background?.streamed,
  run: background?.run,
  until: background?.until,
  events: background?.events,
  events_until: background?.eventsUntil,
});

export function headOfItem(item: ResponseItem): ResponseHead {
  const { created, length, streamed, run, until, events, events_until, ...head } =
    item as unknown as HeadItem;
  const { account, id, status, expires, ancestors, turn } = head;
  return {
    account,
    id,
    status,
    createdAt: created,
    expires,
    ancestors,
    turn,
    conversationLength: length,
    ...(until !== undefined && {
      background: {
        streamed: streamed === true,
        until,
        ...(run !== undefined && { run }),
        ...(events !== undefined && { events }),
        ...(events_until !== undefined && { eventsUntil: events_until }),
      },
    }),
  };
}

/** A content that is replaced while it is read is read again. */
const readsMax = 3;
/** An environment that was frozen with a try in hand is gone by then. */
const markedSeconds = 24 * 60 * 60;

export function dynamoResponseStore(table: ResponseTable): ResponseStore {
  const putHead = (item: ResponseItem, condition?: string) =>
    conditionalCall(() =>
      table.client.call('PutItem', {
        TableName: table.name,
        Item: attributesOf(item),
        ...(condition && {
          ConditionExpression: condition,
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
        }),
      }),
    );
  /** Whose head names nothing any more. */
  const mark = (key: ResponseKey, condition?: string) =>
    putHead({ ...key, status: removedStatus, expires: table.now() + markedSeconds }, condition);
  const readEach: ResponseStore['readEach'] = (account, ids, take, admit) =>
    readResponses(table, { account, ids, admit }, take);
  return {
    async put(response) {
      const item = await itemOfResponse(table, response);
      const reply = await putHead(item, 'attribute_not_exists(id)');
      if (reply.done) return;
      const old = reply.item && valuesOf(reply.item);
      // The parts that were written before: none has them, or what the response has become has others.
      if (table.isKept(old)) await removeReplaced(table, item, old);
      else await table.removeRest(response.head);
    },
    read: (account, ids, admit) => readEach(account, ids, (response) => response, admit),
    readEach,
    async heads(account, ids) {
      const asked = ids.filter(isResponseId);
      const found = await table.get(account, asked, [...headAttributes, ...runAttributes]);
      const kept = [...found].filter(([, item]) => table.isKept(item));
      return new Map(kept.map(([id, item]) => [id, headOfItem(item)]));
    },
    async remove(account, id) {
      if (!isResponseId(id)) return false;
      const head = (await table.get(account, [id], ['id', 'expires', 'status'])).get(id);
      // Parts without a head may be those of a put that is on its way.
      if (!head) return false;
      const isThere = table.isKept(head);
      if (isThere) await mark({ account, id }, 'attribute_exists(id)');
      // Also where there is a mark: an earlier try may have come so far.
      await table.removeRest({ account, id });
      return isThere;
    },
    async withdraw(account, id) {
      if (!isResponseId(id)) return;
      await mark({ account, id });
      await table.removeRest({ account, id });
    },
  };
}

/** Writes the parts of a response, and returns the item that makes them visible. Throws ResponseTooLarge. */
async function itemOfResponse(table: ResponseTable, { head, body }: StoredResponse): Promise<ResponseItem> {
  const inside = !head.background || (head.status !== 'queued' && head.status !== 'in_progress');
  return { ...itemOfHead(head), ...(await table.putContent(head, { content: body, inside })) };
}

/** The parts of a content that no item names any more. What is not removed here, expires. */
async function removeReplaced(
  table: ResponseTable,
  old: ResponseItem | undefined,
  item: ResponseItem,
): Promise<void> {
  const kept = new Set(partIdsOf(item));
  const ids = old ? partIdsOf(old).filter((id) => !kept.has(id)) : [];
  await table.remove(String(item['account']), ids).catch(() => {});
}

/** What the content of a response's item is. */
const responseOf = (body: unknown, item: ResponseItem): StoredResponse => ({
  head: headOfItem(item),
  body: body as ResponseBody,
});

async function readResponses<Taken>(
  table: ResponseTable,
  { account, ids, admit }: { account: string; ids: readonly string[]; admit: Admit | undefined },
  take: (response: StoredResponse) => Taken,
): Promise<Map<string, Taken>> {
  const whole = new Map<string, Taken>();
  let asked = ids.filter(isResponseId);
  for (let reads = 0; asked.length > 0 && reads < readsMax; reads += 1) {
    const kept = [...(await table.get(account, asked)).values()].filter((item) => table.isKept(item));
    const taken = await table.contentsOf(account, kept, (body, item) => take(responseOf(body, item)), admit);
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

export function dynamoRunStore(table: ResponseTable): RunStore {
  const headNow = ({ item }: Updated): ResponseHead | undefined =>
    table.isKept(item) ? headOfItem(item) : undefined;
  return {
    async claim({ run, ...key }, until) {
      const condition = all(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);
      const set = { status: 'in_progress', run, until };
      const claimed = await updateHead(table, { ...key, set, condition });
      if (!claimed.done || !claimed.item) return undefined;
      return (await table.contentsOf(key.account, [claimed.item], responseOf)).get(key.id);
    },
    async renew({ run, ...key }, until) {
      const own = { condition: all(isInProgress, isOwn), values: { ':run': run } };
      const head = headNow(await updateHead(table, { ...key, set: { until }, ...own }));
      return head?.background?.run === run ? head : undefined;
    },
    async finish({ run, ...key }, response) {
      if (!isResponseId(key.id)) return false;
      const item = await itemOfResponse(table, response);
      // A client that was reported so finds what was cancelled cancelled.
      const from = response.head.status === 'cancelled' ? [isInProgress, isCancelled] : [isInProgress];
      const condition = all(exists, isOwn, `(${[...from, isFinishedSo].join(' OR ')})`);
      const values = { ':now': table.now(), ':run': run, ':content': item['body_name'] };
      const put = {
        TableName: table.name,
        Item: attributesOf(item),
        ...conditionOf(condition, values),
        ReturnValues: 'ALL_OLD' as const,
      };
      const reply = await quotaCall(() => table.client.call('PutItem', put));
      const attributes = reply.done ? reply.reply.Attributes : reply.item;
      const old = attributes && valuesOf(attributes);
      if (reply.done) await removeReplaced(table, old, item);
      // What was deleted while it ran leaves nothing behind; of what ended otherwise, only this content goes.
      else if (!table.isKept(old)) await table.removeRest(key);
      else await table.remove(key.account, partIdsOf(item));
      return reply.done;
    },
    async cancel(account, id) {
      const set = { status: 'cancelled' };
      return headNow(await updateHead(table, { account, id, set, condition: hasEndedNot }));
    },
    async fail(account, id, events) {
      const condition = all(isBackground, hasEndedNot, isDead);
      return headNow(await updateHead(table, { account, id, set: { status: 'failed', events }, condition }));
    },
  };
}

async function updateHead(
  table: ResponseTable,
  { account, id, set, condition, values = {} }: Update,
): Promise<Updated> {
  if (!isResponseId(id)) return { done: false, item: undefined };
  const assignments = Object.keys(set)
    .map((name) => `#${name} = :${name}`)
    .join(', ');
  const given = Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value]));
  const input = {
    TableName: table.name,
    Key: attributesOf({ account, id }),
    UpdateExpression: `SET ${assignments}`,
    ...conditionOf(all(exists, condition), { ':now': table.now(), ...values, ...given }, assignments),
    ReturnValues: 'ALL_NEW' as const,
  };
  const reply = await quotaCall(() => table.client.call('UpdateItem', input));
  const item = reply.done ? reply.reply.Attributes : reply.item;
  return { done: reply.done, item: item && valuesOf(item) };
}

/** A condition with the names and values that it and the other expression have. */
function conditionOf(condition: string, values: Record<string, unknown>, other = '') {
  const text = `${condition} ${other}`;
  const statuses = { ':queued': 'queued', ':in_progress': 'in_progress', ':cancelled': 'cancelled' };
  const named = new Set(text.match(/:\w+/g));
  const used = Object.entries({ ...statuses, ...values }).filter(([name]) => named.has(name));
  return {
    ConditionExpression: condition,
    ExpressionAttributeNames: placeholders(...new Set(text.match(/(?<=#)\w+/g))),
    ExpressionAttributeValues: attributesOf(Object.fromEntries(used)),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}
