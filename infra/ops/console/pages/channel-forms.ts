/** A channel's row edited, and a new one: checked as the relay does before anything is written. */
import { type ListedChannel, listChannels } from '../../../../shared/operate/channels/list-channels.ts';
import { usageFailure, Failure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import {
  withMarks,
  type RowMarks,
  type Field,
  type Tried,
  otherAttributes,
  typed,
  typedList,
  typedNumber,
  marksElsewhere,
  removed,
  typedJson,
} from '../layout/form.ts';
import { html, shownValue } from '../layout/markup.ts';
import { type Visit, ownForm, type Proposal, type Routes, ofPlan } from '../visit/visit.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { type Page, warnings } from '../layout/frame.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { milliseconds } from '../layout/figures.ts';

// The fields of a channel's row, with the relay's marks at those that they name; and the row that was typed.

export const channelPath = (id: string): string => `channels/${encodeURIComponent(id)}`;

/** Fields of their own; everything else stands in one field as JSON. */
const ownFields = ['name', 'endpoint', 'secret', 'models', 'priority', 'weight', 'state'] as const;
const isReference = (text: string): boolean => /^(ssm|secretsmanager|env):/.test(text);

export async function channelRow({ ports }: Visit, id: string): Promise<RawRow | undefined> {
  const rows = await ports.tables.scan('channels');
  return rows.find((row) => row['id'] === id);
}

/** Of a row with a problem, a text may be a secret in a wrong attribute: it is not shown, and stays if nothing is typed. */
function fieldsOf(row: RawRow, channel: ListedChannel | undefined): Field[] {
  const isBad = channel?.state === 'bad';
  const text = (name: string): string => (isBad ? '' : shownValue(row[name]));
  const hidden = isBad ? 'Not shown while the row has a problem. Empty: it stays as it is.' : undefined;
  const others = otherAttributes(row, ownFields);
  const fields: Field[] = [
    { name: 'name', label: 'Name', value: text('name'), help: hidden ?? 'For people.' },
    {
      name: 'endpoint',
      label: 'Endpoint',
      value: text('endpoint'),
      help: hidden ?? 'The base address, mostly ending in /v1.',
    },
    {
      name: 'secret',
      label: 'Secret',
      value: text('secret'),
      help:
        hidden ??
        html`A reference, never the key itself: <code>ssm:/relay/…/vendor</code>. Several apart by commas.`,
    },
    {
      name: 'models',
      label: 'Models',
      kind: 'area',
      value: isBad && !Array.isArray(row['models']) ? '' : listText(row['models']),
      help: 'Names that clients use, apart by commas or lines.',
    },
    {
      name: 'priority',
      label: 'Priority',
      width: 'third',
      input: 'numeric',
      value: shownNumber(row['priority']),
      help: 'Higher is tried first. Empty: 0.',
    },
    {
      name: 'weight',
      label: 'Weight',
      width: 'third',
      input: 'decimal',
      value: shownNumber(row['weight']),
      help: 'Share among channels of the same priority. Empty: 1.',
    },
    {
      name: 'state',
      label: 'State',
      width: 'third',
      kind: 'choice',
      value: row['state'] === true ? 'on' : 'off',
      choices: [
        ['on', 'on'],
        ['off', 'off'],
      ],
    },
    {
      name: 'others',
      label: 'Other attributes',
      kind: 'area',
      value: isBad || Object.keys(others).length === 0 ? '' : JSON.stringify(others, plain, 2),
      help:
        hidden ??
        html`JSON: <code>type</code>, <code>mapper</code>, <code>cost</code>, <code>params</code>, time
          limits.`,
    },
  ];
  return withMarks(fields, marksOf(row, channel));
}

const plain = (_: string, value: unknown): unknown => (value instanceof Set ? [...value] : value);
const listText = (value: unknown): string => shownValue(value).replaceAll(', ', '\n');
const shownNumber = (value: unknown): string =>
  typeof value === 'number' || (typeof value === 'string' && /^[\d.+-]{1,20}$/.test(value))
    ? String(value)
    : '';

const marksOf = (row: RawRow, channel: ListedChannel | undefined): RowMarks => ({
  problem: channel?.problem ?? textIn(row, '_problem'),
  warning: channel?.warning ?? textIn(row, '_warning'),
});

const textIn = (row: RawRow, name: string): string | undefined =>
  typeof row[name] === 'string' ? row[name] : undefined;

/** A key that was typed in place of its reference is not shown again. */
function triedWithoutSecret(tried: Tried | undefined): Tried | undefined {
  if (!tried) return undefined;
  const secret = typedList(tried.fields['secret'] ?? '')
    .filter(isReference)
    .join(', ');
  return { ...tried, fields: { ...tried.fields, secret } };
}

/** Empty fields of a row that was not shown stay as they are. */
function attributesIn({ field }: Visit, isBad: boolean): RawRow {
  const kept = (name: string, value: unknown): [string, unknown][] =>
    isBad && field(name) === '' ? [] : [[name, value]];
  const secrets = typedList(field('secret'));
  if (secrets.some((each) => !isReference(each)))
    throw usageFailure(
      'secret: found no reference, wanted ssm:/relay/<stack>/<name> or secretsmanager:<stack>/<name>: store the key first',
    );
  return Object.fromEntries([
    ...kept('name', typed(field('name'))),
    ...kept('endpoint', typed(field('endpoint'))),
    ...kept('secret', secrets.length > 1 ? secrets : secrets[0]),
    ...kept('models', typedList(field('models'))),
    ['priority', typedNumber(field('priority'))],
    ['weight', typedNumber(field('weight'))],
    ['state', field('state') === 'on'],
  ]);
}

export function channelFormPages(routes: Routes): void {
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
}

async function editPage(visit: Visit, tried?: Tried): Promise<Page> {
  const id = visit.part('id');
  const [row, channels] = await Promise.all([channelRow(visit, id), listChannels(visit.ports)]);
  if (!row) throw usageFailure(`there is no channel ${id}`);
  const channel = channels.find((each) => each.id === id);
  const fields = fieldsOf(row, channel);
  return {
    title: `Edit ${id}`,
    section: 'channels',
    above: [
      ['channels', 'Channels'],
      [channelPath(id), id],
    ],
    body: html`${warnings(marksElsewhere(marksOf(row, channel), fields))}
    ${ownForm(visit, {
      fields: [...fields, { name: 'seen', label: '', kind: 'hidden', value: rowMark(row) }],
      verb: 'Check and go on',
      cancel: channelPath(id),
      tried: triedWithoutSecret(tried),
    })}`,
  };
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const id = visit.part('id');
  const row = await channelRow(visit, id);
  const channels = await listChannels(visit.ports);
  const isBad = channels.find((each) => each.id === id)?.state === 'bad';
  const others = typedJson('others', visit.field('others'));
  const isKept = isBad && visit.field('others') === '';
  const plan = await planSetRow(visit.ports, {
    table: 'channels',
    key: id,
    attributes: {
      ...(isKept ? {} : { ...removed(otherAttributes(row ?? {}, ownFields)), ...others }),
      ...attributesIn(visit, isBad),
    },
    seen: visit.field('seen'),
    isNew: false,
  });
  return rowProposal(visit, { plan, title: `Edit ${id}`, back: channelPath(id) });
}

const newPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'New channel',
  section: 'channels',
  above: [['channels', 'Channels']],
  body: html`<p class="lead">
      Prices first: until a model has one, a relay that refuses unpriced models refuses its calls.
    </p>
    ${ownForm(visit, {
      fields: [
        {
          name: 'id',
          label: 'Id',
          required: true,
          placeholder: 'vendor-1',
          help: 'Names it in logs. It cannot be changed later.',
        },
        ...fieldsOf({ state: true }, undefined),
      ],
      verb: 'Check and go on',
      cancel: 'channels',
      tried: triedWithoutSecret(tried),
    })}`,
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const id = visit.field('id');
  if (id === '') throw usageFailure('id: found nothing, wanted a name');
  const attributes = Object.fromEntries(
    Object.entries({ ...typedJson('others', visit.field('others')), ...attributesIn(visit, false) }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  const plan = await planSetRow(visit.ports, { table: 'channels', key: id, attributes, isNew: true });
  return rowProposal(visit, { plan, title: `New channel ${id}`, back: 'channels' });
}

// Calls and switches that try a channel: test, probe, on and off.

export function channelActionPages(routes: Routes): void {
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Switch'), propose: proposeSwitch });
}

/** For a form that was refused: the button alone has no page. */
const askPage =
  (verb: string) =>
  async (visit: Visit, tried?: Tried): Promise<Page> => {
    const id = visit.part('id');
    return {
      title: `${verb} ${id}`,
      section: 'channels',
      above: [
        ['channels', 'Channels'],
        [channelPath(id), id],
      ],
      body: ownForm(visit, {
        fields: [],
        verb: 'Go on',
        cancel: channelPath(id),
        tried,
      }),
    };
  };

async function proposeTest({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planChannelTest(ports, { id });
  return {
    ...ofPlan(plan, { title: `Test ${id}`, back: channelPath(id), verb: 'Send it' }),
    effect: [...plan.effect, 'One small real request. The upstream charges for it; no row is written.'],
    async carryOut() {
      const { status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
      const said = `Status ${status} after ${milliseconds(elapsedMs)}.`;
      if (answer === undefined) throw new Failure(`${said} No answer came back: ${body || 'an empty body'}`);
      return { lines: [said, `${answer.model} answered: ${answer.text || `nothing (${answer.ending})`}`] };
    },
  };
}

async function proposeProbe({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planProbe(ports, { id });
  return {
    ...ofPlan(plan, { title: `Probe ${id}`, back: channelPath(id), verb: 'Send them' }),
    async carryOut(onProgress) {
      onProgress('a dozen small calls to the upstream');
      const { can, sent, warnings: said } = await carryOutProbe(ports, plan);
      return {
        lines: [`${sent} calls were sent. What they show is written as _can.`],
        warnings: said,
        details: html`<pre class="command"><code>${JSON.stringify(can, null, 2)}</code></pre>`,
      };
    },
  };
}

async function proposeSwitch(visit: Visit): Promise<Proposal> {
  const id = visit.part('id');
  const channel = (await listChannels(visit.ports)).find((each) => each.id === id);
  // One whose row has a problem can be stopped alone: its last good version serves.
  const on = channel?.state === 'off';
  const plan = await planSwitchChannel(visit.ports, { id, on });
  return {
    ...(await rowProposal(visit, {
      plan,
      title: `Switch ${id} ${on ? 'on' : 'off'}`,
      back: channelPath(id),
    })),
    verb: on ? 'Switch it on' : 'Switch it off',
    grave: !on,
  };
}
