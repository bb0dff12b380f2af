/**
 * Encrypted turn states in `runtime`: `turn#<hash>` has {body, parts, expires}, further parts are in `turn#<hash>#<part>`.
 * The hash is of account and call id. Written once, removed by expiry.
 */
import { hash } from 'node:crypto';
import { StateTooLarge, type TurnKey, type TurnStateStore } from '../../relay/ports/runtime-stores.ts';
import { readItems, sliceBytes, type RuntimeItem } from './runtime-items.ts';
import { chunksOf, Table, type StoreDeps } from './table-client.ts';

/** Below DynamoDB's 400 KB for an item. */
const partBytesMax = 300_000;
const partsMax = 4;
/** DynamoDB replies with up to 16 MB. Batches run in parallel, because a client waits. */
const idsAtOnce = 50;

export function createTurnStateStore({ client, clock, stack }: StoreDeps): TurnStateStore {
  const table = new Table(client, stack, 'runtime');
  const readAll = async (ids: readonly string[]): Promise<Map<string, RuntimeItem>> => {
    const batches = chunksOf([...new Set(ids)], idsAtOnce).map((some) => readItems(table, some));
    return new Map((await Promise.all(batches)).flatMap((items) => Array.from(items)));
  };
  return {
    async put(key, encrypted, expires) {
      const bytes = Buffer.from(encrypted);
      const bodies = sliceBytes(bytes, partBytesMax);
      const parts = bodies.length;
      if (parts > partsMax) throw new StateTooLarge(`${bytes.length} bytes`);
      const items = bodies.map((body, part) =>
        Object.assign({ id: buildPartId(key, part), body, expires }, part === 0 && { parts }),
      );
      await Promise.all(items.map((item) => table.put(item)));
    },
    async read(account, callIds) {
      const keys = callIds.map((callId) => ({ account, callId }));
      const heads = await readAll(keys.map((key) => buildPartId(key, 0)));
      // DynamoDB removes expired items late.
      const nowSeconds = Math.floor(clock.now() / 1000);
      const states = keys.flatMap((key) => {
        const head = heads.get(buildPartId(key, 0));
        if (typeof head?.['expires'] !== 'number' || head['expires'] <= nowSeconds) return [];
        const parts = Math.min(Number(head['parts'] ?? 1), partsMax);
        const otherIds = Array.from({ length: parts - 1 }, (_, index) => buildPartId(key, index + 1));
        return [{ callId: key.callId, head, otherIds }];
      });
      const others = await readAll(states.flatMap(({ otherIds }) => otherIds));
      return new Map(
        states.flatMap(({ callId, head, otherIds }) => {
          const items = [head, ...otherIds.map((id) => others.get(id))];
          const bodies = items.map((item) => item?.['body']).filter((body) => body instanceof Uint8Array);
          // A state with a missing part is unusable.
          return bodies.length < items.length ? [] : [[callId, Buffer.concat(bodies).toString()] as const];
        }),
      );
    },
  };
}

function buildPartId({ account, callId }: TurnKey, part: number): string {
  const id = `turn#${hash('sha256', `${account}\n${callId}`)}`;
  return part === 0 ? id : `${id}#${part}`;
}
