/**
 * Plans a price of a price group, now or from a date on. The entry goes above those that it replaces, because the first entry in force
 * applies: below them it would have no effect.
 */
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import { asRecord, compareCodeUnits, recordsIn } from '../../wire/json.ts';
import { planSetRow, type ConfigPlan } from '../config/write-rows.ts';
import { normalizeMoments } from '../moment.ts';
import type { OperatorPorts, RawRow } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';

interface GroupPrice {
  group: string;
  /** An entry of the group, in the form of its row. */
  attributes: RawRow;
  /** Delete the entries for these models that have the same start. */
  off?: boolean | undefined;
}

export async function planGroupPrice(
  ports: OperatorPorts,
  { group, attributes, off = false }: GroupPrice,
): Promise<ConfigPlan> {
  const nowMs = ports.clock.now();
  const entry = normalizeMoments(attributes, nowMs);
  if (typeof entry['from'] === 'string' && Date.parse(entry['from']) <= nowMs)
    throw usageFailure(`from: ${entry['from']} is in the past; leave it out to change the price now`);
  const rows = await ports.config.tables();
  const row = rows.settings.find((each) => attributeOf(each, 'name') === 'price_groups');
  const groups = asRecord(plainRow(attributeOf(row, 'value')));
  const before = recordsIn(Object.hasOwn(groups, group) ? groups[group] : []);
  const names = namesOf(entry);
  const start = typeof entry['from'] === 'string' ? `from ${entry['from']}` : 'now';
  const left = before.filter((each) => !isReplaced(each, entry, nowMs));
  if (off && left.length === before.length)
    throw usageFailure(`group ${group} has no price for ${names} that begins ${start}`);
  const after = off ? left : placeEntry(left, entry, nowMs);
  const value = { ...groups, [group]: after.length > 0 ? after : undefined };
  const plan = await planSetRow(
    ports,
    { table: 'settings', key: 'price_groups', attributes: { value } },
    rows,
  );
  const whose = `${before.length > 0 ? 'group' : 'the new group'} ${group}`;
  const effect = `${off ? 'Delete' : 'Set'} the price of ${names} for ${whose}, ${start} (live within 10 s)`;
  return { ...plan, effect: [effect] };
}

const namesOf = ({ models }: RawRow): string =>
  [models].flat().map(String).toSorted(compareCodeUnits).join(', ');

const startOf = ({ from }: RawRow, nowMs: number): number =>
  typeof from === 'string' ? Math.max(nowMs, Date.parse(from)) : nowMs;

const endOf = ({ until }: RawRow): number => (typeof until === 'string' ? Date.parse(until) : Infinity);

/** An old entry for the same models would never apply again if it starts with the new one and does not outlast it. */
const isReplaced = (old: RawRow, entry: RawRow, nowMs: number): boolean =>
  namesOf(old) === namesOf(entry) &&
  startOf(old, nowMs) === startOf(entry, nowMs) &&
  endOf(old) <= endOf(entry);

function placeEntry(entries: readonly RawRow[], entry: RawRow, nowMs: number): RawRow[] {
  const at = entries.findIndex((each) => startOf(each, nowMs) <= startOf(entry, nowMs));
  return at < 0 ? [...entries, entry] : entries.toSpliced(at, 0, entry);
}
