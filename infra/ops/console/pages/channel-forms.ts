/** What is done to a channel: made, edited, tested, probed and switched. A key never comes into its row, nor back onto a page. */
import { plainValue } from '../../../../shared/config/rows/read-row.ts';
import { parameterName } from '../../../../shared/config/rows/secret-reference.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { listChannels, type ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { usageFailure, Failure } from '../../../../shared/operate/plan.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import {
  channelTypeNames,
  ownAttributes,
  typesWith,
} from '../../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../../shared/upstreams/types/channel-types.ts';
import { asRecord } from '../../../../shared/wire/json.ts';
import { html, shownValue } from '../../markup.ts';
import { milliseconds } from '../layout/figures.ts';
import {
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
import { lead, warnings } from '../layout/frame.ts';
import { tabs } from '../layout/table.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { formPage, proposed, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { channelPath } from './channels.ts';

export function channelFormPages(routes: Routes): void {
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Switch'), propose: proposeSwitch });
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
  const [row, channels] = await Promise.all([
    visit.ports.tables.get('channels', id),
    listChannels(visit.ports),
  ]);
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
  const row = (await ports.tables.get('channels', id)) ?? {};
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
