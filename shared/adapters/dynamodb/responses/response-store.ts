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
  ResponseStore,
  RunStore,
  StoredPorts,
  StoredResponse,
} from '../../../relay/ports/stored.ts';
import {
  buildExpressions,
  callOrThrowBusy,
  valuesOf,
  type Attributes,
  type ConditionalReply,
} from '../table-client.ts';
import { createEventLog, createResultStore } from './event-log.ts';
import {
  isResponseId,
  listPartIds,
  removedStatus,
  ResponseTable,
  type ResponseItem,
  type ResponseKey,
} from './response-items.ts';

export type StoredDeps = ConstructorParameters<typeof ResponseTable>[0];

export function createStoredPorts(parts: StoredDeps): Omit<StoredPorts, 'startRun'> {
  const table = new ResponseTable(parts);
  return {
    responses: createResponseStore(table),
    runs: createRunStore(table),
    events: createEventLog(table),
    results: createResultStore(table),
  };
}

/** A head's members by the attributes that hold them; only functions write one. Those of a run stand in `background`. */
const headAttributes = {
  account: 'account',
  id: 'id',
  status: 'status',
  created: 'createdAt',
  expires: 'expires',
  ancestors: 'ancestors',
  turn: 'turn',
  length: 'conversationLength',
  streamed: 'background.streamed',
  run: 'background.run',
  until: 'background.until',
  events: 'background.events',
  events_until: 'background.eventsUntil',
} as const;
const runPrefix = 'background.';

export const encodeHead = ({ background, ...head }: ResponseHead): ResponseItem & ResponseKey => {
  const members: Record<string, unknown> = { ...head };
  for (const [name, value] of Object.entries(background ?? {})) members[runPrefix + name] = value;
  const { account, id } = head;
  const item = Object.entries(headAttributes).map(([name, member]) => [name, members[member]]);
  return { account, id, ...Object.fromEntries(item) };
};

export function decodeHead(item: ResponseItem): ResponseHead {
  const head: Record<string, unknown> = {};
  const background: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(headAttributes))
    if (item[name] === undefined) continue;
    else if (member.startsWith(runPrefix)) background[member.slice(runPrefix.length)] = item[name];
    else head[member] = item[name];
  // The cast is safe: only functions write heads, and only those of runs have an `until`.
  return { ...head, ...(item['until'] !== undefined && { background }) } as unknown as ResponseHead;
}

/** A content that is replaced while it is read is read again. */
const readsMax = 3;
/** An environment that was frozen with a try in hand is gone by then. */
const markedSeconds = 24 * 60 * 60;

const returnsOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;

export function createResponseStore(table: ResponseTable): ResponseStore {
  const putHead = (item: ResponseItem, ConditionExpression?: string) =>
    table.put(item, ConditionExpression === undefined ? {} : { ConditionExpression, ...returnsOld });
  /** Whose head names nothing any more. */
  const markRemoved = (key: ResponseKey, condition?: string) =>
    putHead({ ...key, status: removedStatus, expires: table.now() + markedSeconds }, condition);
  const readEach: ResponseStore['readEach'] = (account, ids, take, admit) =>
    readResponses(table, { account, ids, admit }, take);
  return {
    async put(response) {
      const item = await encodeResponse(table, response);
      const reply = await putHead(item, 'attribute_not_exists(id)');
      if (reply.done) return;
      const old = reply.item && valuesOf(reply.item);
      // The parts that were written before: none has them, or what the response has become has others.
      if (table.isKept(old)) await removeReplaced(table, item, old);
      else await table.removeAllButHead(response.head);
    },
    read: (account, ids, admit) => readEach(account, ids, (response) => response, admit),
    readEach,
    async heads(account, ids) {
      const asked = ids.filter(isResponseId);
      const found = await table.readItems(account, asked, Object.keys(headAttributes));
      const kept = [...found].filter(([, item]) => table.isKept(item));
      return new Map(kept.map(([id, item]) => [id, decodeHead(item)]));
    },
    async remove(account, id) {
      if (!isResponseId(id)) return false;
      const head = (await table.readItems(account, [id], ['id', 'expires', 'status'])).get(id);
      // Parts without a head may be those of a put that is on its way.
      if (!head) return false;
      const isThere = table.isKept(head);
      if (isThere) await markRemoved({ account, id }, 'attribute_exists(id)');
      // Also where there is a mark: an earlier try may have come so far.
      await table.removeAllButHead({ account, id });
      return isThere;
    },
    async withdraw(account, id) {
      if (!isResponseId(id)) return;
      await markRemoved({ account, id });
      await table.removeAllButHead({ account, id });
    },
  };
}

/** Writes the parts of a response, and returns the item that makes them visible. Throws ResponseTooLarge. */
async function encodeResponse(table: ResponseTable, { head, body }: StoredResponse): Promise<ResponseItem> {
  const inside = !head.background || (head.status !== 'queued' && head.status !== 'in_progress');
  return { ...encodeHead(head), ...(await table.putContent(head, { content: body, inside })) };
}

/** The parts of a content that no item names any more. What is not removed here, expires. */
async function removeReplaced(
  table: ResponseTable,
  old: ResponseItem | undefined,
  item: ResponseItem,
): Promise<void> {
  const kept = new Set(listPartIds(item));
  const ids = old ? listPartIds(old).filter((id) => !kept.has(id)) : [];
  await table.remove(ids.map((id) => ({ account: item['account'], id }))).catch(() => {});
}

/** What the content of a response's item is. */
const responseOf = (body: unknown, item: ResponseItem): StoredResponse => ({
  head: decodeHead(item),
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
    const kept = [...(await table.readItems(account, asked)).values()].filter((item) => table.isKept(item));
    const taken = await table.readContents(
      account,
      kept,
      (body, item) => take(responseOf(body, item)),
      admit,
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
const isActive = `(${isQueued} OR ${isInProgress})`;
/** The reply of an earlier try was lost. */
const isOwnFinish = '#body_name = :content';
const isDead = '#until < :now';

const joinConditions = (...conditions: string[]): string => conditions.join(' AND ');

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

export function createRunStore(table: ResponseTable): RunStore {
  const readKeptHead = ({ item }: Updated): ResponseHead | undefined =>
    table.isKept(item) ? decodeHead(item) : undefined;
  return {
    async claim({ run, ...key }, until) {
      const condition = joinConditions(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);
      const set = { status: 'in_progress', run, until };
      const claimed = await updateHead(table, { ...key, set, condition });
      if (!claimed.done || !claimed.item) return undefined;
      return (await table.readContents(key.account, [claimed.item], responseOf)).get(key.id);
    },
    async renew({ run, ...key }, until) {
      const own = { condition: joinConditions(isInProgress, isOwn), values: { ':run': run } };
      const head = readKeptHead(await updateHead(table, { ...key, set: { until }, ...own }));
      return head?.background?.run === run ? head : undefined;
    },
    async finish({ run, ...key }, response) {
      if (!isResponseId(key.id)) return false;
      const item = await encodeResponse(table, response);
      // A client that was reported so finds what was cancelled cancelled.
      const from = response.head.status === 'cancelled' ? [isInProgress, isCancelled] : [isInProgress];
      const condition = joinConditions(exists, isOwn, `(${[...from, isOwnFinish].join(' OR ')})`);
      const values = { ':now': table.now(), ':run': run, ':content': item['body_name'] };
      const put = {
        ...table.putInput(item),
        ...returnsOld,
        ...buildExpressions({ ConditionExpression: condition }, pickValues(condition, values)),
        ReturnValues: 'ALL_OLD' as const,
      };
      const { done, item: old } = readUpdated(await callOrThrowBusy(() => table.client.call('PutItem', put)));
      if (done) await removeReplaced(table, old, item);
      // What was deleted while it ran leaves nothing behind; of what ended otherwise, only this content goes.
      else if (!table.isKept(old)) await table.removeAllButHead(key);
      else await table.remove(listPartIds(item).map((id) => ({ account: key.account, id })));
      return done;
    },
    async cancel(account, id) {
      const set = { status: 'cancelled' };
      return readKeptHead(await updateHead(table, { account, id, set, condition: isActive }));
    },
    async fail(account, id, events) {
      const condition = joinConditions(isBackground, isActive, isDead);
      return readKeptHead(
        await updateHead(table, { account, id, set: { status: 'failed', events }, condition }),
      );
    },
  };
}

async function updateHead(
  table: ResponseTable,
  { account, id, set, condition, values = {} }: Update,
): Promise<Updated> {
  if (!isResponseId(id)) return { done: false, item: undefined };
  const assignments = Object.keys(set).map((name) => `#${name} = :${name}`);
  const given = Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value]));
  const expressions = {
    UpdateExpression: `SET ${assignments.join(', ')}`,
    ConditionExpression: joinConditions(exists, condition),
  };
  const text = Object.values(expressions).join(' ');
  const input = {
    ...table.keyInput({ account, id }),
    ...returnsOld,
    ...buildExpressions(expressions, pickValues(text, { ':now': table.now(), ...values, ...given })),
    ReturnValues: 'ALL_NEW' as const,
  };
  return readUpdated(await callOrThrowBusy(() => table.client.call('UpdateItem', input)));
}

/** What the item was made, or was when the condition did not hold. */
function readUpdated(reply: ConditionalReply<{ Attributes?: Attributes | undefined }>): Updated {
  const item = reply.done ? reply.reply.Attributes : reply.item;
  return { done: reply.done, item: item && valuesOf(item) };
}

/** The values that expressions name, statuses among them. */
function pickValues(text: string, values: Record<string, unknown>): Record<string, unknown> {
  const statuses = { ':queued': 'queued', ':in_progress': 'in_progress', ':cancelled': 'cancelled' };
  const named = new Set(text.match(/:\w+/g));
  return Object.fromEntries(Object.entries({ ...statuses, ...values }).filter(([name]) => named.has(name)));
}
