/** Channels: in the order in which they are tried, with what they did and when, and what is known against them now. */
import {
  viewChannels,
  type ChannelsView,
  type ChannelWithSums,
  isFailing,
} from '../../../../shared/operate/channels/list-channels.ts';
import { figureColumns, badge, table, facts } from '../layout/table.ts';
import { type Page, command, emptyState, warnings, notice } from '../layout/frame.ts';
import { html, nothing, type Markup, shownValue } from '../layout/markup.ts';
import type { Routes, Visit } from '../visit/visit.ts';
import { lastCallWords, lastFailureWords, restWords } from './channel-words.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { addFigures, noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { written } from '../layout/figures.ts';
import { actionButton } from '../layout/form.ts';
import { channelPath, channelRow } from './channel-forms.ts';

export function channelPages(routes: Routes): void {
  routes.page('/channels', list);
}

async function list(visit: Visit): Promise<Page> {
  const view = await viewChannels(visit.ports);
  const { days, knownFrom, problems } = view;
  return {
    title: 'Channels',
    section: 'channels',
    actions: visit.options.readOnly
      ? nothing
      : html`<a class="button main" href="channels-new">New channel</a>`,
    body: html`${warnings(problems)}
      <p class="lead">
        In the order in which calls try them: the highest priority first, then shares by weight. Figures are
        of ${days.from} to today,
        UTC${knownFrom === undefined ? nothing : `; last calls and failures are known since ${knownFrom}`}.
      </p>
      ${channelTable(view, visit)}`,
  };
}

const figures = figureColumns<ChannelWithSums>(({ sum }) => sum);

const channelTable = ({ channels, knownFrom }: ChannelsView, { nowMs }: Visit): Markup =>
  table({
    caption: 'Channels',
    rows: channels,
    markOf: ({ state, warning }) => (state === 'bad' ? 'bad' : warning === undefined ? undefined : 'warning'),
    empty: html`${emptyState('No channel yet', 'A channel is an upstream that serves models.')}
    ${command('relay-ops channel add --help')}`,
    columns: [
      {
        title: 'Channel',
        isHead: true,
        show: ({ id }) => html`<a href="channels/${encodeURIComponent(id)}">${id}</a>`,
      },
      { title: 'State', show: (channel) => stateOf(channel, nowMs) },
      { title: 'Priority', isNumber: true, show: ({ priority }) => priority ?? '–' },
      { title: 'Weight', isNumber: true, show: ({ weight }) => weight ?? '–' },
      { title: 'Models', isNumber: true, show: ({ models }) => models?.length ?? '–' },
      {
        title: 'Last call',
        show: (channel) => lastCallWords(channel, { nowMs, knownFrom }),
        sortBy: ({ activity }) => activity.lastCall ?? '',
      },
      {
        title: 'Last failure',
        show: ({ activity }) => lastFailureWords(activity, nowMs),
        sortBy: ({ activity }) => activity.lastFailure ?? '',
      },
      figures.calls,
      figures.failed,
      figures.firstContent,
      figures.charged,
      figures.margin,
      {
        title: 'Mark',
        has: ({ problem, warning }) => (problem ?? warning) !== undefined,
        show: ({ problem, warning }) =>
          problem === undefined && warning === undefined
            ? ''
            : html`<span class="cut" title="${problem ?? warning}">${problem ?? warning}</span>`,
      },
    ],
  });

export function stateOf(
  { state, rests, activity }: Pick<ChannelWithSums, 'state' | 'rests' | 'activity'>,
  nowMs: number,
): Markup {
  if (state === 'bad') return badge('not used', 'bad');
  if (state === 'off') return badge('off');
  const [first] = rests;
  if (isFailing({ state }, activity))
    return html`${badge('failing', 'bad')} ${first ? badge(restWords(first, nowMs), 'warning') : nothing}`;
  return first ? badge(restWords(first, nowMs), 'warning') : badge('ready', 'good');
}

// One channel: what it is, what is known against it now, and what its models did.

export function channelPage(routes: Routes): void {
  routes.page('/channels/:id', one);
}

async function one(visit: Visit): Promise<Page> {
  const id = visit.part('id');
  const view = await viewChannels(visit.ports);
  const channel = view.channels.find((each) => each.id === id);
  if (!channel) throw usageFailure(`there is no channel ${id}`);
  const row = (await channelRow(visit, id)) ?? {};
  const path = channelPath(id);
  const token = visit.identity.formToken;
  return {
    title: id,
    section: 'channels',
    above: [['channels', 'Channels']],
    actions: visit.options.readOnly
      ? nothing
      : html`<a class="button main" href="${path}/edit">Edit</a>${
            channel.state === 'bad'
              ? actionButton(`${path}/switch`, token, 'Switch off')
              : html`${actionButton(`${path}/test`, token, 'Test')}${actionButton(`${path}/probe`, token, 'Probe')}${actionButton(`${path}/switch`, token, channel.state === 'on' ? 'Switch off' : 'Switch on')}`
          }`,
    body: html`${channel.problem === undefined ? nothing : notice('bad', html`<strong>_problem</strong> ${channel.problem}`)}
      ${channel.warning === undefined ? nothing : notice('warning', html`<strong>_warning</strong> ${channel.warning}`)}
      ${factsOf(channel, row, { ...visit, knownFrom: view.knownFrom })}
      ${
        channel.rests.length === 0
          ? nothing
          : html`<h2>Known against it now</h2>
              <ul>
                ${channel.rests.map((each) => html`<li>${restWords(each, visit.nowMs)}</li>`)}
              </ul>`
      }
      <h2>Models <span class="soft">${view.days.from} to today, UTC</span></h2>
      ${modelTable(
        channel,
        view.served.filter((each) => each.channel === id),
      )}`,
  };
}

interface Now {
  nowMs: number;
  knownFrom: string | undefined;
}

function factsOf(channel: ChannelWithSums, row: RawRow, now: Now): Markup {
  const { nowMs } = now;
  const { priority, weight, endpoint, secret } = channel;
  const isBad = channel.state === 'bad';
  const { _can: can } = row;
  const last = written(row, nowMs);
  return facts([
    ['State', stateOf(channel, nowMs)],
    ['Last call', lastCallWords(channel, now)],
    ['Last failure', lastFailureWords(channel.activity, nowMs)],
    ['Priority', priority ?? '–'],
    ['Weight', weight ?? '–'],
    [
      'Endpoint',
      endpoint === undefined ? 'not shown while the row has a problem' : html`<code>${endpoint}</code>`,
    ],
    [
      'Secret',
      isBad ? 'not shown' : secret?.length === 0 ? 'none is sent' : html`<code>${secret?.join(', ')}</code>`,
    ],
    ...(can === undefined || isBad ? [] : [['Probe found', html`<code>${shownValue(can)}</code>`] as const]),
    ...(last === undefined ? [] : [['Last written', last] as const]),
  ]);
}

interface ModelOfChannel {
  model: string;
  isServed: boolean;
  sum: DailyFigures;
}

const channelFigures = figureColumns<ModelOfChannel>(({ sum }) => sum);

function modelTable({ models = [] }: ChannelWithSums, served: readonly ServedDay[]): Markup {
  const byModel = Map.groupBy(served, ({ model }) => model);
  const names = [...new Set([...byModel.keys(), ...models])];
  const rows = names.map((model) => ({
    model,
    isServed: models.includes(model),
    sum: (byModel.get(model) ?? []).reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
  }));
  return table({
    caption: 'Models of the channel',
    rows: rows.toSorted((a, b) => (b.sum.counts.calls ?? 0) - (a.sum.counts.calls ?? 0)),
    empty: emptyState('No model', 'A channel without models serves nothing: edit it.'),
    columns: [
      {
        title: 'Model',
        isHead: true,
        show: ({ model, isServed }) => html`${model} ${isServed ? nothing : badge('no longer served')}`,
      },
      channelFigures.calls,
      channelFigures.failed,
      channelFigures.firstContent,
      channelFigures.charged,
      channelFigures.margin,
    ],
  });
}
