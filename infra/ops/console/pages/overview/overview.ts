/** The first page: calls, spend, failures and time to first content by minute, and what needs a look. */
import { firstContentWithin } from '../../../../../shared/operate/overview/first-content-time.ts';
import { viewOverview, type OverviewView } from '../../../../../shared/operate/overview/overview-view.ts';
import { grouped, milliseconds, percent, short, yuan } from '../../layout/figures.ts';
import { when } from '../../layout/times.ts';
import { marginText } from '../../layout/margin.ts';
import type { Page } from '../../layout/frame.ts';
import { html, nothing, type Markup } from '../../layout/markup.ts';
import { emptyState, notice, warnings } from '../../layout/notice.ts';
import { tiles } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { channelTable, findingTable, modelTable } from './overview-tables.ts';
import { plotsOf } from './overview-plots.ts';

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
