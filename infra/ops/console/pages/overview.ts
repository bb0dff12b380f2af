/** The first page: calls, spend, failures and time to first content by minute, and what needs a look. */
import { firstContentWithin } from '../../../../shared/operate/report.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import { viewOverview, type OverviewView, type TrafficPoint } from '../../../../shared/operate/overview.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { grouped, marginText, minuteText, percent, short, when, yuan } from '../layout/figures.ts';
import { emptyBox, emptyState, notice, warnings, type Page } from '../layout/frame.ts';
import { callsPlot, chargedPlot, plotWithFigures } from '../layout/plot.ts';
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
import type { Routes, Visit } from '../visit/visit.ts';
import { channelPath, stateOf } from './channels.ts';

const spans = [1, 6, 24] as const;

export function overviewPages(routes: Routes): void {
  routes.page('/', overview);
}

async function overview(visit: Visit): Promise<Page> {
  const hours = spans.find((each) => String(each) === visit.query('hours')) ?? 1;
  const view = await viewOverview(visit.ports, { hours });
  const { served, total } = view;
  return {
    title: 'Overview',
    actions: html`<span class="soft"
      >${served && html`version ${served.version}, ${when(served.publishedAt * 1000, visit.nowMs)}`}</span
    >`,
    body: html`${!served && unpublished} ${warnings(view.problems)}
      ${tabs(
        'Time',
        spans.map((each) => [`./?hours=${each}`, `Last ${each === 1 ? 'hour' : `${each} hours`}`]),
        `./?hours=${hours}`,
      )}
      ${tilesOf(view)}
      ${
        (total.counts.calls ?? 0) === 0
          ? emptyBox(
              'No call ended in this time',
              'Choose a longer time, or make a call: figures appear here some seconds after it ended.',
            )
          : plotsOf(view.points)
      }
      <div class="columns">
        <section>
          <h2>Channels now</h2>
          ${channelTable(view, visit)}
        </section>
        <section>
          <h2>To look at</h2>
          ${findingTable(view.findings.slice(0, 30))}
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
  const resting = channels.filter(({ rests }) => rests.some(({ kind }) => kind !== 'failures')).length;
  const on = channels.filter(({ state }) => state === 'on').length;
  const problems = findings.filter(({ problem }) => problem !== undefined).length;
  const tokens = (counts.prompt_tokens ?? 0) + (counts.completion_tokens ?? 0);
  return tiles([
    { name: 'Calls', value: grouped(calls), note: `${short(tokens)} tokens` },
    { name: 'Charged', value: yuan(amounts.charged ?? 0n), note: marginText(total) },
    {
      name: 'Failed',
      value: grouped(failures),
      note: percent(failures, calls),
      mark: failures / Math.max(1, calls) > 0.05 && 'bad',
    },
    {
      name: 'First content, 95 %',
      value: withinWords(firstContentWithin(total, 0.95)),
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
      mark: findings.length > 0 && (problems > 0 ? 'bad' : 'warning'),
    },
  ]);
}

function plotsOf(all: readonly TrafficPoint[]): Markup {
  const points = all.map(({ startMs }) => minuteText(startMs));
  const within = (share: number) => all.map(({ figures }) => firstContentWithin(figures, share) ?? null);
  return html`<div class="columns three">
    ${callsPlot(all, points, 'ended in each step')} ${chargedPlot(all, points, '¥')}
    ${plotWithFigures({
      title: 'Time to first content',
      unit: 'ms, upper bound',
      points,
      series: [
        { name: '50 % within', values: within(0.5), tone: 'first', isLine: true },
        { name: '95 % within', values: within(0.95), tone: 'second', isLine: true },
      ],
    })}
  </div>`;
}

const channelTable = ({ channels }: OverviewView, { nowMs }: Visit): Markup =>
  table(channels, {
    caption: 'Channels and what is known against them now',
    markOf: ({ state, rests }) => (state === 'bad' ? 'bad' : rests.length > 0 ? 'warning' : undefined),
    empty: emptyState(
      'No channel yet',
      html`A channel is an upstream that serves models: <code>ops channel new</code>, or
        <code>ops init</code> for the first one.`,
    ),
    columns: [
      head('Channel', ({ id }) => html`<a href="${channelPath(id)}">${id}</a>`),
      column('Now', (channel) => stateOf(channel, nowMs)),
      number('Priority', ({ priority }) => priority ?? '–'),
      number('Models', ({ models }) => models?.length ?? '–'),
    ],
  });

export const findingTable = (findings: OverviewView['findings']): Markup =>
  table(findings, {
    caption: 'Rows with a problem or a warning',
    markOf: ({ problem }) => (problem === undefined ? 'warning' : 'bad'),
    empty: emptyState(
      'All rows of the configuration are good',
      'Keys, accounts and grants: relay-ops check.',
    ),
    columns: [
      head('Row', ({ table: name, key }) =>
        name === 'channels' || name === 'charges'
          ? html`<a href="${name}/${encodeURIComponent(key)}">${name} ${key}</a>`
          : html`${name} ${key}`,
      ),
      column('Mark', ({ problem }) => (problem === undefined ? '_warning' : '_problem')),
      column('What', ({ problem, warning }) => wide(problem ?? warning)),
    ],
  });

const figures = figureColumns<Summed>(
  (row) => row.figures,
  'calls',
  'failed',
  'input',
  'output',
  'firstContent',
  'charged',
  'margin',
);
const modelsMax = 25;

/** Those that were called most, unless all are asked for. */
function modelTable(models: readonly Summed[], isWhole: boolean): Markup {
  const byCalls = models.toSorted((a, b) => (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0));
  return html`${table(isWhole ? models : byCalls.slice(0, modelsMax), {
    caption: 'Models of today',
    empty: emptyState('No call yet today', 'Sums of the day appear here with the first call that ends.'),
    columns: [head('Model', ({ name }) => name), ...figures],
  })}
  ${
    isWhole || models.length <= modelsMax
      ? nothing
      : html`<p>
          The ${modelsMax} that were called most. <a href="./?models=all">All ${models.length} models</a>
        </p>`
  }`;
}
