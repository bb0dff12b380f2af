/** Creates, edits, tests, probes, enables and disables channels. A secret never enters a row, nor appears on a page. */
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { listChannels, type ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
import { carryOutProbe, planProbe } from '../../../../shared/operate/channels/probe-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import type { RawRow, Target } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, usageFailure, Failure } from '../../../../shared/operate/plan.ts';
import { fingerprintRow } from '../../../../shared/operate/rows.ts';
import { channelTypeNames } from '../../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../../shared/upstreams/types/channel-types.ts';
import { formatCell } from '../../markup.ts';
import { formatMilliseconds } from '../layout/figures.ts';
import { formatValue, listValues } from '../../fields/describe-changes.ts';
import { listFormFields, typeField } from '../../fields/channel-fields.ts';
import { fillWholeForm, readWholeForm, type SentTexts } from '../../fields/form-fields.ts';
import { createSeenField, type Field, type RowField } from '../../fields/row-field.ts';
import { readMarks } from '../layout/form.ts';
import { renderLead } from '../layout/frame.ts';
import { renderDefinitions, renderTabs } from '../layout/table.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, createProposal, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';

export function addChannelForms(routes: Routes): void {
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Enable or disable'), propose: proposeSwitch });
}

const typeOf = (row: RawRow, sent: SentTexts = {}): string =>
  sent['type'] || formatCell(row['type']) || defaultChannelType;

const listFields = (row: RawRow, target: Target, sent?: SentTexts): readonly RowField[] => [
  typeField,
  ...listFormFields(typeOf(row, sent), row, target),
];

/** In an invalid row any text may be a misplaced secret, so only fields that hold no text are shown. */
const isHidden = (name: string): boolean =>
  !/^(type|models|priority|weight|balance_below|state|(connect|first_content|total)_seconds)$/.test(name);

const othersHelp = 'Other attributes (docs/tables.md), one per line: `name = value`.';

/** Hidden fields of an invalid row keep their value if nothing is typed. */
function fieldsOf(
  own: readonly RowField[],
  row: RawRow,
  { sent, channel }: { sent: SentTexts | undefined; channel?: ListedChannel | undefined },
): Field[] {
  const fields = fillWholeForm(own, row, { help: othersHelp, sent });
  if (channel?.state !== 'bad') return fields;
  const help = 'Hidden while the row is invalid. Leave empty to keep the value.';
  const isNoList = !Array.isArray(row['models']);
  return fields.map((field): Field => {
    if (isHidden(field.name)) return Object.assign({}, field, { value: '', help });
    return field.name === 'models' && isNoList ? Object.assign({}, field, { value: '' }) : field;
  });
}

const editPage = buildFormPage(async (visit, tried) => {
  const id = visit.parameter('id');
  const [row, channels] = await Promise.all([
    visit.ports.tables.get('channels', id),
    listChannels(visit.ports),
  ]);
  if (!row) throw usageFailure(`channel ${id} does not exist`);
  const channel = channels.find((each) => each.id === id);
  const written = readMarks(row);
  const sent = tried?.fields;
  const fields = fieldsOf(listFields(row, visit.ports.target, sent), row, { sent, channel });
  return {
    title: `Edit ${id}`,
    above: [[channelPathOf(id), id]],
    marks: {
      problem: channel?.problem ?? written.problem,
      warning: channel?.warning ?? written.warning,
    },
    fields: [...fields, createSeenField(fingerprintRow(row))],
    cancel: channelPathOf(id),
  };
});

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = visit.parameter('id');
  const row = (await ports.tables.get('channels', id)) ?? {};
  const isBad = (await listChannels(ports)).find((each) => each.id === id)?.state === 'bad';
  // Empty fields that were hidden keep their value.
  const isKept = (name: string): boolean =>
    isBad && field(name) === '' && (isHidden(name) || name === 'models');
  const own = listFields(row, ports.target, visit.fields);
  const attributes = readWholeForm(own, visit.fields, row, isKept);
  const seen = field('seen');
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes, seen, isNew: false });
  return proposeRowEdit(visit, plan, { title: `Edit ${id}`, back: channelPathOf(id) });
}

/** The type comes first, because it decides the fields. */
const newPage = buildFormPage((visit, tried) => {
  const type = typeOf({ type: visit.query('type') || undefined }, tried?.fields);
  const types = channelTypeNames.map((name) => [`channels-new?type=${name}`, name] as const);
  return {
    title: 'New channel',
    intro: [
      renderLead(
        'Set prices first: if the setting unpriced_models is "refuse", calls to a model without a price are refused.',
      ),
      renderTabs('Type', types, `channels-new?type=${type}`),
    ],
    fields: [
      {
        name: 'id',
        label: 'ID',
        required: true,
        placeholder: 'vendor-1',
        help: 'Identifies the channel in logs. It can’t be changed later.',
      },
      { name: 'type', label: 'Type', kind: 'hidden', value: type },
      ...fieldsOf(listFormFields(type, {}, visit.ports.target), { state: true }, { sent: tried?.fields }),
    ],
    cancel: 'channels',
  };
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const { ports, field } = visit;
  const id = field('id');
  if (id === '') throw usageFailure('id: enter a name');
  const type = typeOf({}, visit.fields);
  const attributes = { ...readWholeForm(listFormFields(type, {}, ports.target), visit.fields, {}), type };
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes, isNew: true });
  return proposeRowEdit(visit, plan, { title: `New channel ${id}`, back: 'channels' });
}

/** Shown when the action behind a button is refused. */
const askPage = (verb: string) =>
  buildFormPage(({ parameter }) => {
    const id = parameter('id');
    return { title: `${verb} ${id}`, above: [[channelPathOf(id), id]], cancel: channelPathOf(id) };
  });

async function proposeTest({ ports, parameter }: Visit): Promise<Proposal> {
  const id = parameter('id');
  const plan = await planChannelTest(ports, { id });
  const words = { title: `Test ${id}`, back: channelPathOf(id), verb: 'Send test request' };
  const effect = [
    ...plan.effect,
    'Sends one small real request, which the upstream bills. Nothing is saved.',
  ];
  return createProposal({ ...plan, effect }, words, async () => {
    const { url, status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
    const other =
      url === plan.call.built.request.url
        ? ''
        : ` Retried as POST ${url}, because the first request was rejected.`;
    const result = `Status ${status} after ${formatMilliseconds(elapsedMs)}.${other}`;
    if (answer === undefined) throw new Failure(`${result} No answer: ${body || 'the body is empty'}`);
    return { lines: [result, `${answer.model} answered: ${answer.text || `nothing (${answer.ending})`}`] };
  });
}

async function proposeProbe({ ports, parameter }: Visit): Promise<Proposal> {
  const id = parameter('id');
  const plan = await planProbe(ports, { id });
  return createProposal(
    plan,
    { title: `Probe ${id}`, back: channelPathOf(id), verb: 'Send probe calls' },
    async () => {
      const { can, rules, sent, warnings } = await carryOutProbe(ports, plan);
      return {
        lines: [
          `Sent ${formatCount(sent, 'call')}. The findings are saved as _can and params.model_rules: ${formatValue(rules) || 'no rules'}`,
        ],
        warnings,
        details: renderDefinitions(
          'steps',
          listValues([], { ...can }).map(({ label, text }) => [label, text]),
        ),
      };
    },
  );
}

async function proposeSwitch(visit: Visit): Promise<Proposal> {
  const id = visit.parameter('id');
  const channel = (await listChannels(visit.ports)).find((each) => each.id === id);
  // An invalid channel can only be disabled: its last valid version serves.
  const on = channel?.state === 'off';
  const plan = await planSwitchChannel(visit.ports, { id, on });
  const verb = on ? 'Enable' : 'Disable';
  return proposeRowEdit(visit, plan, {
    title: `${verb} ${id}`,
    verb: `${verb} channel`,
    back: channelPathOf(id),
    grave: !on,
  });
}
