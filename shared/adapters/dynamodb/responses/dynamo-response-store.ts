/**
 * Responses: the head of each in an item of its own, with the first part of its content, further parts in items beside it.
 * Parts are written before the head that names them, so a reader finds a whole content or none. The item of a response that
 * still runs has no part, since each write to an item costs as much as the item is large. What is removed leaves a mark for a
 * while: a put whose try comes late must not bring back what its client has deleted.
 */
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { Admit, ResponseStore } from '../../../relay/ports/stored/response-store.ts';
import type {
  ResponseBody,
  ResponseHead,
  StoredResponse,
} from '../../../relay/ports/stored/stored-response.ts';
import { conditionalCall } from '../dynamo-client.ts';
import { hasEnded, headAttributes, headOfItem, itemOfHead } from './head-attributes.ts';
import { contentLength, contentsOf, partIdsOf, putContent } from './item-contents.ts';
import {
  getResponseItems,
  isKept,
  isResponseId,
  marshalled,
  removeResponseItems,
  removedStatus,
  removeRest,
  type ResponseItem,
  type ResponseKey,
  type ResponseTable,
} from './response-items.ts';

/** A content that is replaced while it is read is read again. */
const readsMax = 3;
/** What `isKept` is decided from, with the id. */
const keptAttributes = ['id', 'expires', 'status'];
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
  async lengths(account, ids) {
    const asked = { ids: ids.filter(isResponseId), attributes: [...keptAttributes, 'unpacked'] };
    const found = [...(await getResponseItems(table, account, asked)).values()];
    const kept = found.filter((item) => isKept(item, table.now()));
    return new Map(kept.map((item) => [String(item['id']), contentLength(item)]));
  },
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
export async function itemOfResponse(
  table: ResponseTable,
  { head, body }: StoredResponse,
): Promise<ResponseItem> {
  const inside = !head.background || hasEnded(head.status);
  return { ...itemOfHead(head), ...(await putContent(table, head, { content: body, inside })) };
}

/** The parts of a content that no item names any more. What is not removed here, expires. */
export async function removeReplaced(
  table: ResponseTable,
  old: ResponseItem | undefined,
  item: ResponseItem,
): Promise<void> {
  const kept = new Set(partIdsOf(item));
  const ids = old ? partIdsOf(old).filter((id) => !kept.has(id)) : [];
  await removeResponseItems(table, String(item['account']), ids).catch(() => {});
}

/** What the content of a response's item is. */
export const responseOf = (body: unknown, item: ResponseItem): StoredResponse => ({
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
