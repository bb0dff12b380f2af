/** What operators see and delete of the table `responses`. Must read no content but that of one response that is named. */
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
    /** Without a mark: operators may write no item here, and what they name was written long ago. */
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
