/** One channel: what it is, what is known against it now, and what its models did. */
import { viewChannels, type ChannelWithSums } from '../../../../../shared/operate/channels/channel-sums.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import type { RawRow } from '../../../../../shared/operate/row-tables.ts';
import type { ServedDay } from '../../../../../shared/operate/sum-reader.ts';
import {
  addFigures,
  noFigures,
  type DailyFigures,
} from '../../../../../shared/billing/daily/daily-figures.ts';
import { figureColumns } from '../../layout/figure-columns.ts';
import { written } from '../../layout/times.ts';
import { actionButton } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { html, nothing, shownValue, type Markup } from '../../layout/markup.ts';
import { emptyState, notice } from '../../layout/notice.ts';
import { badge, facts, table } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { channelPath, channelRow } from './channel-fields.ts';
import { stateOf } from './channels.ts';
import { lastCallWords, lastFailureWords, restWords } from './channel-words.ts';

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

const figures = figureColumns<ModelOfChannel>(({ sum }) => sum);

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
      figures.calls,
      figures.failed,
      figures.firstContent,
      figures.charged,
      figures.margin,
    ],
  });
}
