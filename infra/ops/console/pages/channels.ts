/** Lists channels in the order in which calls try them, with their traffic and cooldowns, and shows one channel. */
import { addFigures, noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import {
  viewChannels,
  type RestingPlace,
  type ChannelsView,
  type ChannelWithSums,
} from '../../../../shared/operate/channels/list-channels.ts';
import { formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { utcDay, dayMs } from '../../../../shared/wire/iso-time.ts';
import { html, shownValue, type Content, type Markup } from '../../markup.ts';
import { span, written } from '../layout/figures.ts';
import { actionButton } from '../layout/form.ts';
import { emptyState, lead, notice, warnings, type Page } from '../layout/frame.ts';
import { badge, column, cut, definitions, figureColumns, head, number, table } from '../layout/table.ts';
import { unlessReading, type Routes, type Visit } from '../visit/visit.ts';

export function channelPages(routes: Routes): void {
  routes.page('/channels', list);
  routes.page('/channels/:id', one);
}

export const channelPath = (id: string): string => `channels/${encodeURIComponent(id)}`;

const restKinds: Record<RestingPlace['kind'], string> = {
  rate_limit: 'rate limited',
  credentials: 'key rejected or unpaid',
  failing: 'failing',
  failures: 'recent failures',
};

function restWords({ kind, atMs, model, failures }: RestingPlace, nowMs: number): string {
  const of = model === undefined ? '' : `${model}: `;
  if (kind === 'failures') return `${of}${formatCount(failures ?? 0, 'failure')}, ${span(nowMs - atMs)} ago`;
  return atMs > nowMs
    ? `${of}${restKinds[kind]}, cooling down for ${span(atMs - nowMs)}`
    : `${of}${restKinds[kind]}, due for a retry`;
}

/** Only the day of a last call is known. */
function dayWords(day: string, nowMs: number): Content {
  const days = Math.round((Date.parse(utcDay(nowMs)) - Date.parse(day)) / dayMs);
  const words = days === 0 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`;
  return html`<time datetime="${day}" title="${day}, UTC" data-sort="${day}">${words}</time>`;
}

interface Now {
  nowMs: number;
  knownFrom: string | undefined;
}

function lastCallWords({ state, lastCall, isIdle }: ChannelWithSums, { nowMs, knownFrom }: Now): Content {
  if (lastCall !== undefined) return dayWords(lastCall, nowMs);
  if (state !== 'on' || knownFrom === undefined) return '–';
  return isIdle ? badge(`idle since ${knownFrom}`, 'warning') : `no calls since ${knownFrom}`;
}

const lastFailureWords = ({ lastFailure }: ChannelWithSums, nowMs: number): Content =>
  lastFailure === undefined ? '–' : dayWords(lastFailure, nowMs);

export function stateOf(
  { state, rests, isFailing }: Pick<ChannelWithSums, 'state' | 'rests'> & Partial<ChannelWithSums>,
  nowMs: number,
): Markup {
  if (state === 'bad') return badge('invalid', 'bad');
  if (state === 'off') return badge('disabled');
  const [first] = rests;
  if (isFailing)
    return html`${badge('failing', 'bad')} ${first && badge(restWords(first, nowMs), 'warning')}`;
  return first ? badge(restWords(first, nowMs), 'warning') : badge('ready', 'good');
}

async function list(visit: Visit): Promise<Page> {
  const view = await viewChannels(visit.ports);
  const { days, knownFrom, problems } = view;
  return {
    title: 'Channels',
    actions: unlessReading(visit, html`<a class="button main" href="channels-new">New channel</a>`),
    body: html`${warnings(problems)}
    ${lead(
      html`In the order in which calls try them: highest priority first, then by weight. Figures cover
      ${days.from} to today
      (UTC)${knownFrom !== undefined && `; last calls and failures are known since ${knownFrom}`}.`,
    )}
    ${channelTable(view, visit)}`,
  };
}

const figures = figureColumns<{ sum: DailyFigures }>(
  ({ sum }) => sum,
  'calls',
  'failed',
  'firstContent',
  'charged',
  'margin',
);

const channelTable = ({ channels, knownFrom }: ChannelsView, { nowMs }: Visit): Markup =>
  table(channels, {
    caption: 'Channels',
    markOf: ({ state, warning }) => (state === 'bad' ? 'bad' : warning === undefined ? undefined : 'warning'),
    empty: emptyState('No channels yet', 'A channel connects an upstream that serves models.'),
    columns: [
      head('Channel', ({ id }) => html`<a href="${channelPath(id)}">${id}</a>`),
      column('State', (channel) => stateOf(channel, nowMs)),
      number('Priority', ({ priority }) => priority ?? '–'),
      number('Weight', ({ weight }) => weight ?? '–'),
      number('Models', ({ models }) => models?.length ?? '–'),
      column('Last call', (channel) => lastCallWords(channel, { nowMs, knownFrom }), {
        sortBy: ({ lastCall }) => lastCall ?? '',
      }),
      column('Last failure', (channel) => lastFailureWords(channel, nowMs), {
        sortBy: ({ lastFailure }) => lastFailure ?? '',
      }),
      ...figures,
      column('Issue', ({ problem, warning = '' }) => ((problem ?? warning) ? cut(problem ?? warning) : ''), {
        has: ({ problem, warning }) => (problem ?? warning) !== undefined,
      }),
    ],
  });

async function one(visit: Visit): Promise<Page> {
  const id = visit.part('id');
  const { channels, knownFrom, days, served } = await viewChannels(visit.ports);
  const channel = channels.find((each) => each.id === id);
  if (!channel) throw usageFailure(`there is no channel ${id}`);
  const row = (await visit.ports.tables.get('channels', id)) ?? {};
  const { problem, warning, rests } = channel;
  return {
    title: id,
    above: [],
    actions: html`${unlessReading(visit, actionsOf(channel, visit))}<a
        class="button"
        href="${channelPath(id)}/invoice"
        >Reconcile invoice</a
      >`,
    body: html`${problem !== undefined && notice('bad', html`<strong>Error:</strong> ${problem}`)}
      ${warning !== undefined && notice('warning', html`<strong>Warning:</strong> ${warning}`)}
      ${factsOf(channel, row, { nowMs: visit.nowMs, knownFrom })}
      ${
        rests.length > 0 &&
        html`<h2>Current problems</h2>
          <ul>
            ${rests.map((each) => html`<li>${restWords(each, visit.nowMs)}</li>`)}
          </ul>`
      }
      <h2>Models <span class="soft">${days.from} to today, UTC</span></h2>
      ${modelTable(
        channel,
        served.filter((each) => each.channel === id),
      )}`,
  };
}

/** An invalid channel can only be edited or disabled. */
function actionsOf({ id, state }: ChannelWithSums, { identity }: Visit): Markup {
  const path = channelPath(id);
  const button = (action: string, words: string): Markup =>
    actionButton(`${path}/${action}`, identity.formToken, words);
  return html`<a class="button main" href="${path}/edit">Edit</a>${
      state !== 'bad' && html`${button('test', 'Test')}${button('probe', 'Probe')}`
    }${button('switch', state === 'off' ? 'Enable' : 'Disable')}`;
}

function factsOf(channel: ChannelWithSums, row: RawRow, now: Now): Markup {
  const { priority, weight, endpoint, secret } = channel;
  const isBad = channel.state === 'bad';
  const can = isBad ? undefined : row['_can'];
  const last = written(row, now.nowMs);
  const secretWords = secret?.length === 0 ? 'none' : html`<code>${secret?.join(', ')}</code>`;
  const hidden = 'hidden while the row is invalid';
  return definitions('facts', [
    ['State', stateOf(channel, now.nowMs)],
    ['Last call', lastCallWords(channel, now)],
    ['Last failure', lastFailureWords(channel, now.nowMs)],
    ['Priority', priority ?? '–'],
    ['Weight', weight ?? '–'],
    ['Endpoint', endpoint === undefined ? hidden : html`<code>${endpoint}</code>`],
    ['Secret', isBad ? hidden : secretWords],
    ...(can === undefined ? [] : [['Found by probe', html`<code>${shownValue(can)}</code>`] as const]),
    ...(last === undefined ? [] : [['Last changed', last] as const]),
  ]);
}

function modelTable({ models = [] }: ChannelWithSums, served: readonly ServedDay[]): Markup {
  const byModel = Map.groupBy(served, ({ model }) => model);
  const rows = [...new Set([...byModel.keys(), ...models])].map((model) => ({
    model,
    isServed: models.includes(model),
    sum: (byModel.get(model) ?? []).reduce((sum, day) => addFigures(sum, day.figures), noFigures),
  }));
  return table(
    rows.toSorted((a, b) => (b.sum.counts.calls ?? 0) - (a.sum.counts.calls ?? 0)),
    {
      caption: 'Models of the channel',
      empty: emptyState('No models', 'The channel serves nothing until you add models to it.'),
      columns: [
        head('Model', ({ model, isServed }) => html`${model} ${!isServed && badge('no longer served')}`),
        ...figures,
      ],
    },
  );
}
