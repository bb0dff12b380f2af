/** The first page: calls, spend, failures and time to first content by minute, and what needs a look. */
import { firstContentWithin } from '../../../../shared/operate/report.ts';
import {
  viewOverview,
  type OverviewView,
  type TrafficPoint,
  type ModelSum,
} from '../../../../shared/operate/overview.ts';
import { grouped, milliseconds, percent, short, yuan, when, marginText } from '../layout/figures.ts';
import { type Page, emptyState, notice, warnings } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import { tiles, figureColumns, badge, table } from '../layout/table.ts';
import type { Routes, Visit } from '../visit/visit.ts';
import { yuanNumber } from '../../../../shared/billing/amount.ts';
import { plot } from '../layout/plot.ts';
import { restWords } from './channel-words.ts';

const spans = [1, 6, 24] as const;

export function overviewPages(routes: Routes): void {
  routes.page('/', overview);
}

async function overview(visit: Visit): Promise<Page> {
  const hours = spans.find((each) => String(each) === visit.query('hours')) ?? 1;
  const view = await viewOverview(visit.ports, { hours });
  const { total } = view;
  const calls = total.counts.calls ?? 0;
  return {
    title: 'Overview',
    section: '',
    actions: html`<span class="soft"
      >${view.served ? html`version ${view.served.version}, ${when(view.served.publishedAt * 1000, visit.nowMs)}` : nothing}</span
    >`,
    body: html`${view.served ? nothing : unpublished} ${warnings(view.problems)}
      <nav class="tabs" aria-label="Time">
        ${spans.map(
          (each) =>
            html`<a href="./?hours=${each}" ${each === hours ? html`aria-current="page"` : nothing}
              >Last ${each === 1 ? 'hour' : `${each} hours`}</a
            >`,
        )}
      </nav>
      ${tilesOf(view)}
      ${
        calls === 0
          ? html`<div class="empty">
              ${emptyState('No call ended in this time', 'Choose a longer time, or make a call: figures appear here some seconds after it ended.')}
            </div>`
          : plotsOf(view.points)
      }
      <div class="columns">
        <section>
          <h2>Channels now</h2>
          ${channelTable(view, visit)}
        </section>
        <section>
          <h2>To look at</h2>
          ${findingTable(view)}
        </section>
      </div>
      <h2>Models today <span class="soft">since midnight UTC</span></h2>
      ${modelTable(view.today, visit.query('models') === 'all')}`,
  };
}

const unpublished = notice(
  'warning',
  html`Nothing is published, so no call is served. Add a channel and its prices: the first valid rows are
  published within seconds.`,
);

function tilesOf({ total, channels, findings }: OverviewView): Markup {
  const { counts, amounts } = total;
  const calls = counts.calls ?? 0;
  const failures = counts.failures ?? 0;
  const within = firstContentWithin(total, 0.95);
  const resting = channels.filter(({ rests }) => rests.some(({ kind }) => kind !== 'failures')).length;
  const on = channels.filter(({ state }) => state === 'on').length;
  const problems = findings.filter(({ problem }) => problem !== undefined).length;
  return tiles([
    {
      name: 'Calls',
      value: grouped(calls),
      note: `${short((counts.prompt_tokens ?? 0) + (counts.completion_tokens ?? 0))} tokens`,
    },
    { name: 'Charged', value: yuan(amounts.charged ?? 0n), note: marginText(total) },
    {
      name: 'Failed',
      value: grouped(failures),
      note: percent(failures, calls),
      ...(calls > 0 && failures / calls > 0.05 && { mark: 'bad' as const }),
    },
    {
      name: 'First content, 95 %',
      value: within === undefined ? '–' : html`≤ ${milliseconds(within)}`,
      note: 'of calls that had some',
    },
    {
      name: 'Channels',
      value: `${on - resting} of ${on}`,
      note: resting > 0 ? `${resting} rest` : 'ready',
      mark: resting > 0 ? 'warning' : on > 0 ? 'good' : 'bad',
    },
    {
      name: 'Rows with marks',
      value: findings.length,
      note: problems > 0 ? `${problems} not used` : 'all used',
      ...(findings.length > 0 && { mark: problems > 0 ? ('bad' as const) : ('warning' as const) }),
    },
  ]);
}

// Plots of the overview: calls, spend, time to first content.

function plotsOf(points: readonly TrafficPoint[]): Markup {
  const times = points.map(({ startMs }) => startMs / 1000);
  const counts = (name: 'calls' | 'failures'): number[] =>
    points.map(({ figures }) => figures.counts[name] ?? 0);
  const within = (share: number): (number | null)[] =>
    points.map(({ figures }) => firstContentWithin(figures, share) ?? null);
  const charged = points.map(({ figures }) => yuanNumber(figures.amounts.charged ?? 0n));
  return html`<div class="columns three">
    ${plot({
      id: 'calls',
      title: 'Calls',
      unit: 'ended in each step',
      times,
      series: [
        { label: 'calls', values: counts('calls'), kind: 'bars', tone: 'first' },
        { label: 'failed', values: counts('failures'), kind: 'bars', tone: 'bad' },
      ],
    })}
    ${plot({
      id: 'spend',
      title: 'Charged',
      unit: '¥',
      times,
      series: [{ label: 'charged', values: charged, kind: 'bars', tone: 'third' }],
    })}
    ${plot({
      id: 'first-content',
      title: 'Time to first content',
      unit: 'ms, upper bound',
      times,
      series: [
        { label: '50 % within', values: within(0.5), tone: 'first' },
        { label: '95 % within', values: within(0.95), tone: 'second' },
      ],
    })}
  </div>`;
}

// Tables of the overview: channels now, rows to look at, models of the day.

const channelTable = ({ channels }: OverviewView, { nowMs }: Visit): Markup =>
  table({
    caption: 'Channels and what is known against them now',
    rows: channels,
    markOf: ({ state, rests }) => (state === 'bad' ? 'bad' : rests.length > 0 ? 'warning' : undefined),
    empty: emptyState(
      'No channel yet',
      html`A channel is an upstream that serves models: <code>ops channel add</code>, or
        <code>ops init</code> for the first one.`,
    ),
    columns: [
      {
        title: 'Channel',
        isHead: true,
        show: ({ id }) => html`<a href="channels/${encodeURIComponent(id)}">${id}</a>`,
      },
      {
        title: 'Now',
        show: ({ state, rests }) =>
          state === 'bad'
            ? badge('not used', 'bad')
            : state === 'off'
              ? badge('off')
              : rests[0]
                ? badge(restWords(rests[0], nowMs), 'warning')
                : badge('ready', 'good'),
      },
      { title: 'Priority', isNumber: true, show: ({ priority }) => priority ?? '–' },
      { title: 'Models', isNumber: true, show: ({ models }) => models?.length ?? '–' },
    ],
  });

const findingTable = ({ findings }: OverviewView): Markup =>
  table({
    caption: 'Rows with a problem or a warning',
    rows: findings.slice(0, 30),
    markOf: ({ problem }) => (problem === undefined ? 'warning' : 'bad'),
    empty: emptyState('All rows are good', 'No row of the configuration has a problem or a warning.'),
    columns: [
      { title: 'Row', isHead: true, show: ({ table: name, key }) => rowLink(name, key) },
      {
        title: 'What',
        show: ({ problem, warning }) => html`<span class="wide">${problem ?? warning}</span>`,
      },
    ],
  });

const rowLink = (name: string, key: string): Markup =>
  name === 'channels' || name === 'charges'
    ? html`<a href="${name}/${encodeURIComponent(key)}">${name} ${key}</a>`
    : html`${name} ${key}`;

const figures = figureColumns<ModelSum>((row) => row.figures);

/** Those that were called most, unless all are asked for. */
const modelTable = (models: readonly ModelSum[], isWhole: boolean): Markup =>
  html`${table({
    caption: 'Models of today',
    rows: isWhole ? models : mostCalled(models),
    empty: emptyState('No call yet today', 'Sums of the day appear here with the first call that ends.'),
    columns: [
      { title: 'Model', isHead: true, show: ({ model }) => model },
      figures.calls,
      figures.failed,
      figures.input,
      figures.output,
      figures.firstContent,
      figures.charged,
      figures.margin,
    ],
  })}
  ${
    isWhole || models.length <= modelsMax
      ? nothing
      : html`<p>
          The ${modelsMax} that were called most. <a href="./?models=all">All ${models.length} models</a>
        </p>`
  }`;

const modelsMax = 25;

const mostCalled = (models: readonly ModelSum[]): ModelSum[] =>
  models
    .toSorted((a, b) => (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0))
    .slice(0, modelsMax);
