/** The fields of a channel's row, with the relay's marks at those that they name; and the row that was typed. */
import type { ListedChannel } from '../../../../../shared/operate/channels/list-channels.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import type { RawRow } from '../../../../../shared/operate/row-tables.ts';
import { withMarks, type RowMarks } from '../../layout/field-marks.ts';
import type { Field, Tried } from '../../layout/form.ts';
import { html, shownValue } from '../../layout/markup.ts';
import type { Visit } from '../../visit/visit.ts';
import { otherAttributes, typed, typedList, typedNumber } from '../../visit/typed-fields.ts';

export const channelPath = (id: string): string => `channels/${encodeURIComponent(id)}`;

/** Fields of their own; everything else stands in one field as JSON. */
export const ownFields = ['name', 'endpoint', 'secret', 'models', 'priority', 'weight', 'state'] as const;
const isReference = (text: string): boolean => /^(ssm|secretsmanager|env):/.test(text);

export async function channelRow({ ports }: Visit, id: string): Promise<RawRow | undefined> {
  const rows = await ports.tables.scan('channels');
  return rows.find((row) => row['id'] === id);
}

/** Of a row with a problem, a text may be a secret in a wrong attribute: it is not shown, and stays if nothing is typed. */
export function fieldsOf(row: RawRow, channel: ListedChannel | undefined): Field[] {
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

export const marksOf = (row: RawRow, channel: ListedChannel | undefined): RowMarks => ({
  problem: channel?.problem ?? textIn(row, '_problem'),
  warning: channel?.warning ?? textIn(row, '_warning'),
});

const textIn = (row: RawRow, name: string): string | undefined =>
  typeof row[name] === 'string' ? row[name] : undefined;

/** A key that was typed in place of its reference is not shown again. */
export function triedWithoutSecret(tried: Tried | undefined): Tried | undefined {
  if (!tried) return undefined;
  const secret = typedList(tried.fields['secret'] ?? '')
    .filter(isReference)
    .join(', ');
  return { ...tried, fields: { ...tried.fields, secret } };
}

/** Empty fields of a row that was not shown stay as they are. */
export function attributesIn({ field }: Visit, isBad: boolean): RawRow {
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
