/**
 * The first page, made to be left open: calls in flight, calls, charges, failures and time to first content by minute, health of
 * channels, configuration warnings, models, customers and refused calls. Rendered again while it is live.
 */
import { noFigures } from '../../../../shared/billing/daily-figures.ts';
import { summarizeAttempts } from '../../../../shared/operate/channels/channel-health.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import {
  viewOverview,
  watchOverview,
  type OverviewHours,
  type OverviewMonth,
  type OverviewNow,
  type OverviewToday,
  type TrafficPoint,
} from '../../../../shared/operate/overview.ts';
import { formatCount, formatInteger, Failure } from '../../../../shared/operate/plan.ts';
import {
  formatLogCost,
  estimateRefusedBytes,
  countRefusedCalls,
  refusedMs,
} from '../../../../shared/operate/requests/list-requests.ts';
import { shortenChannelId } from '../../../../shared/wire/ids.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import {
  formatBytes,
  renderClockTime,
  formatMargin,
  formatMinute,
  formatPercent,
  formatShort,
  renderAge,
  renderYuan,
} from '../layout/figures.ts';
import {
  renderEmptyBox,
  renderEmptyState,
  renderNotice,
  renderWarnings,
  type Page,
} from '../layout/frame.ts';
import { renderCallsPlot, renderChargesPlot, renderFirstContentPlot } from '../layout/plot.ts';
import {
  column,
  pickFigureColumns,
  head,
  number,
  renderTable,
  renderTabs,
  renderTiles,
  formatTime,
} from '../layout/table.ts';
import { renderLiveBar } from '../visit/live.ts';
import {
  renderCustomerLink,
  buildPath,
  type Routes,
  type Visit,
  type LiveFragment,
  type LiveView,
} from '../visit/visit.ts';
import { renderAttention } from './attention.ts';
import { channelPathOf, renderState } from './channels.ts';

const spans = [1, 6, 24] as const;

export function addOverviewPages(routes: Routes): void {
  routes.slowPage('/', readRefused, (visit, refused) => renderOverview(visit, refused));
  routes.live('/live', (visit) => watchPage(visit));
}

const readHours = ({ query }: Visit): OverviewHours =>
  spans.find((each) => String(each) === query('hours')) ?? 1;

const addressOf = ({ query }: Visit, hours: OverviewHours): string =>
  buildPath('./', { hours: String(hours), refused: query('refused') });

async function renderOverview(visit: Visit, refused: RefusedCounts): Promise<Page> {
  const hours = readHours(visit);
  const view = await viewOverview(visit.ports, hours);
  const { today } = view;
  if (visit.query('models') === 'all')
    return { title: 'Models today', above: [], body: renderModels(today.models, true) };
  return {
    title: 'Overview',
    actions: html`<span class="soft" id="overview-version">${renderVersion(view, visit.nowMs)}</span>`,
    body: html`${renderWarnings(today.problems)}
      ${renderTabs(
        'Time',
        spans.map((each) => [addressOf(visit, each), `Last ${each === 1 ? 'hour' : `${each} hours`}`]),
        addressOf(visit, hours),
      )}
      ${renderLiveBar(visit, {
        address: buildPath('live', {
          hours: String(hours),
          refused: visit.query('refused'),
          failing: String(countFailing(view, today)),
        }),
        isOn: visit.query('live') !== 'off',
        isPaid: isPaid(visit),
        words: html`<span id="overview-look"></span>`,
      })}
      <div id="overview-attention">${renderAttention(view, today)}</div>
      <div id="overview-now">${renderFigures(view, countFailing(view, today))}</div>
      <div class="columns">
        <section>
          <h2>Channels <span class="soft">since midnight UTC</span></h2>
          <div id="overview-channels">${renderChannels(view, today, visit.nowMs)}</div>
        </section>
        <section>
          <h2>Models today <span class="soft">since midnight UTC</span></h2>
          <div id="overview-models">${renderModels(today.models, false)}</div>
        </section>
        <section>
          <h2>Customers this month</h2>
          <div id="overview-month">${monthUnread}</div>
        </section>
        <section>
          <h2>Refused <span class="soft">in the last hour</span></h2>
          <div id="overview-refused">${renderRefusals(refused)}</div>
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

type RefusedCounts = Awaited<ReturnType<typeof readRefused>>;

const watchPage = (visit: Visit): LiveView => {
  const watch = watchOverview(visit.ports, readHours(visit));
  const isFree = visit.ports.target.local;
  let refusedAtMs = 0;
  let lastToday: OverviewToday | undefined;
  // Until the first sums of the day are read, the page keeps those that it was loaded with.
  let failing = Number(visit.query('failing')) || 0;
  return {
    everyMs: watch.everyMs,
    async look() {
      const { found, cost } = await visit.counted(() => watch.look());
      const { nowMs, now, month, today } = found;
      lastToday = today ?? lastToday;
      if (now && lastToday) failing = countFailing(now, lastToday);
      const fragments: LiveFragment[] = [];
      const put = (id: string, markup: Markup): void => void fragments.push({ id: `overview-${id}`, markup });
      if (now) {
        put('version', renderVersion(now, nowMs));
        put('now', renderFigures(now, failing));
      }
      if (now && lastToday) {
        put('attention', renderAttention(now, lastToday));
        put('channels', renderChannels(now, lastToday, nowMs));
      }
      if (today) put('models', renderModels(today.models, false));
      if (month) put('month', renderMonth(month));
      if (isFree || (isPaid(visit) && nowMs - refusedAtMs >= refusedMs)) {
        put('refused', renderRefusals(await readRefused(visit)));
        refusedAtMs = nowMs;
      }
      put(
        'look',
        html`Updated ${renderClockTime(nowMs, nowMs)}: ${formatCount(cost.requests, 'request')},
        ${formatBytes(cost.bytes)}`,
      );
      return { fragments, words: '', nowMs };
    },
  };
};

const renderVersion = ({ served }: OverviewNow, nowMs: number): Markup =>
  html`${served && html`version ${served.version}, ${renderAge(served.publishedAt * 1000, nowMs)}`}`;

const unpublished = renderNotice(
  'warning',
  html`Nothing is published yet, so the relay serves no calls. Add a channel and its prices; valid rows are
  published within seconds.`,
);

const renderFigures = (view: OverviewNow, failing: number): Markup =>
  html`${!view.served && unpublished} ${renderWarnings(view.problems)} ${renderSummary(view, failing)}
  ${
    (view.total.counts.calls ?? 0) === 0
      ? renderEmptyBox(
          'No calls in this period',
          'Choose a longer period, or make a call. Figures appear within seconds of its end.',
        )
      : renderPlots(view.points)
  }`;

const isResting = ({ rests }: OverviewNow['channels'][number]): boolean =>
  rests.some(({ kind }) => kind !== 'failures');

const isFailing = (
  { id, state }: OverviewNow['channels'][number],
  { failing }: Pick<OverviewToday, 'failing'>,
): boolean => state === 'on' && failing.some(({ channel }) => channel === shortenChannelId(id));

/** Counts channels that are not resting already. */
const countFailing = ({ channels }: OverviewNow, today: OverviewToday): number =>
  channels.filter((each) => isFailing(each, today) && !isResting(each)).length;

function renderSummary({ total, channels, underWay }: OverviewNow, failing: number): Markup {
  const { counts, amounts } = total;
  const calls = counts.calls ?? 0;
  const failures = counts.failures ?? 0;
  const resting = channels.filter(isResting).length;
  const unready = [failing > 0 && `${failing} failing`, resting > 0 && `${resting} cooling down`];
  const on = channels.filter(({ state }) => state === 'on').length;
  const tokens = (counts.prompt_tokens ?? 0) + (counts.completion_tokens ?? 0);
  const { looked = 0, accounts = 0 } = underWay ?? {};
  return renderTiles([
    {
      name: 'In flight',
      value: underWay ? formatInteger(underWay.calls) : '–',
      note: !underWay
        ? 'shown while live'
        : looked < accounts
          ? `at ${looked} of ${formatCount(accounts, 'customer')}`
          : html`${renderYuan(underWay.held)} reserved`,
    },
    { name: 'Calls', value: formatInteger(calls), note: `${formatShort(tokens)} tokens` },
    {
      name: 'Failed',
      value: formatInteger(failures),
      note: formatPercent(failures, calls),
      mark: failures / Math.max(1, calls) > 0.05 && 'bad',
    },
    {
      name: 'First content',
      value: formatTime(summarizeAttempts(total).p95Ms),
      note: 'p95',
    },
    { name: 'Charged', value: renderYuan(amounts.charged ?? 0n), note: formatMargin(total) },
    {
      name: 'Channels',
      value: `${on - resting - failing} of ${on}`,
      note: unready.filter(Boolean).join(', ') || 'ready',
      mark: failing > 0 ? 'bad' : resting > 0 ? 'warning' : on > 0 ? 'good' : 'bad',
    },
  ]);
}

function renderPlots(all: readonly TrafficPoint[]): Markup {
  const points = all.map(({ startMs }) => formatMinute(startMs));
  return html`<div class="columns three">
    ${renderCallsPlot(all, points, 'per interval')} ${renderChargesPlot(all, points, '¥')}
    ${renderFirstContentPlot(all, points)}
  </div>`;
}

/** Counts attempts since midnight, so that a channel that fails or is slow shows, even if others answered its calls. */
const renderChannels = ({ channels, marks }: OverviewNow, today: OverviewToday, nowMs: number): Markup => {
  const rows = channels.map((channel) => ({
    ...channel,
    marks: marks.filter((mark) => channel.state === 'on' && mark.channel === shortenChannelId(channel.id)),
    isFailing: isFailing(channel, today),
    sum: today.channels.find(({ name }) => name === shortenChannelId(channel.id))?.figures ?? noFigures,
  }));
  return renderTable(rows, {
    caption: 'Channels and their state',
    isPlain: true,
    markOf: ({ state, rests, balance }) =>
      state === 'bad' ? 'bad' : rests.length > 0 || balance?.isLow ? 'warning' : undefined,
    empty: renderEmptyState(
      'No channels yet',
      html`A channel connects an upstream that serves models. <a href="channels">Create the first one</a>.`,
    ),
    columns: [
      head('Channel', ({ id }) => html`<a href="${channelPathOf(id)}">${id}</a>`),
      column('State', (channel) => renderState(channel, nowMs)),
      ...pickFigureColumns<(typeof rows)[number]>(
        ({ sum }) => sum,
        'attempts',
        'failedAttempts',
        'firstContent',
      ),
    ],
  });
};

const modelColumns = [
  head('Model', ({ name }: Summed) => name),
  ...pickFigureColumns<Summed>((row) => row.figures, 'calls', 'failed', 'firstContent', 'charged'),
];
const modelsMax = 10;

function renderModels(models: readonly Summed[], isWhole: boolean): Markup {
  const byCalls = models.toSorted((a, b) => (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0));
  return html`${renderTable(isWhole ? models : byCalls.slice(0, modelsMax), {
    caption: 'Models today',
    isPlain: !isWhole,
    empty: renderEmptyState('No calls today', 'Today’s sums appear here when the first call ends.'),
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

const monthUnread = renderEmptyBox(
  'Loads while this page is live',
  html`Or see the <a href="customers?order=spent">top spenders</a>.`,
);

function renderMonth({ month, count, total, customers, problems }: OverviewMonth): Markup {
  const { charged = 0n, granted = 0n } = total.amounts;
  return html`${renderWarnings(problems)}
    ${renderTable(customers, {
      caption: 'Customers by spend this month',
      isPlain: true,
      empty: renderEmptyState('No calls this month', 'Create a customer and a key, then make a call.'),
      columns: [
        head('Customer', ({ name }) => renderCustomerLink(name)),
        ...pickFigureColumns<Summed>((row) => row.figures, 'calls', 'failed', 'charged'),
      ],
    })}
    <p class="soft">
      ${month} (UTC): ${renderYuan(granted)} granted, ${renderYuan(charged)} charged to
      <a href="customers?order=spent">${formatCount(count, 'customer')}</a>.
    </p>`;
}

function renderRefusals({ found, bytes: hourly, problem }: RefusedCounts): Markup {
  if (!found)
    return renderEmptyBox(
      'Not counted',
      problem ??
        html`Only the log has refused calls. Counting them every five minutes reads ${formatLogCost(hourly)}
          per hour. <a href="./?refused=yes">Count refused calls</a>`,
    );
  return renderTable(found.codes, {
    caption: 'Refused calls in the last hour by code',
    isPlain: true,
    empty: renderEmptyState(
      'No refused calls',
      html`Failed calls are in <a href="requests?status=failed">requests</a>.`,
    ),
    columns: [
      head('Code', ({ code }) => html`<a href="requests?status=refused">${code}</a>`),
      number('Calls', ({ calls }) => formatInteger(calls)),
    ],
  });
}
