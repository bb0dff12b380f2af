/**
 * Stores responses. The head and the first part of the content are one item; further parts are written before it, so a
 * reader finds a complete content or none. A running response has no part in its item, because the price of a write follows
 * the item's size. Removal leaves a mark for a while, so that a late put cannot restore a deleted response.
 */
import type {
  Admit,
  ResponseBody,
  ResponseHead,
  ResponseStore,
  RunStore,
  StoredPorts,
  StoredResponse,
  WaitingRun,
  WaitingRuns,
} from '../../../relay/ports/stored.ts';
import {
  buildExpressions,
  callOrThrowBusy,
  valuesOf,
  type Attributes,
  type ConditionalReply,
  type StoreDeps,
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

export function createStoredPorts(deps: StoreDeps): Omit<StoredPorts, 'startRun'> {
  const table = new ResponseTable(deps);
  return {
    responses: createResponseStore(table),
    runs: createRunStore(table),
    waiting: createWaitingRuns(table),
    events: createEventLog(table),
    results: createResultStore(table),
  };
}

/** Fields of a head by attribute. Those of a run are in `background`. */
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
  // Safe cast: only functions write heads, and only those of runs have an `until`.
  return { ...head, ...(item['until'] !== undefined && { background }) } as unknown as ResponseHead;
}

/** Reads again if a content is replaced meanwhile. */
const readsMax = 3;
/** A frozen environment with a pending write is gone by then. */
const markedSeconds = 24 * 60 * 60;

const returnsOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;

export function createResponseStore(table: ResponseTable): ResponseStore {
  const putHead = (item: ResponseItem, ConditionExpression?: string) =>
    table.put(item, ConditionExpression === undefined ? {} : { ConditionExpression, ...returnsOld });
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
      // Removes the parts just written: the stored response has others, or none.
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
      // Parts without a head may belong to a put in progress.
      if (!head) return false;
      const isThere = table.isKept(head);
      if (isThere) await markRemoved({ account, id }, 'attribute_exists(id)');
      // Also behind a mark: an earlier try may have stopped here.
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

/** Writes the parts and returns the item that makes them visible. Throws ResponseTooLarge. */
async function encodeResponse(table: ResponseTable, { head, body }: StoredResponse): Promise<ResponseItem> {
  const inside = !head.background || (head.status !== 'queued' && head.status !== 'in_progress');
  return { ...encodeHead(head), ...(await table.putContent(head, { content: body, inside })) };
}

/** Removes parts that no item names any more. Whatever remains, expires. */
async function removeReplaced(
  table: ResponseTable,
  old: ResponseItem | undefined,
  item: ResponseItem,
): Promise<void> {
  const kept = new Set(listPartIds(item));
  const ids = old ? listPartIds(old).filter((id) => !kept.has(id)) : [];
  await table.remove(ids.map((id) => ({ account: item['account'], id }))).catch(() => {});
}

const decodeResponse = (body: unknown, item: ResponseItem): StoredResponse => ({
  head: decodeHead(item),
  body: body as ResponseBody,
});

async function readResponses<Taken>(
  table: ResponseTable,
  { account, ids, admit }: { account: string; ids: readonly string[]; admit: Admit | undefined },
  take: (response: StoredResponse) => Taken,
): Promise<Map<string, Taken>> {
  const whole = new Map<string, Taken>();
  let pendingIds = ids.filter(isResponseId);
  for (let reads = 0; pendingIds.length > 0 && reads < readsMax; reads += 1) {
    const items = [...(await table.readItems(account, pendingIds)).values()].filter((item) =>
      table.isKept(item),
    );
    const contents = await table.readContents(
      account,
      items,
      (body, item) => take(decodeResponse(body, item)),
      admit,
    );
    for (const [id, response] of contents) whole.set(id, response);
    // These were replaced or removed since their head was read.
    pendingIds = items.map((item) => String(item['id'])).filter((id) => !whole.has(id));
  }
  return whole;
}

// Background responses. Each write names the states it may follow, and may be repeated. Only a run's last write includes the
// content.

const exists = '#expires > :now';
const isQueued = '#status = :queued';
const isInProgress = '#status = :in_progress';
const isCancelled = '#status = :cancelled';
const isOwn = '#run = :run';
const isBackground = 'attribute_exists(#until)';
const isActive = `(${isQueued} OR ${isInProgress})`;
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
      return (await table.readContents(key.account, [claimed.item], decodeResponse)).get(key.id);
    },
    async renew({ run, ...key }, until) {
      const ownRun = { condition: joinConditions(isInProgress, isOwn), values: { ':run': run } };
      const head = readKeptHead(await updateHead(table, { ...key, set: { until }, ...ownRun }));
      return head?.background?.run === run ? head : undefined;
    },
    async finish({ run, ...key }, response) {
      if (!isResponseId(key.id)) return false;
      const item = await encodeResponse(table, response);
      // A client that saw a cancelled response must find it cancelled.
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
      // A response deleted meanwhile leaves nothing; otherwise only this content is removed.
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

/** The item after the write, or the one that failed the condition. */
function readUpdated(reply: ConditionalReply<{ Attributes?: Attributes | undefined }>): Updated {
  const item = reply.done ? reply.reply.Attributes : reply.item;
  return { done: reply.done, item: item && valuesOf(item) };
}

/** Keeps the values that the expressions use, statuses included. */
function pickValues(text: string, values: Record<string, unknown>): Record<string, unknown> {
  const statuses = { ':queued': 'queued', ':in_progress': 'in_progress', ':cancelled': 'cancelled' };
  const named = new Set(text.match(/:\w+/g));
  return Object.fromEntries(Object.entries({ ...statuses, ...values }).filter(([name]) => named.has(name)));
}

// Runs that wait for their vendor are items under an account name that no customer can have.

const waitingAccount = '~waiting';
/** An item that was never removed expires a day after its deadline. */
const keptSeconds = 24 * 60 * 60;

export function createWaitingRuns(table: ResponseTable): WaitingRuns {
  return {
    async put(run) {
      const { id, deadline } = run;
      const waiting = JSON.stringify(run);
      await callOrThrowBusy(() =>
        table.put({ account: waitingAccount, id, waiting, expires: deadline + keptSeconds }, {}),
      );
    },
    async list() {
      const runs: WaitingRun[] = [];
      let after: Attributes | undefined;
      do {
        const range = { first: 'resp-', last: 'resp-~', after };
        const { items, next } = await table.readBetween(waitingAccount, range);
        runs.push(...items.map((item): WaitingRun => JSON.parse(String(item['waiting']))));
        after = next;
      } while (after);
      return runs;
    },
    remove: ({ id }) => table.remove([{ account: waitingAccount, id }]),
  };
}
