/** The attempts of channels by hour, and the marks that were found in them. Every read may be some seconds old. */
import * as z from 'zod/mini';
import { markKinds, type ChannelHours, type ChannelMark } from '../../../relay/ports/alerts.ts';
import { parseJson } from '../../../wire/json.ts';
import { readHealthHours } from '../daily-sums.ts';
import { channelMarksId, type RuntimeItem } from '../runtime-items.ts';
import { Table, valuesOf, type TableClient } from '../table-client.ts';

export function createChannelHours(client: TableClient, stack: string): ChannelHours {
  const store = { tables: client, target: { stack } };
  return {
    async channels() {
      const pages = await Array.fromAsync(
        new Table(client, stack, 'channels').readPages('Scan', { ConsistentRead: false }),
      );
      const rows = pages.flat().map(valuesOf);
      return rows.flatMap(({ id, state }) => (typeof id === 'string' && state === true ? [id] : []));
    },
    async read(channel, from, to) {
      const sums = await readHealthHours(store, channel, from, to);
      // A sum that cannot be read is left out: the others still tell how the channel does.
      return sums.flatMap((each) => ('row' in each ? [each.row] : []));
    },
    async keep(marks, nowMs) {
      const shown = marks.slice(0, marksMax);
      await new Table(client, stack, 'runtime').put({
        id: channelMarksId,
        at: nowMs,
        marks: JSON.stringify(shown),
      });
    },
  };
}

/** An item has 400 KB at most. */
const marksMax = 500;
/** Nothing is known from marks that nobody renewed. */
const marksMs = 10 * 60_000;

const Marks = z.array(
  z.object({
    channel: z.string(),
    mark: z.enum(markKinds),
    model: z.optional(z.string()),
    now: z.number(),
    usual: z.number(),
  }),
);

export function readChannelMarks(item: RuntimeItem | undefined, nowMs: number): ChannelMark[] {
  const { at, marks } = item ?? {};
  if (typeof marks !== 'string' || Number(at) < nowMs - marksMs) return [];
  return z.safeParse(Marks, parseJson(marks)).data ?? [];
}
