/** A channel made, edited, tested, probed and switched: checked as the relay does before anything is written. */
import { listChannels, type ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { html } from '../../markup.ts';
import { milliseconds } from '../layout/figures.ts';
import {
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
import { lead, warnings } from '../layout/frame.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { formPage, proposed, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { channelPath, channelRow } from './channels.ts';

export function channelFormPages(routes: Routes): void {
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Switch'), propose: proposeSwitch });
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
    const { status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
    const said = `Status ${status} after ${milliseconds(elapsedMs)}.`;
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
      const { can, sent, warnings: said } = await carryOutProbe(ports, plan);
      return {
        lines: [`${sent} calls were sent. What they show is written as _can.`],
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
