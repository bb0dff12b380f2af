/** Reads the attempts of channels by hour, and stores the marks found in them. Reads may be a few seconds old. */
import * as z from 'zod/mini';
import { markKinds, type ChannelHours, type ChannelMark } from '../../../relay/ports/alerts.ts';
import { shortenChannelId } from '../../../wire/ids.ts';
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
      // Skip an unreadable sum: the others still show the channel's health.
      return sums.flatMap((each) => ('row' in each ? [each.row] : []));
    },
    async keep(marks, nowMs) {
      const shown = marks
        .slice(0, marksMax)
        .map((mark) => Object.assign({}, mark, { channel: shortenChannelId(mark.channel) }));
      await new Table(client, stack, 'runtime').put({
        id: channelMarksId,
        at: nowMs,
        marks: JSON.stringify(shown),
      });
    },
  };
}

/** An item holds at most 400 KB. */
const marksMax = 400;
/** Older marks are ignored: the watch renews marks every minute. */
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
