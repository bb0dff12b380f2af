/** View: how the relay does now. Reads minutes and sums of `daily`, health and configuration; never the ledger. */
import { dayMs, utcDay, utcMonth } from '../wire/iso-time.ts';
import { findFailing, sortChannels } from './channels/list-channels.ts';
import { findProblemsInTables } from './config/row-changes.ts';
import { compareCharges, readAllRows, sumBy, sumOfFigures, type Summed } from './ledger/ledger.ts';
import { marginOf } from './report.ts';
import type { Minute, OperatorPorts, UnderWay } from './operator-ports.ts';

export type OverviewNow = ReturnType<typeof joinOverview>;
export type OverviewToday = Awaited<ReturnType<typeof readToday>>;
export type OverviewMonth = Awaited<ReturnType<typeof readMonth>>;

/** All at once, but what has no room in ten requests: calls under way, and the month. */
export async function viewOverview(ports: OperatorPorts, hours: OverviewHours) {
  const [rows, now, today] = await Promise.all([
    readRows(ports),
    readNow(ports, hours, async () => undefined),
    readToday(ports),
  ]);
  return { ...joinOverview(now, rows, ports), today };
}

/** How often a look is made: plots of a longer time have wider steps. */
const lookMs = { 1: 10_000, 6: 30_000, 24: 60_000 } as const;
export type OverviewHours = keyof typeof lookMs;

const minuteMs = 60_000;
const partMs = { rows: 5 * minuteMs, month: 5 * minuteMs, today: minuteMs };
const partNames = ['rows', 'month', 'today'] as const;

/**
 * The same again and again. A look is what changes by the second and one other part, or the month alone: ten requests at most.
 * Rows are read when they are due, or when a version was published. It keeps the rows of the configuration, and nothing that grows.
 */
export function watchOverview(ports: OperatorPorts, hours: OverviewHours) {
  const readMs = { rows: -Infinity, month: -Infinity, today: -Infinity };
  let rows: Awaited<ReturnType<typeof readRows>> | undefined;
  let version: number | undefined;

  return {
    everyMs: lookMs[hours],
    async look() {
      const nowMs = ports.clock.now();
      const due = partNames.find((name) => nowMs - readMs[name] >= partMs[name]);
      if (due === 'month') {
        const month = await readMonth(ports);
        readMs.month = nowMs;
        return { nowMs, month };
      }
      const now = await readNow(ports, hours, () => ports.pages.underWay(nowMs));
      if (!rows || due === 'rows' || now.served?.version !== version) {
        rows = await readRows(ports);
        [readMs.rows, version] = [nowMs, now.served?.version];
      }
      const today = due === 'today' && nowMs > readMs.rows ? await readToday(ports) : undefined;
      if (today) readMs.today = nowMs;
      return { nowMs, today, now: joinOverview(now, rows, ports) };
    },
  };
}

async function readNow(
  { clock, config, ledger, pages }: OperatorPorts,
  hours: OverviewHours,
  readUnderWay: () => Promise<UnderWay | undefined>,
) {
  const span = planTimeSpan(clock.now(), hours);
  const [served, { entries, marks }, minutes, underWay] = await Promise.all([
    config.newest(),
    pages.health(),
    readAllRows(ledger.minutes(span.fromMs, span.toMs)),
    readUnderWay(),
  ]);
  const points = sumTraffic(minutes.rows, span);
  return {
    span,
    points,
    total: sumOfFigures(points),
    served,
    entries,
    marks,
    underWay,
    problems: minutes.problems,
  };
}

async function readRows(ports: OperatorPorts) {
  const tables = await ports.config.tables();
  return { tables, findings: findProblemsInTables(tables, ports) };
}

const joinOverview = (
  now: Awaited<ReturnType<typeof readNow>>,
  { tables, findings }: Awaited<ReturnType<typeof readRows>>,
  ports: OperatorPorts,
) => ({ ...now, findings, channels: sortChannels(tables.channels, ports, now.entries) });

async function readToday({ clock, ledger }: OperatorPorts) {
  const [from, to] = [utcDay(clock.now() - dayMs), utcDay(clock.now())];
  const { rows: recent, problems } = await readAllRows(ledger.served({ from, to }));
  const rows = recent.filter(({ day }) => day === to);
  const failing = [...Map.groupBy(recent, ({ channel }) => channel)].flatMap(([channel, own]) => {
    const found = findFailing(own);
    return channel !== undefined && found ? [{ channel, ...found }] : [];
  });
  const channels = sumBy(rows, ({ channel }) => channel);
  const losing = channels
    .map(({ name, figures }) => ({ channel: name, earned: marginOf(figures).earned ?? 0n }))
    .filter(({ earned }) => earned < 0n)
    .toSorted((a, b) => Number(a.earned - b.earned));
  const models = sumBy(rows, ({ model }) => model).toSorted(compareCharges);
  return { day: to, models, channels, failing, losing, problems };
}

const customersMax = 10;

/** Top customers of the month, with income and cost. */
async function readMonth({ clock, ledger }: OperatorPorts) {
  const month = utcMonth(clock.now());
  const { rows, problems } = await readAllRows(ledger.monthAccounts(month));
  const customers = rows.map(({ account, figures }): Summed => ({ name: account, figures }));
  return {
    month,
    count: rows.length,
    total: sumOfFigures(rows),
    customers: customers.toSorted(compareCharges).slice(0, customersMax),
    problems,
  };
}

export type TimeSpan = ReturnType<typeof planTimeSpan>;

/** About 100 points, on whole minutes of the clock. The last one is not over yet. */
export function planTimeSpan(nowMs: number, hours: number) {
  const stepMs = hours <= 2 ? minuteMs : hours <= 8 ? 5 * minuteMs : 15 * minuteMs;
  const toMs = Math.floor(nowMs / stepMs) * stepMs + stepMs;
  return { fromMs: toMs - hours * 60 * minuteMs, toMs, stepMs };
}

export type TrafficPoint = ReturnType<typeof sumTraffic>[number];

/** Minutes of `daily` as points of plots: fewer, wider ones for a longer time, and none left out. */
export function sumTraffic(minutes: readonly Minute[], { fromMs, toMs, stepMs }: TimeSpan) {
  const byPoint = Map.groupBy(minutes, ({ startMs }) => Math.floor((startMs - fromMs) / stepMs));
  const count = Math.max(0, Math.round((toMs - fromMs) / stepMs));
  return Array.from({ length: count }, (_, index) => ({
    startMs: fromMs + index * stepMs,
    figures: sumOfFigures(byPoint.get(index) ?? []),
  }));
}
