/** Channels: in the order in which they are tried, with what they did and when, and what is known against them now. */
import {
  viewChannels,
  type ChannelsView,
  type ChannelWithSums,
} from '../../../../../shared/operate/channels/channel-sums.ts';
import { isFailing } from '../../../../../shared/operate/channels/channel-activity.ts';
import { figureColumns } from '../../layout/figure-columns.ts';
import type { Page } from '../../layout/frame.ts';
import { html, nothing, type Markup } from '../../layout/markup.ts';
import { command, emptyState, warnings } from '../../layout/notice.ts';
import { badge, table } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { lastCallWords, lastFailureWords, restWords } from './channel-words.ts';

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
