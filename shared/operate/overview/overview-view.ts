/** View: how the relay does now. Reads minutes and sums of `daily`, health and configuration; never the ledger. */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { listedChannels, type ListedChannel } from '../channels/list-channels.ts';
import { usableChannels } from '../channels/find-channel.ts';
import { findingsIn, type Finding } from '../config/findings.ts';
import type { PublishedVersion } from '../config-versions.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { restingPlaces, type RestingPlace } from '../channels/channel-standing.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import { spanUntil, trafficPoints, type TimeSpan, type TrafficPoint } from './traffic-points.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface ModelSum {
  model: string;
  figures: DailyFigures;
}

export interface OverviewView {
  span: TimeSpan;
  /** From the first minute to the one that runs. */
  points: TrafficPoint[];
  total: DailyFigures;
  /** Of the day in UTC, those that cost most first. */
  today: ModelSum[];
  channels: (ListedChannel & { rests: RestingPlace[] })[];
  /** Problems and warnings of the configuration's rows. */
  findings: Finding[];
  /** Undefined: nothing was published, so nothing is served. */
  served: PublishedVersion | undefined;
  /** Sums that could not be read. */
  problems: string[];
}

export async function viewOverview(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'ledger' | 'pages' | 'target'>,
  { hours }: { hours: number },
): Promise<OverviewView> {
  const { clock, config, ledger, pages, target } = ports;
  const nowMs = clock.now();
  const span = spanUntil(nowMs, hours);
  const day = utcDay(nowMs);
  const [rows, served, entries, minutes, days] = await Promise.all([
    config.tables(),
    config.newest(),
    pages.health(),
    rowsIn(ledger.minutes(span.fromMs, span.toMs)),
    rowsIn(ledger.served({ from: day, to: day })),
  ]);
  const usable = new Map(usableChannels(rows.channels, target).map((each) => [each.id, each]));
  const points = trafficPoints(minutes.rows, span);
  const today = Map.groupBy(days.rows, ({ model }) => model);
  return {
    span,
    points,
    total: points.reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
    today: [...today]
      .map(([model, all]) => ({
        model,
        figures: all.reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
      }))
      .toSorted((a, b) => Number((b.figures.amounts.charged ?? 0n) - (a.figures.amounts.charged ?? 0n))),
    channels: listedChannels(rows.channels, target).map((listed) => {
      const row = usable.get(listed.id);
      return Object.assign({}, listed, { rests: row ? restingPlaces(row, entries, nowMs) : [] });
    }),
    findings: findingsIn(rows, ports),
    served,
    problems: [...minutes.problems, ...days.problems],
  };
}
