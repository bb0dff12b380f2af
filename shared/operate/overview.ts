/** View: how the relay does now. Reads minutes and sums of `daily`, health and configuration; never the ledger. */
import { addFigures, noFigures, type DailyFigures } from '../billing/daily-figures.ts';
import {
  listedChannels,
  type ListedChannel,
  usableChannels,
  restingPlaces,
  type RestingPlace,
} from './channels/list-channels.ts';
import { findingsIn, type Finding } from './config/row-changes.ts';
import type { PublishedVersion, OperatorPorts, Minute } from './operator-ports.ts';
import { rowsIn } from './ledger/ledger.ts';
import { utcDay } from '../wire/iso-time.ts';

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

// Minutes of `daily` as the points of plots: fewer, wider ones for a longer time, and none left out.

export interface TrafficPoint {
  startMs: number;
  figures: DailyFigures;
}

interface TimeSpan {
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  stepMs: number;
}

const minuteMs = 60_000;

/** About 100 points, on whole minutes of the clock. The last one is not over yet. */
export function spanUntil(nowMs: number, hours: number): TimeSpan {
  const stepMs = hours <= 2 ? minuteMs : hours <= 8 ? 5 * minuteMs : 15 * minuteMs;
  const toMs = Math.floor(nowMs / stepMs) * stepMs + stepMs;
  return { fromMs: toMs - hours * 60 * minuteMs, toMs, stepMs };
}

export function trafficPoints(
  minutes: readonly Minute[],
  { fromMs, toMs, stepMs }: TimeSpan,
): TrafficPoint[] {
  const sums = new Map<number, DailyFigures>();
  for (const { startMs, figures } of minutes) {
    const at = fromMs + Math.floor((startMs - fromMs) / stepMs) * stepMs;
    sums.set(at, addFigures(sums.get(at) ?? noFigures, figures));
  }
  const count = Math.max(0, Math.round((toMs - fromMs) / stepMs));
  return Array.from({ length: count }, (_, index) => {
    const startMs = fromMs + index * stepMs;
    return { startMs, figures: sums.get(startMs) ?? noFigures };
  });
}
