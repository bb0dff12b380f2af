/**
 * The fields of a form. A list or map of a row becomes entries with a row of fields each, so that no form needs JSON; sheets and commands
 * write the same attribute as JSON. An entry keeps its number while its form is edited, because its members that have no field are found by
 * the number. The order of the entries is that of the form.
 */
import { plainValue } from '../../../shared/config/rows/read-row.ts';
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { usageFailure } from '../../../shared/operate/plan.ts';
import { asRecord, compareCodeUnits, listIn } from '../../../shared/wire/json.ts';
import { formatCell } from '../markup.ts';
import { formatLines, parseLines } from './map-lines.ts';
import {
  fillFields,
  makeJson,
  parseText,
  parseTypedRow,
  readAttribute,
  setAttribute,
  topOf,
  type Entries,
  type Field,
  type RowField,
} from './row-field.ts';

/** The texts of a form by the names of their fields. `rows` is the pressed button, such as `add windows`. */
export type SentTexts = Readonly<Record<string, string>>;

/** @param help for sheets and commands, which write JSON */
export const makeEntries = (name: string, label: string, help: string, entries: Entries): RowField => ({
  ...makeJson(name, label, help, entries.key === undefined),
  entries,
});

/** Fills the fields of a form with the values of a row. `sent` is a form that is shown again. */
export function fillForm(fields: readonly RowField[], row: RawRow, sent?: SentTexts): Field[] {
  const form = layOutFields(fields, row, sent, true);
  return fillFields(form.fields, form.row);
}

/** Returns whole attributes. Removes entries whose fields are all empty. */
export function readForm(
  fields: readonly RowField[],
  sent: SentTexts,
  row: RawRow = {},
  isKept: (name: string) => boolean = () => false,
): RawRow {
  const form = layOutFields(fields, row, sent, false);
  const own = form.fields.filter(({ name }) => !isKept(name));
  const made = parseTypedRow(own, (name) => sent[name] ?? '', form.row);
  for (const { name, entries, order } of form.lists) {
    if (order.length === 0 && isKept(`${name}.0`)) continue;
    const list = listIn(readAttribute(made, name));
    const joined = joinEntries(
      name,
      entries,
      order.map((at) => asRecord(list[at])),
    );
    const [top = '', ...path] = name.split('.');
    made[top] = path.length === 0 ? joined : setAttribute(made[top], path, joined);
  }
  return made;
}

/** A page with more fields is slow, and the guard refuses its form. */
const entryFieldsMax = 1_500;

interface EntryList {
  name: string;
  group: string;
  entries: Entries;
  list: readonly RawRow[];
  order: readonly number[];
  sent: SentTexts | undefined;
}

/** The returned `row` has a list for each attribute with entries, because model names contain dots. */
function layOutFields(
  fields: readonly RowField[],
  row: RawRow,
  sent: SentTexts | undefined,
  isShown: boolean,
) {
  const lists: EntryList[] = [];
  let listed = row;
  const flat = fields.flatMap((field): RowField[] => {
    const { name, label: group, entries } = field;
    const list = entries ? splitEntries(entries, readAttribute(row, name)) : [];
    if (!entries || list.length * entries.fields.length > entryFieldsMax) return [field];
    const [top = '', ...path] = name.split('.');
    listed = { ...listed, [top]: path.length === 0 ? list : setAttribute(listed[top], path, list) };
    const input = { name, group, entries, list, sent };
    const made = { ...input, order: orderEntries(input, isShown) };
    lists.push(made);
    return [...listRemoved(made), ...placeFields(made)];
  });
  return { fields: flat, row: listed, lists };
}

/** Sorts the members of a map, because the store returns them in any order, but an entry must keep its number. */
export function splitEntries({ key, isGrouped, unpack = asRecord }: Entries, value: unknown): RawRow[] {
  const plain = plainValue(value);
  if (key === undefined) return listIn(plain).map(unpack);
  return Object.entries(asRecord(plain))
    .toSorted(([a], [b]) => compareCodeUnits(a, b))
    .flatMap(([name, each]) =>
      (isGrouped ? listIn(each) : [each]).map((one) => Object.assign({}, unpack(one), { [key]: name })),
    );
}

function joinEntries(list: string, { key, isGrouped, pack }: Entries, all: readonly RawRow[]): unknown {
  const packed = all.map((entry) => {
    const { [key ?? '']: name, ...members } = entry;
    return { name, value: pack ? pack(members) : members };
  });
  if (all.length === 0) return undefined;
  if (key === undefined) return packed.map(({ value }) => value);
  const unnamed = packed.findIndex(({ name }) => typeof name !== 'string');
  if (unnamed >= 0) throw usageFailure(`${list}.${unnamed}.${key}: enter a name`);
  const byName = Map.groupBy(packed, ({ name }) => String(name));
  const twice = [...byName].find(([, same]) => same.length > 1)?.[0];
  if (twice !== undefined && !isGrouped)
    throw usageFailure(`${list}.${twice}.${key}: ${twice} is listed twice`);
  return Object.fromEntries(
    [...byName].map(([name, same]) => [name, isGrouped ? same.map(({ value }) => value) : same[0]?.value]),
  );
}

/** When a form is shown, also lists entries that somebody else added, and an empty entry if there is none. */
function orderEntries({ name, entries, list, sent }: Omit<EntryList, 'order'>, isShown: boolean): number[] {
  const [, verb, target] = /^(add|remove|up) (.+)$/.exec(sent?.['rows'] ?? '') ?? [];
  const isTarget = (at: number): boolean => target === `${name}.${at}`;
  const numbers = listNumbers(name, sent);
  const entriesMax = Math.floor(entryFieldsMax / entries.fields.length);
  // The page that shows this error has the first ones.
  if (numbers.length > entriesMax && !isShown)
    throw usageFailure(
      `${name}.${numbers[0]}.${entries.fields[0]?.name}: a form takes at most ${entriesMax} entries`,
    );
  numbers.splice(entriesMax);
  const isBlank = (at: number): boolean =>
    entries.fields.every(({ name: member, choices = [] }) =>
      ['', choices[0]?.[0]].includes(sent?.[`${name}.${at}.${member}`] ?? ''),
    );
  const kept = numbers.filter((at) => !isBlank(at) && !(verb === 'remove' && isTarget(at)));
  if (!isShown) return kept;
  const known = [...list.keys()];
  const order = [...kept, ...known.filter((at) => !numbers.includes(at))];
  const raised = verb === 'up' ? order.findIndex(isTarget) : 0;
  if (raised > 0) order.splice(raised - 1, 0, ...order.splice(raised, 1));
  const isAdded = verb === 'add' && target === name;
  const next = Math.max(-1, ...numbers, ...known) + 1;
  if (order.length > 0 && !isAdded) return order;
  return entries.addsFirst ? [next, ...order] : [...order, next];
}

/** In the order of the form. */
const listNumbers = (list: string, sent: SentTexts = {}): number[] => [
  ...new Set(
    Object.keys(sent).flatMap((name) => {
      const [, at] = name.startsWith(`${list}.`)
        ? (/^(\d{1,4})\./.exec(name.slice(list.length + 1)) ?? [])
        : [];
      return at === undefined ? [] : [Number(at)];
    }),
  ),
];

/** Keeps a removed entry of the row removed when the form is sent again. */
const listRemoved = ({ name, group, list, order, sent }: EntryList): RowField[] =>
  [...(sent ? list.keys() : [])]
    .filter((at) => !order.includes(at))
    .map((at) => ({ name: `${name}.${at}.removed`, label: '', kind: 'hidden', group, format: () => '' }));

function placeFields({ name: list, group, entries, list: rows, order, sent }: EntryList): RowField[] {
  const { fields, noun, key, isGrouped, about, isOpen } = entries;
  const nameOf = (at: number): string =>
    key === undefined ? '' : (sent?.[`${list}.${at}.${key}`] ?? formatCell(rows[at]?.[key]));
  const isMember = (name: string): boolean => fields.some((each) => each.name === name);
  return order.flatMap((at, position) => {
    const before = order.slice(0, position).filter((each) => nameOf(each) === nameOf(at)).length;
    const isAdded = sent?.['rows'] === `add ${list}` && at === Math.max(...order);
    const entry = { list, at, number: position + 1, noun, about, isAdded, isOpen };
    const path = `${list}.${at}`;
    // Messages name an entry by its position in a list, or by its name in a map.
    const place = `${list}.${nameOf(at) || position}${nameOf(at) && isGrouped ? `.${before}` : ''}`;
    return fields.map((field): RowField => {
      const { name, format = formatCell, parse = parseText } = field;
      return Object.assign({}, field, {
        group,
        entry,
        name: `${path}.${name}`,
        place: `${place}.${name}`,
        format: (value: unknown, row: RawRow) =>
          format(value, { ...row, ...asRecord(readAttribute(row, path)) }),
        parse: (text: string, read: (name: string) => string) =>
          parse(text, (other) => read(isMember(other) ? `${path}.${other}` : other)),
      });
    });
  });
}

/** Fills the fields of a row. Attributes without a field of their own become `name = value` lines. */
export const fillWholeForm = (
  own: readonly RowField[],
  row: RawRow,
  { help, sent }: { help: string; sent?: SentTexts | undefined },
): Field[] => [
  ...fillForm(own, row, sent),
  {
    name: 'others',
    label: 'Other attributes',
    kind: 'area',
    value: formatLines(Object.fromEntries(Object.entries(row).filter(([name]) => isOther(name, own)))),
    help,
  },
];

/** Applies typed values to a row: undefined removes an attribute, kept fields stay as they are. */
export function readWholeForm(
  own: readonly RowField[],
  sent: SentTexts,
  row: RawRow,
  isKept: (name: string) => boolean = () => false,
): RawRow {
  const removed = isKept('others') ? [] : Object.keys(row).filter((name) => isOther(name, own));
  return {
    ...Object.fromEntries(removed.map((name) => [name, undefined])),
    ...parseLines('others', sent['others'] ?? ''),
    ...readForm(own, sent, row, isKept),
  };
}

const isOther = (name: string, own: readonly RowField[]): boolean =>
  name !== 'id' && !name.startsWith('_') && !own.some((each) => topOf(each.name) === name);
