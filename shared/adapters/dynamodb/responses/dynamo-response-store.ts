/**
 * Responses: the head of each in an item of its own, with the first part of its content, further parts in items beside it.
 * Parts are written before the head that names them, so a reader finds a whole content or none. The item of a response that
 * still runs has no part, since each write to an item costs as much as the item is large.
 */
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { ResponseStore } from '../../../relay/ports/stored/response-store.ts';
import type {
  ResponseBody,
  ResponseHead,
  StoredResponse,
} from '../../../relay/ports/stored/stored-response.ts';
import { storeCall } from '../dynamo-client.ts';
import { hasEnded, headAttributes, headOfItem, itemOfHead } from './head-attributes.ts';
import { contentsOf, partIdsOf, putContent } from './item-contents.ts';
import {
  getResponseItems,
  isKept,
  isResponseId,
  marshalled,
  removeResponseItems,
  removeRest,
  type ResponseItem,
  type ResponseTable,
} from './response-items.ts';

/** A content that is replaced while it is read is read again. */
const readsMax = 3;

export const dynamoResponseStore = (table: ResponseTable): ResponseStore => ({
  async put(response) {
    const item = await itemOfResponse(table, response);
    const input = { TableName: table.name, Item: marshalled(item), ReturnValues: 'ALL_OLD' as const };
    const { Attributes } = await storeCall(() => table.client.call('PutItem', input));
    await removeReplaced(table, Attributes && unmarshall(Attributes), item);
  },
  read: (account, ids) => readResponses(table, account, ids),
  heads: (account, ids) => readHeads(table, account, ids),
  async remove(account, id) {
    if (!isResponseId(id)) return false;
    // Read before, because a delete whose reply was lost finds nothing when it is repeated.
    const known = await readHeads(table, account, [id]);
    const input = { TableName: table.name, Key: marshall({ account, id }) };
    await storeCall(() => table.client.call('DeleteItem', input));
    // Also when there is no head: an earlier try may have come so far.
    await removeRest(table, { account, id });
    return known.has(id);
  },
});

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

/** Those whose parts are there. */
export async function responsesOf(
  table: ResponseTable,
  account: string,
  items: readonly ResponseItem[],
): Promise<Map<string, StoredResponse>> {
  const bodies = await contentsOf(table, account, items);
  return new Map(
    items.flatMap((item) => {
      const head = headOfItem(item);
      const body = bodies.get(head.id);
      return body === undefined ? [] : [[head.id, { head, body: body as ResponseBody }] as const];
    }),
  );
}

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

async function readResponses(
  table: ResponseTable,
  account: string,
  ids: readonly string[],
): Promise<Map<string, StoredResponse>> {
  const whole = new Map<string, StoredResponse>();
  let asked = ids.filter(isResponseId);
  for (let reads = 0; asked.length > 0 && reads < readsMax; reads += 1) {
    const items = [...(await getResponseItems(table, account, { ids: asked })).values()];
    const kept = items.filter((item) => isKept(item, table.now()));
    for (const [id, response] of await responsesOf(table, account, kept)) whole.set(id, response);
    // Replaced or removed since its head was read.
    asked = kept.map((item) => String(item['id'])).filter((id) => !whole.has(id));
  }
  return whole;
}
