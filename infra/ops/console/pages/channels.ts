/** Channels: in the order in which they are tried, with what they did and what is known against them; one of them; and made, edited, tested, probed and switched. */
import { addFigures, noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import {
  viewChannels,
  type RestingPlace,
  type ChannelsView,
  type ChannelWithSums,
  listChannels,
  type ListedChannel,
} from '../../../../shared/operate/channels/list-channels.ts';
import { usageFailure, Failure } from '../../../../shared/operate/plan.ts';
import type { RawRow, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { utcDay } from '../../../../shared/wire/iso-time.ts';
import { html, shownValue, type Content, type Markup } from '../../markup.ts';
import { span, written, milliseconds } from '../layout/figures.ts';
import {
  actionButton,
  choiceField,
  marksElsewhere,
  marksIn,
  namesField,
  seenField,
  third,
  typedList,
  typedNewRow,
  typedWholeRow,
  wholeRowFields,
  withMarks,
  type Field,
  type RowField,
  type FieldMarks,
  type SentForm,
} from '../layout/form.ts';
import { command, emptyState, lead, notice, warnings, type Page } from '../layout/frame.ts';
import { badge, column, cut, facts, figureColumns, head, number, table } from '../layout/table.ts';
import { unlessReading, type Routes, type Visit, formPage, proposed, type Proposal } from '../visit/visit.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { rowProposal } from '../visit/row-proposal.ts';

export function channelPages(routes: Routes): void {
  routes.page('/channels', list);
  routes.page('/channels/:id', one);
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Switch'), propose: proposeSwitch });
}

export const channelPath = (id: string): string => `channels/${encodeURIComponent(id)}`;

async function channelRow({ ports }: Visit, id: string): Promise<RawRow | undefined> {
  const rows = await ports.tables.scan('channels');
  return rows.find((row) => row['id'] === id);
}

const restKinds: Record<RestingPlace['kind'], string> = {
  rate_limit: 'rate limit',
  credentials: 'key refused or unpaid',
  failing: 'fails',
  failures: 'failed lately',
};

function restWords({ kind, atMs, model, failures }: RestingPlace, nowMs: number): string {
  const of = model === undefined ? '' : `${model}: `;
  if (kind === 'failures')
    return `${of}${failures} ${failures === 1 ? 'failure' : 'failures'}, ${span(nowMs - atMs)} ago`;
  return atMs > nowMs
    ? `${of}${restKinds[kind]}, rests ${span(atMs - nowMs)}`
    : `${of}${restKinds[kind]}, to be probed`;
}

const dayMs = 86_400_000;

/** `yesterday`, with the day as its title. Days are what is known. */
function dayWords(day: string, nowMs: number): Content {
  const days = Math.round((Date.parse(utcDay(nowMs)) - Date.parse(day)) / dayMs);
  const words = days === 0 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`;
  return html`<time datetime="${day}" title="${day}, UTC" data-sort="${day}">${words}</time>`;
}

interface Now {
  nowMs: number;
  knownFrom: string | undefined;
}

/** When it was last called; of one that is on and was not, since when that is known. */
function lastCallWords({ state, lastCall, isIdle }: ChannelWithSums, { nowMs, knownFrom }: Now): Content {
  if (lastCall !== undefined) return dayWords(lastCall, nowMs);
  if (state !== 'on' || knownFrom === undefined) return '–';
  return isIdle ? badge(`idle since ${knownFrom}`, 'warning') : `none since ${knownFrom}`;
}

const lastFailureWords = ({ lastFailure }: ChannelWithSums, nowMs: number): Content =>
  lastFailure === undefined ? '–' : dayWords(lastFailure, nowMs);

export function stateOf(
  { state, rests, isFailing }: Pick<ChannelWithSums, 'state' | 'rests'> & Partial<ChannelWithSums>,
  nowMs: number,
): Markup {
  if (state === 'bad') return badge('not used', 'bad');
  if (state === 'off') return badge('off');
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
      html`In the order in which calls try them: the highest priority first, then shares by weight. Figures
      are of ${days.from} to today,
      UTC${knownFrom !== undefined && `; last calls and failures are known since ${knownFrom}`}.`,
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
    empty: html`${emptyState('No channel yet', 'A channel is an upstream that serves models.')}
    ${command('relay-ops channel add --help')}`,
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
      column('Mark', ({ problem, warning = '' }) => ((problem ?? warning) ? cut(problem ?? warning) : ''), {
        has: ({ problem, warning }) => (problem ?? warning) !== undefined,
      }),
    ],
  });

async function one(visit: Visit): Promise<Page> {
  const id = visit.part('id');
  const { channels, knownFrom, days, served } = await viewChannels(visit.ports);
  const channel = channels.find((each) => each.id === id);
  if (!channel) throw usageFailure(`there is no channel ${id}`);
  const row = (await channelRow(visit, id)) ?? {};
  const { problem, warning, rests } = channel;
  return {
    title: id,
    above: [],
    actions: unlessReading(visit, actionsOf(channel, visit)),
    body: html`${problem !== undefined && notice('bad', html`<strong>_problem</strong> ${problem}`)}
      ${warning !== undefined && notice('warning', html`<strong>_warning</strong> ${warning}`)}
      ${factsOf(channel, row, { nowMs: visit.nowMs, knownFrom })}
      ${
        rests.length > 0 &&
        html`<h2>Known against it now</h2>
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

/** One whose row has a problem can be stopped alone. */
function actionsOf({ id, state }: ChannelWithSums, { identity }: Visit): Markup {
  const path = channelPath(id);
  const button = (action: string, words: string): Markup =>
    actionButton(`${path}/${action}`, identity.formToken, words);
  return html`<a class="button main" href="${path}/edit">Edit</a>${
      state !== 'bad' && html`${button('test', 'Test')}${button('probe', 'Probe')}`
    }${button('switch', state === 'off' ? 'Switch on' : 'Switch off')}`;
}

function factsOf(channel: ChannelWithSums, row: RawRow, now: Now): Markup {
  const { priority, weight, endpoint, secret } = channel;
  const isBad = channel.state === 'bad';
  const can = isBad ? undefined : row['_can'];
  const last = written(row, now.nowMs);
  const secretWords = secret?.length === 0 ? 'none is sent' : html`<code>${secret?.join(', ')}</code>`;
  const hidden = 'not shown while the row has a problem';
  return facts([
    ['State', stateOf(channel, now.nowMs)],
    ['Last call', lastCallWords(channel, now)],
    ['Last failure', lastFailureWords(channel, now.nowMs)],
    ['Priority', priority ?? '–'],
    ['Weight', weight ?? '–'],
    ['Endpoint', endpoint === undefined ? hidden : html`<code>${endpoint}</code>`],
    ['Secret', isBad ? 'not shown' : secretWords],
    ...(can === undefined ? [] : [['Probe found', html`<code>${shownValue(can)}</code>`] as const]),
    ...(last === undefined ? [] : [['Last written', last] as const]),
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
      empty: emptyState('No model', 'A channel without models serves nothing: edit it.'),
      columns: [
        head('Model', ({ model, isServed }) => html`${model} ${!isServed && badge('no longer served')}`),
        ...figures,
      ],
    },
  );
}

const isReference = (text: string): boolean => /^(ssm|secretsmanager|env):/.test(text);

function typedSecrets(text: string): string | string[] | undefined {
  const secrets = typedList(text);
  if (secrets.some((each) => !isReference(each)))
    throw usageFailure(
      'secret: found no reference, wanted ssm:/relay/<stack>/<name> or secretsmanager:<stack>/<name>: store the key first',
    );
  return secrets.length > 1 ? secrets : secrets[0];
}

const shownNumber = (value: unknown): string =>
  typeof value === 'number' || (typeof value === 'string' && /^[\d.+-]{1,20}$/.test(value))
    ? String(value)
    : '';

const own: readonly RowField[] = [
  { name: 'name', label: 'Name', help: 'For people.' },
  { name: 'endpoint', label: 'Endpoint', help: 'The base address, mostly ending in /v1.' },
  {
    name: 'secret',
    label: 'Secret',
    help: html`A reference, never the key itself: <code>ssm:/relay/…/vendor</code>. Several apart by commas.`,
    typed: typedSecrets,
  },
  namesField('models', 'Models', 'Names that clients use, apart by commas or lines.'),
  third('priority', 'Priority', 'Higher is tried first. Empty: 0.', { input: 'numeric', shown: shownNumber }),
  third('weight', 'Weight', 'Share among channels of the same priority. Empty: 1.', { shown: shownNumber }),
  {
    ...choiceField('state', 'State', { on: 'on', off: 'off' }),
    width: 'third',
    shown: (value) => (value === true ? 'on' : 'off'),
    typed: (text) => text === 'on',
  },
];

/** Texts that a row with a problem may have in the place of a secret, or a secret in theirs. */
const hidden = new Set(['name', 'endpoint', 'secret', 'others']);

const othersHelp = html`JSON: <code>type</code>, <code>mapper</code>, <code>cost</code>, <code>params</code>,
  time limits.`;

/** Of a row with a problem, a text may be a secret in a wrong attribute: it is not shown, and stays if nothing is typed. */
function fieldsOf(row: RawRow, channel?: ListedChannel): Field[] {
  const fields = wholeRowFields(own, row, othersHelp);
  if (channel?.state !== 'bad') return withMarks(fields, marksOf(row, channel));
  const help = 'Not shown while the row has a problem. Empty: it stays as it is.';
  const isNoList = !Array.isArray(row['models']);
  const covered = fields.map((field): Field => {
    if (hidden.has(field.name)) return Object.assign({}, field, { value: '', help });
    return field.name === 'models' && isNoList ? Object.assign({}, field, { value: '' }) : field;
  });
  return withMarks(covered, marksOf(row, channel));
}

const marksOf = (row: RawRow, channel: ListedChannel | undefined): FieldMarks => ({
  ...marksIn(row),
  ...(channel?.problem !== undefined && { problem: channel.problem }),
  ...(channel?.warning !== undefined && { warning: channel.warning }),
});

/** A key that was typed in place of its reference is not shown again. */
function withoutSecret(tried: SentForm | undefined): SentForm | undefined {
  if (!tried) return undefined;
  const secret = typedList(tried.fields['secret'] ?? '').filter(isReference);
  return { ...tried, fields: { ...tried.fields, secret: secret.join(', ') } };
}

const editPage = formPage(async (visit, tried) => {
  const id = visit.part('id');
  const [row, channels] = await Promise.all([channelRow(visit, id), listChannels(visit.ports)]);
  if (!row) throw usageFailure(`there is no channel ${id}`);
  const channel = channels.find((each) => each.id === id);
  const fields = fieldsOf(row, channel);
  return {
    title: `Edit ${id}`,
    above: [[channelPath(id), id]],
    intro: warnings(marksElsewhere(marksOf(row, channel), fields)),
    fields: [...fields, seenField(rowMark(row))],
    verb: 'Check and go on',
    cancel: channelPath(id),
    tried: withoutSecret(tried),
  };
});

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = visit.part('id');
  const row = (await channelRow(visit, id)) ?? {};
  const isBad = (await listChannels(ports)).find((each) => each.id === id)?.state === 'bad';
  // Empty fields of a row that was not shown stay as they are.
  const isKept = (name: string): boolean =>
    isBad && field(name) === '' && (hidden.has(name) || name === 'models');
  const attributes = typedWholeRow(own, field, row, isKept);
  const seen = field('seen');
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes, seen, isNew: false });
  return rowProposal(visit, plan, { title: `Edit ${id}`, back: channelPath(id) });
}

const newPage = formPage((_, tried) => ({
  title: 'New channel',
  intro: lead('Prices first: until a model has one, a relay that refuses unpriced models refuses its calls.'),
  fields: [
    {
      name: 'id',
      label: 'Id',
      required: true,
      placeholder: 'vendor-1',
      help: 'Names it in logs. It cannot be changed later.',
    },
    ...fieldsOf({ state: true }),
  ],
  verb: 'Check and go on',
  cancel: 'channels',
  tried: withoutSecret(tried),
}));

async function proposeNew(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = field('id');
  if (id === '') throw usageFailure('id: found nothing, wanted a name');
  const attributes = typedNewRow(own, field);
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes, isNew: true });
  return rowProposal(visit, plan, { title: `New channel ${id}`, back: 'channels' });
}

/** For a form that was refused: the button alone has no page. */
const askPage = (verb: string) =>
  formPage(({ part }) => {
    const id = part('id');
    return { title: `${verb} ${id}`, above: [[channelPath(id), id]], cancel: channelPath(id) };
  });

async function proposeTest({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planChannelTest(ports, { id });
  const words = { title: `Test ${id}`, back: channelPath(id), verb: 'Send it' };
  const effect = [...plan.effect, 'One small real request. The upstream charges for it; no row is written.'];
  return proposed({ ...plan, effect }, words, async () => {
    const { url, status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
    const other =
      url === plan.call.built.request.url ? '' : ` It came to POST ${url}; the first was refused.`;
    const said = `Status ${status} after ${milliseconds(elapsedMs)}.${other}`;
    if (answer === undefined) throw new Failure(`${said} No answer came back: ${body || 'an empty body'}`);
    return { lines: [said, `${answer.model} answered: ${answer.text || `nothing (${answer.ending})`}`] };
  });
}

async function proposeProbe({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planProbe(ports, { id });
  return proposed(
    plan,
    { title: `Probe ${id}`, back: channelPath(id), verb: 'Send them' },
    async (onProgress) => {
      onProgress('a dozen small calls to the upstream');
      const { can, rules, sent, warnings: said } = await carryOutProbe(ports, plan);
      return {
        lines: [
          `${sent} calls were sent. What they show is written as _can; to params.model_rules: ${JSON.stringify(rules)}`,
        ],
        warnings: said,
        details: html`<pre class="command"><code>${JSON.stringify(can, null, 2)}</code></pre>`,
      };
    },
  );
}

async function proposeSwitch(visit: Visit): Promise<Proposal> {
  const id = visit.part('id');
  const channel = (await listChannels(visit.ports)).find((each) => each.id === id);
  // One whose row has a problem can be stopped alone: its last good version serves.
  const on = channel?.state === 'off';
  const plan = await planSwitchChannel(visit.ports, { id, on });
  const [title, verb] = on ? [`Switch ${id} on`, 'Switch it on'] : [`Switch ${id} off`, 'Switch it off'];
  return rowProposal(visit, plan, { title, verb, back: channelPath(id), grave: !on });
}
