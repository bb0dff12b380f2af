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
  isReference,
  jsonField,
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
  withoutKeys,
  type Field,
  type RowField,
  type FieldMarks,
  type SentForm,
} from '../layout/form.ts';
import { command, emptyState, lead, notice, warnings, type Page } from '../layout/frame.ts';
import { badge, column, cut, facts, figureColumns, head, number, table, tabs } from '../layout/table.ts';
import { unlessReading, type Routes, type Visit, formPage, proposed, type Proposal } from '../visit/visit.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { plainValue } from '../../../../shared/config/rows/read-row.ts';
import { parameterName } from '../../../../shared/config/rows/secret-reference.ts';
import {
  channelTypeNames,
  ownAttributes,
  typesWith,
} from '../../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../../shared/upstreams/types/channel-types.ts';
import { asRecord } from '../../../../shared/wire/json.ts';
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

/** A name is that of a parameter of this stack. What is longer may be the key itself, which must not come into the row. */
const secretName = /^(?!sk-)[\w./-]{1,24}$/;

const typedSecrets =
  ({ stack, local }: Visit['ports']['target']) =>
  (text: string): string | string[] | undefined => {
    const secrets = typedList(text).map((each) =>
      isReference(each) || local || !secretName.test(each) ? each : `ssm:${parameterName(stack, each)}`,
    );
    if (secrets.some((each) => !isReference(each)))
      throw usageFailure(
        'secret: found no reference, wanted ssm:/relay/<stack>/<name> or secretsmanager:<stack>/<name>: store the key first',
      );
    return secrets.length > 1 ? secrets : secrets[0];
  };

const shownNumber = (value: unknown): string =>
  typeof value === 'number' || (typeof value === 'string' && /^[\d.+-]{1,20}$/.test(value))
    ? String(value)
    : '';

const isPair = ([name, upstream, ...more]: string[]): boolean =>
  Boolean(name && upstream) && more.length === 0;

/** `smart = deepseek-chat`, one a line. */
const mapperField: RowField = {
  name: 'mapper',
  label: 'Names at the upstream',
  kind: 'area',
  placeholder: 'smart = deepseek-chat',
  help: html`Where they differ, a line each: <code>smart = deepseek-chat</code>.`,
  shown: (value) =>
    Object.entries(asRecord(plainValue(value)))
      .map(([name, upstream]) => `${name} = ${shownValue(upstream)}`)
      .join('\n'),
  typed(text) {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const pairs = lines.map((line) => line.split('=').map((each) => each.trim()));
    if (!pairs.every(isPair))
      throw usageFailure('mapper: found a line without one =, wanted public = upstream');
    return pairs.length === 0 ? undefined : Object.fromEntries(pairs as [string, string][]);
  },
};

const secondsField = (name: string, label: string, byDefault: string): RowField =>
  third(name, label, `Empty: ${byDefault}.`, { shown: shownNumber });

/** Of its type alone; and attributes of other types that the row has all the same, to be taken out. */
const typeFields = (type: string, row: RawRow): RowField[] =>
  ownAttributes()
    .filter(({ name }) => row[name] !== undefined || typesWith(name).some((each) => each === type))
    .map(({ name, attribute: { about } }) => ({
      name,
      label: name.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase()),
      help: `${about} (${typesWith(name).join(', ')})`,
    }));

const fieldsOfType = (type: string, row: RawRow, target: Visit['ports']['target']): readonly RowField[] => [
  { name: 'name', label: 'Name', help: 'For people.' },
  {
    name: 'endpoint',
    label: 'Endpoint',
    help: 'The base address, mostly ending in /v1. Empty: that of the type, if it has one.',
  },
  ...typeFields(type, row),
  {
    name: 'secret',
    label: 'Secret',
    help: html`The name under which it is stored, or a reference, never the key itself:
      <code>ssm:/relay/…/vendor</code>. Several apart by commas.`,
    typed: typedSecrets(target),
  },
  namesField('models', 'Models', 'Names that clients use, apart by commas or lines.'),
  mapperField,
  third('priority', 'Priority', 'Higher is tried first. Empty: 0.', { input: 'numeric', shown: shownNumber }),
  third('weight', 'Weight', 'Share among channels of the same priority. Empty: 1.', { shown: shownNumber }),
  {
    ...choiceField('state', 'State', { on: 'on', off: 'off' }),
    width: 'third',
    shown: (value) => (value === true ? 'on' : 'off'),
    typed: (text) => text === 'on',
  },
  secondsField('connect_seconds', 'Seconds to connect', '5'),
  secondsField('first_content_seconds', 'Seconds to first content', '120, more for long prompts'),
  secondsField('total_seconds', 'Seconds in all', '600'),
  jsonField(
    'cost',
    'Cost',
    html`JSON, by the upstream’s name of a model or <code>*</code>, for 1,000 tokens:
      <code>{"*": {"input": 0.002, "output": 0.008, "currency": "USD", "rate": 7.2}}</code>.`,
  ),
  jsonField(
    'params',
    'What the upstream takes',
    html`JSON: <code>set</code>, <code>drop</code>, <code>efforts</code>, <code>model_rules</code> and others
      of docs/tables.md. A probe finds most of it.`,
  ),
];

const typeField: RowField = choiceField(
  'type',
  'Type',
  Object.fromEntries(channelTypeNames.map((name) => [name, name])),
  `${defaultChannelType}, as it is by default`,
);

const typeOf = (row: RawRow, tried?: SentForm): string =>
  tried?.fields['type'] || shownValue(row['type']) || defaultChannelType;

const editedFields = (
  row: RawRow,
  target: Visit['ports']['target'],
  tried?: SentForm,
): readonly RowField[] => [typeField, ...fieldsOfType(typeOf(row, tried), row, target)];

/** Of a row with a problem: what holds no text. Another may be a secret, or stand in the place of one. */
const isHidden = (name: string): boolean =>
  ![
    'type',
    'models',
    'priority',
    'weight',
    'state',
    'connect_seconds',
    'first_content_seconds',
    'total_seconds',
  ].includes(name);

const othersHelp = html`JSON: <code>dialect</code> and others, as docs/tables.md has them.`;

/** Of a row with a problem, a text may be a secret in a wrong attribute: it is not shown, and stays if nothing is typed. */
function fieldsOf(own: readonly RowField[], row: RawRow, channel?: ListedChannel): Field[] {
  const fields = wholeRowFields(own, row, othersHelp);
  if (channel?.state !== 'bad') return withMarks(fields, marksOf(row, channel));
  const help = 'Not shown while the row has a problem. Empty: it stays as it is.';
  const isNoList = !Array.isArray(row['models']);
  const covered = fields.map((field): Field => {
    if (isHidden(field.name)) return Object.assign({}, field, { value: '', help });
    return field.name === 'models' && isNoList ? Object.assign({}, field, { value: '' }) : field;
  });
  return withMarks(covered, marksOf(row, channel));
}

const marksOf = (row: RawRow, channel: ListedChannel | undefined): FieldMarks => ({
  ...marksIn(row),
  ...(channel?.problem !== undefined && { problem: channel.problem }),
  ...(channel?.warning !== undefined && { warning: channel.warning }),
});

const editPage = formPage(async (visit, tried) => {
  const id = visit.part('id');
  const [row, channels] = await Promise.all([channelRow(visit, id), listChannels(visit.ports)]);
  if (!row) throw usageFailure(`there is no channel ${id}`);
  const channel = channels.find((each) => each.id === id);
  const fields = fieldsOf(editedFields(row, visit.ports.target, tried), row, channel);
  return {
    title: `Edit ${id}`,
    above: [[channelPath(id), id]],
    intro: warnings(marksElsewhere(marksOf(row, channel), fields)),
    fields: [...fields, seenField(rowMark(row))],
    verb: 'Check and go on',
    cancel: channelPath(id),
    tried: withoutKeys(tried),
  };
});

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = visit.part('id');
  const row = (await channelRow(visit, id)) ?? {};
  const isBad = (await listChannels(ports)).find((each) => each.id === id)?.state === 'bad';
  // Empty fields of a row that was not shown stay as they are.
  const isKept = (name: string): boolean =>
    isBad && field(name) === '' && (isHidden(name) || name === 'models');
  const own = editedFields(row, ports.target, { fields: visit.fields });
  const attributes = typedWholeRow(own, field, row, isKept);
  const seen = field('seen');
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes, seen, isNew: false });
  return rowProposal(visit, plan, { title: `Edit ${id}`, back: channelPath(id) });
}

/** The type is chosen first: each has fields of its own. */
const newPage = formPage((visit, tried) => {
  const type = typeOf({ type: visit.query('type') || undefined }, tried);
  const types = channelTypeNames.map((name) => [`channels-new?type=${name}`, name] as const);
  return {
    title: 'New channel',
    intro: [
      lead('Prices first: until a model has one, a relay that refuses unpriced models refuses its calls.'),
      tabs('Type', types, `channels-new?type=${type}`),
    ],
    fields: [
      {
        name: 'id',
        label: 'Id',
        required: true,
        placeholder: 'vendor-1',
        help: 'Names it in logs. It cannot be changed later.',
      },
      { name: 'type', label: 'Type', kind: 'hidden', value: type },
      ...fieldsOf(fieldsOfType(type, {}, visit.ports.target), { state: true }),
    ],
    verb: 'Check and go on',
    cancel: 'channels',
    tried: withoutKeys(tried),
  };
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = field('id');
  if (id === '') throw usageFailure('id: found nothing, wanted a name');
  const type = typeOf({}, { fields: visit.fields });
  const attributes = { ...typedNewRow(fieldsOfType(type, {}, ports.target), field), type };
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
