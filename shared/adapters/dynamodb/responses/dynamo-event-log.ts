/**
 * Events of background streams, a batch an item, named by the number of its last event: what follows a number is one range
 * of keys. A batch that was written again with more events leaves its shorter self behind; readers leave out what is double.
 */
import type { EventBatch, EventLog } from '../../../relay/ports/stored/event-log.ts';
import { contentsOf, putContent } from './item-contents.ts';
import {
  isKept,
  isResponseId,
  putResponseItem,
  queryResponseItems,
  type ResponseTable,
} from './response-items.ts';

/** Of any number that a client may name. */
const digits = 16;

const eventsId = (id: string, sequence: number): string =>
  `${id}#e#${String(sequence).padStart(digits, '0')}`;

export const dynamoEventLog = (table: ResponseTable): EventLog => ({
  async append({ account, id }, { from, frames }, expires) {
    if (!isResponseId(id) || frames.length === 0) return;
    const key = { account, id: eventsId(id, from + frames.length - 1), expires };
    const content = await putContent(table, key, { content: frames, inside: true });
    await putResponseItem(table, { ...key, ...content, from });
  },
  async after({ account, id }, sequence) {
    if (!isResponseId(id)) return [];
    const first = eventsId(id, Math.max(0, Math.min(sequence + 1, Number.MAX_SAFE_INTEGER)));
    const { items } = await queryResponseItems(table, account, { first, last: `${id}#e#~` });
    // Further parts of a batch have no number.
    const kept = items.filter((item) => isKept(item, table.now()) && typeof item['from'] === 'number');
    const contents = await contentsOf(table, account, kept);
    const batches = kept.flatMap((item) => {
      const frames = contents.get(String(item['id'])) as string[] | undefined;
      return frames ? [{ from: Number(item['from']), frames }] : [];
    });
    return withoutDoubles(batches);
  },
});

/** In the order of their last events, each without what those before it have. */
function withoutDoubles(batches: readonly EventBatch[]): EventBatch[] {
  const clean: EventBatch[] = [];
  let next = 0;
  for (const { from, frames } of batches) {
    const rest = frames.slice(Math.max(0, next - from));
    if (rest.length > 0) clean.push({ from: Math.max(from, next), frames: rest });
    next = Math.max(next, from + frames.length);
  }
  return clean;
}
