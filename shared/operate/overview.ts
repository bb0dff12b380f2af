/** View: how the relay does now. Reads minutes and sums of `daily`, health and configuration; never the ledger. */
import type { DailyFigures } from '../billing/daily-figures.ts';
import { utcDay } from '../wire/iso-time.ts';
import { listedChannels } from './channels/list-channels.ts';
import { findingsInTables } from './config/row-changes.ts';
import { mostCharged, rowsIn, summedBy, sumOfFigures } from './ledger/ledger.ts';
import type { Minute, OperatorPorts } from './operator-ports.ts';

export type OverviewView = Awaited<ReturnType<typeof viewOverview>>;

export async function viewOverview(ports: OperatorPorts, { hours }: { hours: number }) {
  const { clock, config, ledger, pages } = ports;
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
  const points = trafficPoints(minutes.rows, span);
  return {
    span,
    points,
    total: sumOfFigures(points),
    today: summedBy(days.rows, ({ model }) => model).toSorted(mostCharged),
    channels: listedChannels(rows.channels, ports, entries),
    findings: findingsInTables(rows, ports),
    served,
    problems: [...minutes.problems, ...days.problems],
  };
}

/** Minutes of `daily` as a point of plots: fewer, wider ones for a longer time, and none left out. */
export interface TrafficPoint {
  startMs: number;
  figures: DailyFigures;
}

type TimeSpan = ReturnType<typeof spanUntil>;

const minuteMs = 60_000;

/** About 100 points, on whole minutes of the clock. The last one is not over yet. */
export function spanUntil(nowMs: number, hours: number) {
  const stepMs = hours <= 2 ? minuteMs : hours <= 8 ? 5 * minuteMs : 15 * minuteMs;
  const toMs = Math.floor(nowMs / stepMs) * stepMs + stepMs;
  return { fromMs: toMs - hours * 60 * minuteMs, toMs, stepMs };
}

export function trafficPoints(
  minutes: readonly Minute[],
  { fromMs, toMs, stepMs }: TimeSpan,
): TrafficPoint[] {
  const byPoint = Map.groupBy(minutes, ({ startMs }) => Math.floor((startMs - fromMs) / stepMs));
  const count = Math.max(0, Math.round((toMs - fromMs) / stepMs));
  return Array.from({ length: count }, (_, index) => ({
    startMs: fromMs + index * stepMs,
    figures: sumOfFigures(byPoint.get(index) ?? []),
  }));
}
