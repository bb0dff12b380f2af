/** Tables of the overview: channels now, rows to look at, models of the day. */
import type { ModelSum, OverviewView } from '../../../../../shared/operate/overview/overview-view.ts';
import { figureColumns } from '../../layout/figure-columns.ts';
import { html, nothing, type Markup } from '../../layout/markup.ts';
import { emptyState } from '../../layout/notice.ts';
import { badge, table } from '../../layout/table.ts';
import type { Visit } from '../../visit/visit.ts';
import { restWords } from '../channels/channel-words.ts';

export const channelTable = ({ channels }: OverviewView, { nowMs }: Visit): Markup =>
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

export const findingTable = ({ findings }: OverviewView): Markup =>
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
export const modelTable = (models: readonly ModelSum[], isWhole: boolean): Markup =>
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
