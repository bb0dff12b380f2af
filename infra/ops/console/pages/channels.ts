/** Lists channels in the order in which calls try them, with their traffic and cooldowns, and shows one channel. */
import { noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { describeMark, summarizeAttempts } from '../../../../shared/operate/channels/channel-health.ts';
import {
  viewChannels,
  type RestingPlace,
  type ChannelsView,
  type ChannelWithSums,
} from '../../../../shared/operate/channels/list-channels.ts';
import { formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import type { HealthHour, RawRow, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { readingsOf, sumBy, sumOfFigures } from '../../../../shared/operate/ledger/ledger.ts';
import { hashSecret } from '../../../../shared/billing/attempts.ts';
import { dayMs, hourMs, utcDay, utcHour } from '../../../../shared/wire/iso-time.ts';
import { html, formatCell, nothing, type Content, type Markup } from '../../markup.ts';
import { formatSpan, renderAge, renderLastChange } from '../layout/figures.ts';
import { renderActionButton } from '../layout/form.ts';
import { renderEmptyState, renderLead, renderNotice, renderWarnings, type Page } from '../layout/frame.ts';
import { renderFirstContentPlot, renderPlot, renderSparkline } from '../layout/plot.ts';
import {
  actions,
  renderBadge,
  renderBoth,
  column,
  renderDefinitions,
  pickFigureColumns,
  head,
  number,
  renderTable,
} from '../layout/table.ts';
import { renderSelectable } from './selection.ts';
import { hideFromReaders, type Routes, type Visit } from '../visit/visit.ts';

export function addChannelPages(routes: Routes): void {
  routes.page('/channels', renderChannels);
  routes.page('/channels/:id', renderChannel);
}

export const channelPathOf = (id: string): string => `channels/${encodeURIComponent(id)}`;

const cooldownKinds: Record<RestingPlace['kind'], string> = {
  rate_limit: 'rate limited',
  credentials: 'key rejected or unpaid',
  failing: 'failing',
  failures: 'recent failures',
};

function formatCooldown({ kind, atMs, model, failures }: RestingPlace, nowMs: number): string {
  const of = model === undefined ? '' : `${model}: `;
  if (kind === 'failures')
    return `${of}${formatCount(failures ?? 0, 'failure')}, ${formatSpan(nowMs - atMs)} ago`;
  return atMs > nowMs
    ? `${of}${cooldownKinds[kind]}, cooling down for ${formatSpan(atMs - nowMs)}`
    : `${of}${cooldownKinds[kind]}, due for a retry`;
}

/** Only the day of a last call is known. */
function renderDay(day: string, nowMs: number): Content {
  const days = Math.round((Date.parse(utcDay(nowMs)) - Date.parse(day)) / dayMs);
  const words = days === 0 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`;
  return html`<time datetime="${day}" title="${day}, UTC" data-sort="${day}">${words}</time>`;
}

interface PageTime {
  nowMs: number;
  knownFrom: string | undefined;
}

function renderLastCall(
  { state, lastCall, isIdle }: ChannelWithSums,
  { nowMs, knownFrom }: PageTime,
): Content {
  if (lastCall !== undefined) return renderDay(lastCall, nowMs);
  if (state !== 'on' || knownFrom === undefined) return '–';
  return isIdle
    ? renderBadge('idle', 'warning')
    : html`<span title="known since ${knownFrom}">no calls</span>`;
}

const renderLastFailure = ({ lastFailure }: ChannelWithSums, nowMs: number): Content =>
  lastFailure === undefined ? '–' : renderDay(lastFailure, nowMs);

export function renderState(
  channel: Pick<ChannelWithSums, 'state' | 'rests'> & Partial<ChannelWithSums>,
  nowMs: number,
): Markup {
  const isLow = channel.state === 'on' && channel.balance?.isLow === true;
  const isFailing = channel.isFailing || channel.rests[0]?.kind === 'failing';
  const marks = channel.marks?.filter(({ mark }) => mark !== 'failing' || !isFailing);
  return html`${renderHealthState(channel, nowMs)} ${isLow && renderBadge('upstream balance low', 'warning')}
  ${marks?.map((mark) => html`<span title="${describeMark(mark)}">${renderBadge(mark.mark, 'bad')}</span> `)}`;
}

function renderHealthState(
  { state, rests, isFailing }: Pick<ChannelWithSums, 'state' | 'rests'> & Partial<ChannelWithSums>,
  nowMs: number,
): Markup {
  if (state === 'bad') return renderBadge('invalid', 'bad');
  if (state === 'off') return renderBadge('disabled');
  const [first] = rests;
  if (isFailing)
    return html`${renderBadge('failing', 'bad')}
    ${first && renderBadge(formatCooldown(first, nowMs).replace(/^failing, /, ''), 'warning')}`;
  return first ? renderBadge(formatCooldown(first, nowMs), 'warning') : renderBadge('ready', 'good');
}

async function renderChannels(visit: Visit): Promise<Page> {
  const view = await viewChannels(visit.ports);
  const { days, knownFrom, problems } = view;
  return {
    title: 'Channels',
    actions: hideFromReaders(visit, html`<a class="button main" href="channels-new">New channel</a>`),
    body: html`${renderWarnings(problems)}
    ${renderLead(
      html`In the order in which calls try them: highest priority first, then by weight. Figures cover
      ${days.from} to today
      (UTC)${knownFrom !== undefined && `; last calls and failures are known since ${knownFrom}`}.`,
    )}
    ${renderChannelTable(view, visit)}`,
  };
}

const figures = pickFigureColumns<{ sum: DailyFigures }>(
  ({ sum }) => sum,
  'attempts',
  'failedAttempts',
  'firstContentMedian',
  'firstContent',
  'speed',
  'charged',
  'margin',
);

const ticked = { list: 'channels', keyOf: ({ id }: ChannelWithSums) => id } as const;

const renderChannelTable = ({ channels, knownFrom }: ChannelsView, visit: Visit): Content =>
  renderSelectable(visit, ticked, channels, {
    caption: 'Channels',
    markOf: ({ state, warning }) => (state === 'bad' ? 'bad' : warning === undefined ? undefined : 'warning'),
    empty: renderEmptyState('No channels yet', 'A channel connects an upstream that serves models.'),
    columns: [
      head('Channel', ({ id, trend }) =>
        renderBoth(
          html`<a href="${channelPathOf(id)}" data-copy>${id}</a>`,
          renderSparkline(trend, `Attempts of the last ${trend.length} days`),
        ),
      ),
      column('State', (channel) => renderBoth(renderState(channel, visit.nowMs), renderIssue(channel))),
      number('Priority, weight', ({ priority, weight }) => renderBoth(priority ?? '–', weight ?? '–'), {
        sortBy: ({ priority }) => priority ?? 0,
      }),
      number('Models', ({ models }) => models?.length ?? '–'),
      column(
        'Last call, failure',
        (channel) =>
          renderBoth(
            renderLastCall(channel, { nowMs: visit.nowMs, knownFrom }),
            renderLastFailure(channel, visit.nowMs),
          ),
        { sortBy: ({ lastCall }) => lastCall ?? '' },
      ),
      ...figures,
      ...(visit.options.readOnly
        ? []
        : [actions(({ id }: ChannelWithSums) => html`<a href="${channelPathOf(id)}/edit">Edit</a>`)]),
    ],
  });

const renderIssue = ({ id, problem, warning }: ChannelWithSums): Content =>
  (problem ?? warning) &&
  html`<a href="${channelPathOf(id)}" title="${problem ?? warning ?? ''}"
    >${problem === undefined ? renderBadge('warning', 'warning') : renderBadge('error', 'bad')}</a
  >`;

async function renderChannel(visit: Visit): Promise<Page> {
  const id = visit.parameter('id');
  const { channels, knownFrom, days, served } = await viewChannels(visit.ports);
  const channel = channels.find((each) => each.id === id);
  if (!channel) throw usageFailure(`there is no channel ${id}`);
  const [raw, read] = await Promise.all([
    visit.ports.tables.get('channels', id),
    visit.ports.ledger.hours(id, utcHour(visit.nowMs - dayMs), utcHour(visit.nowMs)),
  ]);
  const [row, hours] = [raw ?? {}, readingsOf(read)];
  const { problem, warning, rests } = channel;
  return {
    title: id,
    above: [],
    actions: html`${hideFromReaders(visit, renderActions(channel, visit))}<a
        class="button"
        href="${channelPathOf(id)}/invoice"
        >Reconcile invoice</a
      >`,
    body: html`${problem !== undefined && renderNotice('bad', html`<strong>Error:</strong> ${problem}`)}
      ${warning !== undefined && renderNotice('warning', html`<strong>Warning:</strong> ${warning}`)}
      ${factsOf(channel, row, { nowMs: visit.nowMs, knownFrom })}
      ${
        rests.length > 0 &&
        html`<h2>Current problems</h2>
          <ul>
            ${rests.map((each) => html`<li>${formatCooldown(each, visit.nowMs)}</li>`)}
          </ul>`
      }
      ${channel.marks.length > 0 && renderNotice('bad', html`<strong>Worse than last week:</strong> ${channel.marks.map(describeMark).join('; ')}`)}
      ${renderHours(hours.rows, visit.nowMs)} ${renderSecrets(hours.rows, channel)}
      <h2>Models <span class="soft">${days.from} to today, UTC</span></h2>
      ${renderModels(
        channel,
        served.filter((each) => each.channel === id),
      )}`,
  };
}

/** An invalid channel can only be edited or disabled. */
function renderActions({ id, state }: ChannelWithSums, { identity }: Visit): Markup {
  const path = channelPathOf(id);
  const renderButton = (action: string, words: string): Markup =>
    renderActionButton(`${path}/${action}`, identity.formToken, words);
  return html`<a class="button main" href="${path}/edit">Edit</a>${
      state !== 'bad' && html`${renderButton('test', 'Test')}${renderButton('probe', 'Probe')}`
    }${renderButton('switch', state === 'off' ? 'Enable' : 'Disable')}`;
}

function renderBalance({ balance }: ChannelWithSums, nowMs: number): Content {
  if (!balance) return 'not watched: set Alert below';
  const { text, atMs, isLow } = balance;
  return html`${text}, ${renderAge(atMs, nowMs)} ${isLow && renderBadge('low', 'warning')}`;
}

function factsOf(channel: ChannelWithSums, row: RawRow, now: PageTime): Markup {
  const { priority, weight, endpoint, secret } = channel;
  const isBad = channel.state === 'bad';
  const can = isBad ? undefined : row['_can'];
  const last = renderLastChange(row, now.nowMs);
  const secretWords = secret?.length === 0 ? 'none' : html`<code>${secret?.join(', ')}</code>`;
  const hidden = 'hidden while the row is invalid';
  return renderDefinitions('facts', [
    ['State', renderState(channel, now.nowMs)],
    ['Last call', renderLastCall(channel, now)],
    ['Last failure', renderLastFailure(channel, now.nowMs)],
    ['Priority', priority ?? '–'],
    ['Weight', weight ?? '–'],
    ['Endpoint', endpoint === undefined ? hidden : html`<code>${endpoint}</code>`],
    ['Secret', isBad ? hidden : secretWords],
    ['Upstream balance', renderBalance(channel, now.nowMs)],
    ...(can === undefined ? [] : [['Found by probe', html`<code>${formatCell(can)}</code>`] as const]),
    ...(last === undefined ? [] : [['Last changed', last] as const]),
  ]);
}

/** Plots the last 24 hours and the current one. Counts every attempt, even if another channel answered the call. */
function renderHours(hours: readonly HealthHour[], nowMs: number): Markup {
  if (hours.length === 0) return nothing;
  const byHour = new Map(sumBy(hours, ({ hour }) => hour).map(({ name, figures: sum }) => [name, sum]));
  const points = Array.from({ length: 25 }, (_, at) => utcHour(nowMs - (24 - at) * hourMs));
  const sums = points.map((hour) => ({ figures: byHour.get(hour) ?? noFigures }));
  const attempts = sums.map(({ figures: sum }) => summarizeAttempts(sum));
  const names = points.map((hour) => `${hour.replace('T', ' ')}:00`);
  return html`<div class="columns">
    ${renderPlot({
      title: 'Attempts',
      unit: 'per hour',
      points: names,
      series: [
        { name: 'attempts', tone: 'first', values: attempts.map((each) => each.attempts) },
        { name: 'failed', tone: 'bad', values: attempts.map(({ failed }) => failed) },
      ],
    })}
    ${renderFirstContentPlot(sums, names)}
  </div>`;
}

function renderSecrets(hours: readonly HealthHour[], { secret = [] }: ChannelWithSums): Markup {
  if (secret.length < 2) return nothing;
  const sums = new Map(sumBy(hours, (each) => each.secret).map(({ name, figures: sum }) => [name, sum]));
  const rows = secret.map((reference) => ({ reference, sum: sums.get(hashSecret(reference)) ?? noFigures }));
  return html`<h2>Secrets <span class="soft">last 24 hours</span></h2>
    ${renderTable(rows, {
      caption: 'Secrets of the channel',
      empty: nothing,
      columns: [head('Secret', ({ reference }) => html`<code>${reference}</code>`), ...figures],
    })}`;
}

function renderModels({ models = [] }: ChannelWithSums, served: readonly ServedDay[]): Markup {
  const byModel = Map.groupBy(served, ({ model }) => model);
  const rows = [...new Set([...byModel.keys(), ...models])].map((model) => ({
    model,
    isServed: models.includes(model),
    sum: sumOfFigures(byModel.get(model) ?? []),
  }));
  return renderTable(
    rows.toSorted((a, b) => (b.sum.counts.calls ?? 0) - (a.sum.counts.calls ?? 0)),
    {
      caption: 'Models of the channel',
      empty: renderEmptyState('No models', 'The channel serves nothing until you add models to it.'),
      columns: [
        head(
          'Model',
          ({ model, isServed }) => html`${model} ${!isServed && renderBadge('no longer served')}`,
        ),
        ...figures,
      ],
    },
  );
}
