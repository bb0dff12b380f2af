/** View: channels with what they did in some days, when they were last called, and what is known against them now. Reads sums. */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { activityOf, isIdle, noActivity, type ChannelActivity } from './channel-activity.ts';
import { restingPlaces, type RestingPlace } from './channel-standing.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import type { DayRange, ServedDay } from '../sum-reader.ts';
import { usableChannels } from './find-channel.ts';
import { listedChannels, type ListedChannel } from './list-channels.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface ChannelWithSums extends ListedChannel {
  rests: RestingPlace[];
  sum: DailyFigures;
  activity: ChannelActivity;
  /** Undefined: nobody knows. */
  isIdle: boolean | undefined;
}

export interface ChannelsView {
  /** In the order in which they are tried. */
  channels: ChannelWithSums[];
  /** Of the figures. */
  days: DayRange;
  /** Since when last calls and failures are known: the first day that was read and has sums. Undefined: none has. */
  knownFrom: string | undefined;
  /** Of the days of the figures. */
  served: ServedDay[];
  problems: string[];
}

type Ports = Pick<OperatorPorts, 'clock' | 'ledger' | 'pages' | 'tables' | 'target' | 'traffic'>;

const dayMs = 86_400_000;
/** The figures are of today and so many days before. */
const daysBack = 1;
const earlierDaysMax = 13;
/** What a page reads at most for last calls and failures, beside its figures. */
const earlierBytesMax = 1_200_000;

/** Of 300 models on several channels, a day is some 250 KB. Days before it are read as far as they are few enough. */
export async function viewChannels(ports: Ports): Promise<ChannelsView> {
  const { clock, ledger, pages, tables, target } = ports;
  const nowMs = clock.now();
  const days = { from: utcDay(nowMs - daysBack * dayMs), to: utcDay(nowMs) };
  const before = ports.traffic().bytes;
  const [rows, entries, served] = await Promise.all([
    tables.scan('channels'),
    pages.health(),
    rowsIn(ledger.served(days)),
  ]);
  const count = earlierDays(served.rows, ports.traffic().bytes - before);
  const range = {
    from: utcDay(nowMs - (daysBack + count) * dayMs),
    to: utcDay(nowMs - (daysBack + 1) * dayMs),
  };
  const earlier = count === 0 ? { rows: [], problems: [] } : await rowsIn(ledger.served(range));
  const all = [...earlier.rows, ...served.rows];
  const active = activityOf(all);
  const usable = new Map(usableChannels(rows, target).map((each) => [each.id, each]));
  const byChannel = Map.groupBy(served.rows, ({ channel }) => channel);
  return {
    days,
    knownFrom: all[0]?.day,
    served: served.rows,
    problems: [...earlier.problems, ...served.problems],
    channels: listedChannels(rows, target).map((listed) => {
      const row = usable.get(listed.id);
      const activity = active.get(listed.id.slice(0, 200)) ?? noActivity;
      const own = byChannel.get(listed.id) ?? [];
      return Object.assign({}, listed, {
        rests: row ? restingPlaces(row, entries, nowMs) : [],
        sum: own.reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
        activity,
        isIdle: isIdle(listed.state, activity, { since: all[0]?.day, days }),
      });
    }),
  };
}

/** How many days before may be read, by the fullest of those that were. */
function earlierDays(served: readonly ServedDay[], bytes: number): number {
  const fullest = Math.max(
    1,
    ...[...Map.groupBy(served, ({ day }) => day).values()].map(({ length }) => length),
  );
  const dayBytes = (bytes / Math.max(1, served.length)) * fullest;
  return Math.min(earlierDaysMax, Math.floor(earlierBytesMax / Math.max(1, dayBytes)));
}
