/**
 * The first page, made to be left open: calls in flight, calls, charges, failures and time to first content by minute, health of
 * channels, configuration warnings, models, customers and refused calls. Rendered again while it is live.
 */
import { findFirstContentShare } from '../../../../shared/operate/report.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import {
  ChannelHistory,
  viewOverview,
  watchOverview,
  type ChannelCondition,
  type OverviewHours,
  type OverviewMonth,
  type OverviewNow,
  type TimeSpan,
  type TrafficPoint,
} from '../../../../shared/operate/overview.ts';
import { formatCount, formatInteger, Failure } from '../../../../shared/operate/plan.ts';
import {
  formatLogCost,
  estimateRefusedBytes,
  countRefusedCalls,
  refusedMs,
} from '../../../../shared/operate/requests/list-requests.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import {
  bytes,
  clockTime,
  marginText,
  minuteText,
  percent,
  short,
  span,
  when,
  yuan,
} from '../layout/figures.ts';
import { emptyBox, emptyState, notice, warnings, type Page } from '../layout/frame.ts';
import { callsPlot, chargedPlot, plot } from '../layout/plot.ts';
import {
  column,
  figureColumns,
  head,
  number,
  table,
  tabs,
  tiles,
  wide,
  withinWords,
} from '../layout/table.ts';
import { liveBar } from '../visit/live.ts';
import {
  customerLink,
  pathWith,
  type Routes,
  type Visit,
  type LivePart,
  type Watched,
} from '../visit/visit.ts';
import { channelPath, stateOf } from './channels.ts';

const spans = [1, 6, 24] as const;

export function overviewPages(routes: Routes): void {
  const history = new ChannelHistory();
  routes.slowPage('/', readRefused, (visit, refused) => overview(visit, refused, history));
  routes.live('/live', (visit) => watched(visit, history));
}

const hoursIn = ({ query }: Visit): OverviewHours =>
  spans.find((each) => String(each) === query('hours')) ?? 1;

const addressOf = ({ query }: Visit, hours: OverviewHours): string =>
  pathWith('./', { hours: String(hours), refused: query('refused') });

async function overview(visit: Visit, refused: Refused, history: ChannelHistory): Promise<Page> {
  const hours = hoursIn(visit);
  const view = await viewOverview(visit.ports, hours);
  const { today } = view;
  history.recordConditions(view.channels, visit.nowMs);
  if (visit.query('models') === 'all')
    return { title: 'Models today', above: [], body: modelTable(today.models, true) };
  return {
    title: 'Overview',
    actions: html`<span class="soft" id="overview-version">${versionOf(view, visit.nowMs)}</span>`,
    body: html`${warnings(today.problems)}
      ${tabs(
        'Time',
        spans.map((each) => [addressOf(visit, each), `Last ${each === 1 ? 'hour' : `${each} hours`}`]),
        addressOf(visit, hours),
      )}
      ${liveBar(visit, {
        address: pathWith('live', { hours: String(hours), refused: visit.query('refused') }),
        isOn: visit.query('live') !== 'off',
        isPaid: isPaid(visit),
        words: html`<span id="overview-look"></span>`,
      })}
      <div id="overview-now">${figuresOf(view)}</div>
      <div class="columns">
        <section>
          <h2>Channels</h2>
          <div id="overview-channels">${channelTable(view, visit, history)}</div>
        </section>
        <section>
          <h2>Needs attention</h2>
          <div id="overview-findings">${shownFindings(view)}</div>
        </section>
      </div>
      <div class="columns">
        <section>
          <h2>Models today <span class="soft">since midnight UTC</span></h2>
          <div id="overview-models">${modelTable(today.models, false)}</div>
        </section>
        <section>
          <h2>Customers this month</h2>
          <div id="overview-month">${monthUnread}</div>
        </section>
        <section>
          <h2>Refused <span class="soft">in the last hour</span></h2>
          <div id="overview-refused">${refusedTable(refused)}</div>
        </section>
      </div>`,
  };
}

/** Reading the AWS log costs money, so it needs a click on a link with the price. */
const isPaid = ({ ports, query }: Visit): boolean => !ports.target.local && query('refused') === 'yes';

/** Counts refused calls if that is free or its price was accepted; else returns the price. */
async function readRefused(visit: Visit) {
  const { ports, nowMs } = visit;
  try {
    if (ports.target.local || isPaid(visit)) return { found: await countRefusedCalls(ports) };
    const source = await ports.log.source();
    return { bytes: source && estimateRefusedBytes(source, nowMs) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { problem: error.message };
  }
}

type Refused = Awaited<ReturnType<typeof readRefused>>;

const watched = (visit: Visit, history: ChannelHistory): Watched => {
  const watch = watchOverview(visit.ports, hoursIn(visit));
  const isFree = visit.ports.target.local;
  let refusedAtMs = 0;
  return {
    everyMs: watch.everyMs,
    async look() {
      const { found, cost } = await visit.counted(() => watch.look());
      const { nowMs, now, month, today } = found;
      const parts: LivePart[] = [];
      const put = (id: string, markup: Markup): void => void parts.push({ id: `overview-${id}`, markup });
      if (now) {
        history.recordConditions(now.channels, nowMs);
        put('version', versionOf(now, nowMs));
        put('now', figuresOf(now));
        put('channels', channelTable(now, { ...visit, nowMs }, history));
        put('findings', shownFindings(now));
      }
      if (today) put('models', modelTable(today.models, false));
      if (month) put('month', monthOf(month));
      if (isFree || (isPaid(visit) && nowMs - refusedAtMs >= refusedMs)) {
        put('refused', refusedTable(await readRefused(visit)));
        refusedAtMs = nowMs;
      }
      put(
        'look',
        html`Updated ${clockTime(nowMs, nowMs)}: ${formatCount(cost.requests, 'request')},
        ${bytes(cost.bytes)}`,
      );
      return { parts, words: '', nowMs };
    },
  };
};

const versionOf = ({ served }: OverviewNow, nowMs: number): Markup =>
  html`${served && html`version ${served.version}, ${when(served.publishedAt * 1000, nowMs)}`}`;

const unpublished = notice(
  'warning',
  html`Nothing is published yet, so the relay serves no calls. Add a channel and its prices; valid rows are
  published within seconds.`,
);

const figuresOf = (view: OverviewNow): Markup =>
  html`${!view.served && unpublished} ${warnings(view.problems)} ${tilesOf(view)}
  ${
    (view.total.counts.calls ?? 0) === 0
      ? emptyBox(
          'No calls in this period',
          'Choose a longer period, or make a call. Figures appear within seconds of its end.',
        )
      : plotsOf(view.points)
  }`;

function tilesOf({ total, channels, findings, underWay }: OverviewNow): Markup {
  const { counts, amounts } = total;
  const calls = counts.calls ?? 0;
  const failures = counts.failures ?? 0;
  const resting = channels.filter(({ rests }) => rests.some(({ kind }) => kind !== 'failures')).length;
  const on = channels.filter(({ state }) => state === 'on').length;
  const problems = findings.filter(({ problem }) => problem !== undefined).length;
  const tokens = (counts.prompt_tokens ?? 0) + (counts.completion_tokens ?? 0);
  const { looked = 0, accounts = 0 } = underWay ?? {};
  return tiles([
    {
      name: 'In flight',
      value: underWay ? formatInteger(underWay.calls) : '–',
      note: !underWay
        ? 'shown while live'
        : looked < accounts
          ? `at ${looked} of ${formatCount(accounts, 'customer')}`
          : html`${yuan(underWay.held)} reserved`,
    },
    { name: 'Calls', value: formatInteger(calls), note: `${short(tokens)} tokens` },
    {
      name: 'Failed',
      value: formatInteger(failures),
      note: percent(failures, calls),
      mark: failures / Math.max(1, calls) > 0.05 && 'bad',
    },
    {
      name: 'First content',
      value: withinWords(findFirstContentShare(total, 0.95)),
      note: 'p95',
    },
    { name: 'Charged', value: yuan(amounts.charged ?? 0n), note: marginText(total) },
    {
      name: 'Channels',
      value: `${on - resting} of ${on}`,
      note: resting > 0 ? `${resting} cooling down` : 'ready',
      mark: resting > 0 ? 'warning' : on > 0 ? 'good' : 'bad',
    },
    {
      name: 'Configuration warnings',
      value: findings.length,
      note: problems > 0 ? formatCount(problems, 'invalid row') : 'all rows valid',
      mark: findings.length > 0 && (problems > 0 ? 'bad' : 'warning'),
    },
  ]);
}

function plotsOf(all: readonly TrafficPoint[]): Markup {
  const points = all.map(({ startMs }) => minuteText(startMs));
  const within = (share: number) => all.map(({ figures }) => findFirstContentShare(figures, share) ?? null);
  return html`<div class="columns three">
    ${callsPlot(all, points, 'per interval')} ${chargedPlot(all, points, '¥')}
    ${plot({
      title: 'Time to first content',
      unit: 'ms, upper bound',
      points,
      series: [
        { name: 'p50', values: within(0.5), tone: 'first', isLine: true },
        { name: 'p95', values: within(0.95), tone: 'second', isLine: true },
      ],
    })}
  </div>`;
}

const channelTable = (
  { channels, span: time }: OverviewNow,
  { nowMs }: Visit,
  history: ChannelHistory,
): Markup =>
  table(channels, {
    caption: 'Channels and their state',
    isPlain: true,
    markOf: ({ state, rests }) => (state === 'bad' ? 'bad' : rests.length > 0 ? 'warning' : undefined),
    empty: emptyState(
      'No channels yet',
      html`A channel connects an upstream that serves models. <a href="channels">Create the first one</a>.`,
    ),
    columns: [
      head('Channel', ({ id }) => html`<a href="${channelPath(id)}">${id}</a>`),
      column('State', (channel) => stateOf(channel, nowMs)),
      column('Health while live', ({ id }) => strip(history.of(id, time), time)),
      number('Priority', ({ priority }) => priority ?? '–'),
      number('Models', ({ models }) => models?.length ?? '–'),
    ],
  });

const tones = { ok: 'good', failing: 'bad', cooldown: 'warning', off: 'calm' } as const;

/** Draws one cell per step and merges equal neighbours. */
function strip(cells: readonly (ChannelCondition | undefined)[], { fromMs, stepMs }: TimeSpan): Markup {
  const starts = cells.flatMap((cell, at) => (at === 0 || cell !== cells[at - 1] ? [at] : []));
  return html`<svg
    class="strip"
    viewBox="0 0 ${cells.length} 1"
    preserveAspectRatio="none"
    role="img"
    aria-label="Health over time"
  >
    ${starts.map((at, index) => {
      const cell = cells[at];
      if (cell === undefined) return nothing;
      const end = starts[index + 1] ?? cells.length;
      const from = minuteText(fromMs + at * stepMs);
      return html`<g data-utc="${from}">
        <title>${from}, ${span(end * stepMs - at * stepMs)}: ${cell}</title>
        <rect class="${tones[cell]}" x="${at}" width="${end - at}" height="1" />
      </g>`;
    })}
  </svg>`;
}

const findingsMax = 15;

const shownFindings = ({ findings }: Pick<OverviewNow, 'findings'>): Markup =>
  html`${findingTable(findings.slice(0, findingsMax))}
  ${findings.length > findingsMax && html`<p><a href="audit">All ${findings.length} warnings</a></p>`}`;

export const findingTable = (findings: OverviewNow['findings']): Markup =>
  table(findings, {
    caption: 'Rows with an error or a warning',
    markOf: ({ problem }) => (problem === undefined ? 'warning' : 'bad'),
    empty: emptyState(
      'All configuration rows are valid',
      'To check keys, customers and grants too, run npx --no relay-ops check.',
    ),
    columns: [
      head('Row', ({ table: name, key }) =>
        name === 'channels' || name === 'charges'
          ? html`<a href="${name}/${encodeURIComponent(key)}">${name} ${key}</a>`
          : html`${name} ${key}`,
      ),
      column('Type', ({ problem }) => (problem === undefined ? 'warning' : 'error')),
      column('Message', ({ problem, warning }) => wide(problem ?? warning)),
    ],
  });

const modelColumns = [
  head('Model', ({ name }: Summed) => name),
  ...figureColumns<Summed>((row) => row.figures, 'calls', 'failed', 'firstContent', 'charged'),
];
const modelsMax = 10;

function modelTable(models: readonly Summed[], isWhole: boolean): Markup {
  const byCalls = models.toSorted((a, b) => (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0));
  return html`${table(isWhole ? models : byCalls.slice(0, modelsMax), {
    caption: 'Models today',
    isPlain: !isWhole,
    empty: emptyState('No calls today', 'Today’s sums appear here when the first call ends.'),
    columns: modelColumns,
  })}
  ${
    isWhole || models.length <= modelsMax
      ? nothing
      : html`<p>
          The ${modelsMax} most called models. <a href="./?models=all">All ${models.length} models</a>
        </p>`
  }`;
}

const monthUnread = emptyBox(
  'Loads while this page is live',
  html`Or see the <a href="customers?order=spent">top spenders</a>.`,
);

function monthOf({ month, count, total, customers, problems }: OverviewMonth): Markup {
  const { charged = 0n, granted = 0n } = total.amounts;
  return html`${warnings(problems)}
    ${table(customers, {
      caption: 'Customers by spend this month',
      isPlain: true,
      empty: emptyState('No calls this month', 'Create a customer and a key, then make a call.'),
      columns: [
        head('Customer', ({ name }) => customerLink(name)),
        ...figureColumns<Summed>((row) => row.figures, 'calls', 'failed', 'charged'),
      ],
    })}
    <p class="soft">
      ${month} (UTC): ${yuan(granted)} granted, ${yuan(charged)} charged to
      <a href="customers?order=spent">${formatCount(count, 'customer')}</a>.
    </p>`;
}

function refusedTable({ found, bytes: hourly, problem }: Refused): Markup {
  if (!found)
    return emptyBox(
      'Not counted',
      problem ??
        html`Only the log has refused calls. Counting them every five minutes reads ${formatLogCost(hourly)}
          per hour. <a href="./?refused=yes">Count refused calls</a>`,
    );
  return table(found.codes, {
    caption: 'Refused calls in the last hour by code',
    isPlain: true,
    empty: emptyState(
      'No refused calls',
      html`Failed calls are in <a href="requests?status=failed">requests</a>.`,
    ),
    columns: [
      head('Code', ({ code }) => html`<a href="requests?status=refused">${code}</a>`),
      number('Calls', ({ calls }) => formatInteger(calls)),
    ],
  });
}
