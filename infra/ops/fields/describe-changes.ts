/**
 * Describes changes of rows as people read them: each field with its label, and its value before and after in the words and units of the
 * forms. Times are ISO 8601, which the console shows in the time zone that the operator chose.
 */
import { plainRow, plainValue } from '../../../shared/config/rows/read-row.ts';
import {
  configTables,
  indexRows,
  keysOf,
  type ConfigEdit,
  type RowDifference,
} from '../../../shared/operate/config/row-changes.ts';
import { formatStoredMoment } from '../../../shared/operate/moment.ts';
import type { RawRow, RowWrite, Target } from '../../../shared/operate/operator-ports.ts';
import { formatWrittenMoney } from '../../../shared/operate/plan.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { partPrices } from '../../../shared/wire/chat-response.ts';
import { asRecord, compareCodeUnits, isRecord } from '../../../shared/wire/json.ts';
import { formatCell } from '../markup.ts';
import { accountFields } from './account-fields.ts';
import { listFormFields, typeField } from './channel-fields.ts';
import { splitEntries } from './form-fields.ts';
import { keyRowFields } from './key-fields.ts';
import { addUnit, formatPrice, ruleFormFields } from './price-fields.ts';
import { readAttribute, setAttribute, topOf, type RowField } from './row-field.ts';
import { listSettingFields, planFields } from './setting-fields.ts';

/** An empty `before` or `after` means no value. */
export interface FieldChange {
  row: string;
  /** The path of the attribute in the row: `contact.email`. */
  name: string;
  label: string;
  before: string;
  after: string;
}

type Difference = Omit<RowDifference, 'table'> & { table: TableName };

const nouns: Partial<Record<TableName, string>> = {
  channels: 'Channel',
  charges: 'Rule',
  plans: 'Plan',
  settings: 'Setting',
  accounts: 'Customer',
  keys: 'Key',
};
const endings = { added: ' (new)', changed: '', removed: ' (deleted)' };
const hashCharacters = 8;

const listRowFields = ({ table, key }: Difference, target: Target): readonly RowField[] => {
  if (table === 'channels') return [typeField, ...listFormFields(undefined, {}, target)];
  if (table === 'charges') return ruleFormFields;
  if (table === 'settings') return listSettingFields(String(key));
  if (table === 'plans') return planFields;
  return table === 'accounts' ? accountFields : keyRowFields;
};

/** @param edit the whole rows: a rule's type, which may be unchanged, decides whether its prices are per call */
export const describeChanges = (
  differences: readonly Difference[],
  target: Target,
  edit?: ConfigEdit,
): FieldChange[] => {
  const rows = edit && { before: indexEdit(edit.before), after: indexEdit(edit.after) };
  return differences.flatMap((difference) => {
    const { table, key, change } = difference;
    const keyName = keysOf(table)[0]?.name ?? '';
    const row = `${nouns[table]} ${table === 'keys' ? String(key).slice(0, hashCharacters) : key}${endings[change]}`;
    const attributes = difference.attributes.filter(({ name }) => !name.startsWith('_') && name !== keyName);
    const fields = listRowFields(difference, target);
    return attributes.flatMap(({ name, ...values }): FieldChange[] => {
      const own = fields.filter((field) => topOf(field.name) === name);
      const [before, after] = (['before', 'after'] as const).map((side) => {
        // A row that does not exist has no values, not even defaults.
        const isAbsent = change === (side === 'before' ? 'added' : 'removed');
        const found = rows?.[side].get(table)?.get(key);
        const shown = isAbsent ? [] : listValues(own, { [name]: values[side] }, found);
        return new Map(shown.map((each) => [each.name, each]));
      });
      const shown = [...new Map([...(before ?? []), ...(after ?? [])]).values()].flatMap((value) => {
        const [old = '', next = ''] = [before?.get(value.name)?.text, after?.get(value.name)?.text];
        return old === next ? [] : [{ row, name: value.name, label: value.label, before: old, after: next }];
      });
      const lists = describeListChange(values);
      if (shown.length > 0) return shown.map((each) => Object.assign({}, each, lists));
      const isHidden = values.before === undefined && values.after === undefined;
      const [old, next] = isHidden
        ? ['', 'hidden: the row is invalid, so this may be a secret']
        : [formatValue(values.before), formatValue(values.after)];
      return [{ row, name, label: nameAttribute(name), before: old, after: next, ...lists }];
    });
  });
};

/** Shows only the members in which two lists differ, and counts the others: nobody finds one changed model among hundreds. */
function describeListChange({ before, after }: { before?: unknown; after?: unknown }) {
  const [old, next] = [plainValue(before), plainValue(after)];
  if (!Array.isArray(old) || !Array.isArray(next) || old.concat(next).some(isRecord)) return undefined;
  const shared = old.filter((each) => next.includes(each)).length;
  if (shared < sharedMin || (shared === old.length && shared === next.length)) return undefined;
  const write = (list: unknown[], other: unknown[]): string =>
    [...list.filter((each) => !other.includes(each)), `${shared} unchanged`].join(', ');
  return { before: write(old, next), after: write(next, old) };
}

/** Fewer shared members are shorter to read than their count. */
const sharedMin = 4;

/** Searching the rows for each change took 2.6 s for a price list of 10,000 rules. */
const indexEdit = (rows: ConfigEdit['before']): Map<TableName, Map<string | number, RawRow>> =>
  new Map(configTables.map((table) => [table, indexRows(table, rows[table])]));

/** Leaves out credits and new keys, whose plans describe them. */
export const describeWrites = (writes: readonly RowWrite[], target: Target): FieldChange[] => {
  const shown = writes.flatMap((write): Difference[] => {
    const { table } = write;
    const isEdit = write.kind === 'update' && (table === 'accounts' || table === 'keys');
    if (!isEdit && (write.kind !== 'create' || table !== 'accounts')) return [];
    const [key, before, after] =
      write.kind === 'update'
        ? [write.key, write.unchanged, write.attributes]
        : [write.row, {} as RawRow, write.row];
    const attributes = Object.keys(after).map((name) => ({ name, before: before[name], after: after[name] }));
    return [
      {
        table,
        key: String(key[keysOf(table)[0]?.name ?? '']),
        change: isEdit ? 'changed' : 'added',
        attributes,
      },
    ];
  });
  return describeChanges(shown, target);
};

/** Formats changes for the command line, below the name of each row. A value stays on one line, so that it can't look like another change. */
export const formatChanges = (changes: readonly FieldChange[]): string[] =>
  changes.flatMap(({ row, name, before, after }, at) =>
    [
      ...(row === changes[at - 1]?.row ? [] : [row]),
      `    ${name}: ${before && `${before} -> `}${after || '(removed)'}`,
    ].map((line) => line.replaceAll(/[\n\t]/g, ' ')),
  );

/** Formats a row, or an entry of a list, on one line. */
const formatRow = (fields: readonly RowField[], row: RawRow, context: RawRow = {}): string =>
  listValues(fields, row, context)
    .filter(({ name, text }) => text !== '' && readAttribute(row, name) !== undefined)
    .map(({ label, text }) => `${label}: ${text}`)
    .join(', ');

/** Attributes and members without a field come last. */
export function listValues(fields: readonly RowField[], row: RawRow, context: RawRow = {}) {
  const whole = { ...context, ...row };
  const rest = fields.reduce<unknown>(
    (left, { name }) =>
      readAttribute(row, name) === undefined ? left : setAttribute(left, name.split('.'), undefined),
    plainRow(row),
  );
  return [
    ...fields.map((field) => {
      const label = field.label.replace(' (¥)', '');
      return { name: field.name, label, text: formatField(field, row, whole) };
    }),
    ...Object.entries(asRecord(rest)).flatMap(([name, value]) =>
      value === undefined
        ? []
        : [{ name, label: nameAttribute(name), text: formatValue(value, name, whole) }],
    ),
  ];
}

function formatField({ format = formatCell, ...field }: RowField, row: RawRow, whole: RawRow): string {
  const { name, label, kind, choices, entries, show } = field;
  const value = plainValue(readAttribute(row, name));
  if (entries)
    return splitEntries(entries, value)
      .map((entry) => formatRow(entries.fields, entry, whole))
      .join('; ');
  const text = formatStoredMoment(name, value) ?? format(value, whole);
  const words = choices?.find(([choice]) => choice === text)?.[1];
  if (words !== undefined || text === '') return words ?? '';
  if (show) return show(text, whole);
  if (label.endsWith(' (¥)')) return formatWrittenMoney(text);
  return kind === 'area' ? text.replaceAll('\n', ', ') : text;
}

const priceNames: ReadonlySet<string> = new Set(['input', 'output', ...partPrices]);

/** Formats a value that has no form field. Sorts the members of maps, because the store returns them in any order. */
export function formatValue(value: unknown, name = '', whole: RawRow = {}): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' && priceNames.has(name)) return addUnit(formatPrice(value, whole), whole);
  if (Array.isArray(value))
    return value.map((each) => formatValue(each, name, whole)).join(value.some(isRecord) ? '; ' : ', ');
  if (!isRecord(value) || value instanceof Set) return formatStoredMoment(name, value) ?? formatCell(value);
  return Object.entries(value)
    .toSorted(([a], [b]) => compareCodeUnits(a, b))
    .map(([member, each]) => {
      const text = formatValue(each, member, { ...whole, ...value });
      return `${member} ${isRecord(each) ? `(${text})` : text}`;
    })
    .join(', ');
}

/** `alert_below` -> `Alert below`. */
export const nameAttribute = (name: string): string =>
  name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
