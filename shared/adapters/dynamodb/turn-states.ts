/**
 * Sealed states of turns in the table `runtime`: `turn#<hash>` has {body, parts, expires}, further parts are in
 * `turn#<hash>#<part>`. The hash is of account and call id. Items are written once and removed by their expiry.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../relay/ports/host.ts';
import { StateTooLarge, type TurnKey, type TurnStateStore } from '../../relay/ports/runtime-stores.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { TableClient } from './table-client.ts';
import { putItem } from './config-store.ts';
import { getItems, type RuntimeItem, type RuntimeTable } from './runtime-items.ts';

/** Below DynamoDB's limit of 400 KB for an item, with room for attribute names. */
const partBytesMax = 300_000;
const partsMax = 4;
/** How many items one batch asks for; batches run side by side. */
const idsAtOnce = 50;

export interface TurnStateStoreParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
}

export function dynamoTurnStateStore({ client, clock, stack }: TurnStateStoreParts): TurnStateStore {
  const table: RuntimeTable = { client, name: physicalTableName(stack, 'runtime') };
  return {
    async put(key, sealed, expires) {
      const bytes = Buffer.from(sealed);
      const parts = Math.ceil(bytes.length / partBytesMax);
      if (parts > partsMax) throw new StateTooLarge(`${bytes.length} bytes`);
      const writes = Array.from({ length: parts }, (_, part) => {
        const body = bytes.subarray(part * partBytesMax, (part + 1) * partBytesMax);
        return putItem(table, { id: partId(key, part), body, expires, ...(part === 0 && { parts }) });
      });
      await Promise.all(writes);
    },
    async read(account, callIds) {
      const keys = callIds.map((callId) => ({ account, callId }));
      const heads = await readAll(
        table,
        keys.map((key) => partId(key, 0)),
      );
      const nowSeconds = Math.floor(clock.now() / 1000);
      const kept = keys.flatMap((key) => {
        const head = heads.get(partId(key, 0));
        return head && isKept(head, nowSeconds) ? [{ key, head }] : [];
      });
      const rest = await readAll(
        table,
        kept.flatMap(({ key, head }) => restIds(key, head)),
      );
      return new Map(
        kept.flatMap(({ key, head }) => {
          const sealed = joined([head, ...restIds(key, head).map((id) => rest.get(id))]);
          return sealed === undefined ? [] : [[key.callId, sealed] as const];
        }),
      );
    },
  };
}

function partId({ account, callId }: TurnKey, part: number): string {
  const hash = createHash('sha256').update(`${account}\n${callId}`).digest('hex');
  return part === 0 ? `turn#${hash}` : `turn#${hash}#${part}`;
}

const partsOf = ({ parts }: RuntimeItem): number =>
  typeof parts === 'number' ? Math.min(parts, partsMax) : 1;

const restIds = (key: TurnKey, head: RuntimeItem): string[] =>
  Array.from({ length: partsOf(head) - 1 }, (_, index) => partId(key, index + 1));

/** DynamoDB removes expired items with a delay. */
const isKept = ({ expires }: RuntimeItem, nowSeconds: number): boolean =>
  typeof expires === 'number' && expires > nowSeconds;

/** Undefined: a part is missing. */
function joined(items: readonly (RuntimeItem | undefined)[]): string | undefined {
  const bodies = items.map((item) => item?.['body']);
  const bytes = bodies.filter((body) => body instanceof Uint8Array);
  return bytes.length === bodies.length ? Buffer.concat(bytes).toString() : undefined;
}

async function readAll(table: RuntimeTable, ids: readonly string[]): Promise<Map<string, RuntimeItem>> {
  const unique = [...new Set(ids)];
  const found = new Map<string, RuntimeItem>();
  const batches = Array.from({ length: Math.ceil(unique.length / idsAtOnce) }, async (_, index) => {
    const items = await getItems(table, unique.slice(index * idsAtOnce, (index + 1) * idsAtOnce));
    for (const [id, item] of items) found.set(id, item);
  });
  await Promise.all(batches);
  return found;
}
