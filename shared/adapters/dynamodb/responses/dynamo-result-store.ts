/**
 * First results of Idempotency-Keys: `resp-<id of the request>#result` with {body, parts, expires}, and parts beside it. So they
 * are among what goes when the response of that request is removed.
 */
import type { ResultStore, StoredResult } from '../../../relay/ports/stored/result-store.ts';
import { contentsOf, putContent } from './item-contents.ts';
import { getResponseItems, isKept, putResponseItem, type ResponseTable } from './response-items.ts';

/** No client names a request. */
const resultId = (key: string): string => `resp-${key}#result`;

export const dynamoResultStore = (table: ResponseTable): ResultStore => ({
  async put({ account, key }, result, expires) {
    const of = { account, id: resultId(key), expires };
    const content = await putContent(table, of, { content: result, inside: true });
    await putResponseItem(table, { ...of, ...content });
  },
  async read({ account, key }, admit) {
    const id = resultId(key);
    const item = (await getResponseItems(table, account, { ids: [id] })).get(id);
    if (!isKept(item, table.now())) return undefined;
    const asked = { account, items: [item], admit };
    return (await contentsOf(table, asked, (result) => result as StoredResult)).get(id);
  },
});
