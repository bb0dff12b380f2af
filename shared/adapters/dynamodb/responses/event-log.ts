/**
 * Stores events of background streams, a batch per item, named by the batch's last event number. A batch that was written
 * again with more events leaves its shorter version; readers drop the duplicates.
 */
import type { EventBatch, EventLog, ResultStore, StoredResult } from '../../../relay/ports/stored.ts';
import type { Attributes } from '../table-client.ts';
import {
  measureContent,
  isResponseId,
  partsMax,
  type ResponseItem,
  type ResponseTable,
} from './response-items.ts';

const digits = 16;
/** UTF-16 code units. Readers continue at once after a partial result. */
const unpackedAtOnceMax = 4 * 1024 * 1024;

const buildEventsId = (id: string, sequence: number): string =>
  `${id}#e#${String(sequence).padStart(digits, '0')}`;

export const createEventLog = (table: ResponseTable): EventLog => ({
  async append({ account, id }, { from, frames }, expires) {
    if (!isResponseId(id) || frames.length === 0) return;
    const key = { account, id: buildEventsId(id, from + frames.length - 1), expires };
    const content = await table.putContent(key, { content: frames, inside: true });
    await table.put({ ...key, ...content, from });
  },
  async after({ account, id }, sequence) {
    if (!isResponseId(id)) return [];
    const first = buildEventsId(id, Math.max(0, Math.min(sequence + 1, Number.MAX_SAFE_INTEGER)));
    const { items } = await table.readBetween(account, { first, last: `${id}#e#~` });
    return dropDoubles(await readEventBatches(table, account, items));
  },
  async last({ account, id }) {
    if (!isResponseId(id)) return undefined;
    const range = { first: buildEventsId(id, 0), last: `${id}#e#~`, backwards: true };
    let after: Attributes | undefined;
    for (let items = 0; items <= partsMax; items += 1) {
      const { items: found, next } = await table.readBetween(account, { ...range, after });
      const [batch] = await readEventBatches(table, account, found);
      if (batch || !next) return batch;
      after = next;
    }
    return undefined;
  },
});

async function readEventBatches(
  table: ResponseTable,
  account: string,
  items: readonly ResponseItem[],
): Promise<EventBatch[]> {
  // Further parts of a batch have no `from`.
  const kept = items.filter((item) => table.isKept(item) && typeof item['from'] === 'number');
  const batches = await table.readContents(account, takeFirst(kept), (frames, item) => ({
    from: Number(item['from']),
    frames: frames as string[],
  }));
  return [...batches.values()];
}

/** Bounds the memory: well-compressible pages grow a thousandfold. Takes at least one. */
function takeFirst(items: readonly ResponseItem[]): readonly ResponseItem[] {
  let length = 0;
  const end = items.findIndex((item) => (length += measureContent(item)) > unpackedAtOnceMax);
  return end < 0 ? items : items.slice(0, Math.max(1, end));
}

function dropDoubles(batches: readonly EventBatch[]): EventBatch[] {
  const clean: EventBatch[] = [];
  let next = 0;
  for (const { from, frames } of batches) {
    const newFrames = frames.slice(Math.max(0, next - from));
    if (newFrames.length > 0) clean.push({ from: Math.max(from, next), frames: newFrames });
    next = Math.max(next, from + frames.length);
  }
  return clean;
}

/** Removed together with the request's response. No client can name it. */
const buildResultId = (key: string): string => `resp-${key}#result`;

export const createResultStore = (table: ResponseTable): ResultStore => ({
  async put({ account, key }, result, expires) {
    const of = { account, id: buildResultId(key), expires };
    await table.put({ ...of, ...(await table.putContent(of, { content: result, inside: true })) });
  },
  async read({ account, key }, admit) {
    const id = buildResultId(key);
    const item = (await table.readItems(account, [id])).get(id);
    if (!table.isKept(item)) return undefined;
    return (await table.readContents(account, [item], (result) => result as StoredResult, admit)).get(id);
  },
});
