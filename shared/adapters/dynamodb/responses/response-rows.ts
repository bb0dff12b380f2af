/** Lists and deletes stored responses for operators. Must read no content except that of one named response. */
import type { ResponseRows } from '../../../operate/operator-ports.ts';
import type { Store } from '../operator-store.ts';
import { buildExpressions, valuesOf } from '../table-client.ts';
import { buildProjection, removedStatus, ResponseTable } from './response-items.ts';
import { createResponseStore } from './response-store.ts';

const attributes = ['id', 'bytes', 'expires', 'status'] as const;

export function createResponseRows({ tables, target }: Store, clock: { now(): number }): ResponseRows {
  const table = new ResponseTable({ client: tables, clock, stack: target.stack });
  const store = createResponseStore(table);
  return {
    head: async (account, id) => (await store.heads(account, [id])).get(id),
    read: async (account, id) => (await store.read(account, [id])).get(id),
    /** Leaves no mark: operators may not write here, and old responses have no late writers. */
    async remove(account, id) {
      const isThere = (await store.heads(account, [id])).size > 0;
      if (isThere) await tables.call('DeleteItem', table.keyInput({ account, id }));
      await table.removeAllButHead({ account, id });
      return isThere;
    },
    async *rows(account) {
      const range = buildExpressions(
        { KeyConditionExpression: '#account = :account', ...buildProjection(attributes) },
        { ':account': account },
      );
      for await (const page of table.readPages('Query', range))
        yield page
          .map(valuesOf)
          .filter(({ status }) => status !== removedStatus)
          .map(({ id, bytes, expires }) => ({
            id: String(id),
            bytes: Number(bytes ?? 0),
            expires: Number(expires ?? 0),
          }));
    },
  };
}
