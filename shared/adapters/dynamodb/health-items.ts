/**
 * The item `cooldowns` of `runtime`: an attribute per unhealthy candidate, 6 characters with a text of up to 33. Every
 * environment reads it every few seconds, so a write keeps it within one read unit; concurrent writes may exceed that for a
 * while. Holds hashes only, no secret and no account.
 */
import { expiryMsOf, type HealthEntry, type CooldownKind } from '../../relay/ports/runtime-stores.ts';
import type { RuntimeItem } from './runtime-items.ts';
import { buildExpressions, setAndRemove } from './table-client.ts';

/** The item's id takes the rest of 4,096 bytes. */
const entriesBytesMax = 4_000;
/** One write removes so many ended entries, and so many more for room. */
const removedAtOnce = 20;

const nameLength = 6;
const nameForm = /^[0-9a-z]{6}$/;
export const formatKey = (key: number): string => key.toString(36).padStart(nameLength, '0');

export interface HealthImage {
  readonly entries: ReadonlyMap<number, HealthEntry>;
  /** All entries by name, unreadable ones included. */
  readonly texts: ReadonlyMap<string, string>;
}

export function readHealthImage(item: RuntimeItem | undefined): HealthImage {
  const entries = new Map<number, HealthEntry>();
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(item ?? {})) {
    if (typeof value !== 'string' || !nameForm.test(name)) continue;
    texts.set(name, value);
    const entry = parseEntry(value);
    if (entry) entries.set(Number.parseInt(name, 36), entry);
  }
  return { entries, texts };
}

/** Applied only if every entry still has the expected text. */
export interface HealthWrite {
  readonly expected: ReadonlyMap<string, string | undefined>;
  /** Undefined removes the entry. */
  readonly entries: ReadonlyMap<string, string | undefined>;
}

/** Returns undefined if there is no room, because all other entries end later. */
export function planHealthWrite(
  { entries: known, texts }: HealthImage,
  { key, entry, nowMs }: { key: number; entry: HealthEntry | undefined; nowMs: number },
): HealthWrite | undefined {
  const entries = new Map<string, string | undefined>();
  const before = [...texts].reduce((sum, [name, text]) => sum + sizeOf(name, text), 0);
  let bytes = before;
  const put = (name: string, text: string | undefined): void => {
    bytes += sizeOf(name, text) - sizeOf(name, texts.get(name));
    entries.set(name, text);
  };
  put(formatKey(key), entry && formatEntry(entry));
  const others = [...known]
    .filter(([other]) => other !== key)
    .map(([other, one]) => ({ name: formatKey(other), endsMs: expiryMsOf(one) }))
    .toSorted((a, b) => a.endsMs - b.endsMs);
  const over = others.filter(({ endsMs }) => endsMs <= nowMs).slice(0, removedAtOnce);
  for (const { name } of over) put(name, undefined);
  const endsMs = entry ? expiryMsOf(entry) : 0;
  for (const other of others.slice(over.length).slice(0, removedAtOnce)) {
    if (bytes <= entriesBytesMax || other.endsMs >= endsMs) break;
    put(other.name, undefined);
  }
  if (bytes > Math.max(entriesBytesMax, before)) return undefined;
  return { entries, expected: new Map([...entries.keys()].map((name) => [name, texts.get(name)])) };
}

const sizeOf = (name: string, text: string | undefined): number =>
  text === undefined ? 0 : name.length + text.length;

// All running versions read these texts, so forms may only be added.

const kindLetters: Record<CooldownKind, string> = { rate_limit: 'L', credentials: 'C', failing: 'F' };
const kinds = new Map(Object.entries(kindLetters).map(([kind, letter]) => [letter, kind as CooldownKind]));
/** Numbers are in base 36 with small letters. A capital names the next field. */
const cooldownForm =
  /^([LCF])([0-9a-z]{1,10})(?:S([0-9a-z]{1,10}))?(?:P([0-9a-z]{1,10}))?(?:A([0-9a-z]{1,8}))?$/;
const failuresForm = /^N([1-9])T([0-9a-z]{1,10})A([0-9a-z]{1,8})(?:A([0-9a-z]{1,8}))?$/;

const formatNumber = (value: number): string => Math.ceil(value).toString(36);
const parseNumber = (text: string): number => Number.parseInt(text, 36);

function formatEntry(entry: HealthEntry): string {
  if (entry.kind === 'failures') {
    const { count, accounts, lastMs } = entry;
    return `N${Math.min(count, 9)}T${formatNumber(lastMs)}${accounts.map((account) => `A${account}`).join('')}`;
  }
  const { kind, untilMs, statedUntilMs, probeUntilMs, failedBy } = entry;
  const stated = statedUntilMs === undefined ? '' : `S${formatNumber(statedUntilMs)}`;
  const probe = probeUntilMs === undefined ? '' : `P${formatNumber(probeUntilMs)}`;
  const account = failedBy === undefined ? '' : `A${failedBy}`;
  return `${kindLetters[kind]}${formatNumber(untilMs)}${stated}${probe}${account}`;
}

/** Returns undefined for another form, such as a later version's. */
function parseEntry(text: string): HealthEntry | undefined {
  const [, letter = '', until, stated, probe, failedBy] = cooldownForm.exec(text) ?? [];
  const kind = kinds.get(letter);
  if (kind !== undefined && until !== undefined)
    return {
      kind,
      untilMs: parseNumber(until),
      ...(stated !== undefined && { statedUntilMs: parseNumber(stated) }),
      ...(probe !== undefined && { probeUntilMs: parseNumber(probe) }),
      ...(failedBy !== undefined && { failedBy }),
    };
  const [, count, last, ...accounts] = failuresForm.exec(text) ?? [];
  if (count === undefined || last === undefined) return undefined;
  const known = accounts.filter((account) => account !== undefined);
  return { kind: 'failures', count: Number(count), accounts: known, lastMs: parseNumber(last) };
}

export function buildHealthUpdate({ entries, expected }: HealthWrite) {
  const names: Record<string, string> = {};
  const values: Record<string, string> = {};
  const sets: string[] = [];
  const removes: string[] = [];
  const conditions = [...expected].map(([name, was], i) => {
    names[`#e${i}`] = name;
    const text = entries.get(name);
    if (text === undefined) removes.push(`#e${i}`);
    else {
      sets.push(`#e${i} = :e${i}`);
      values[`:e${i}`] = text;
    }
    if (was === undefined) return `attribute_not_exists(#e${i})`;
    values[`:was${i}`] = was;
    return `#e${i} = :was${i}`;
  });
  const UpdateExpression = setAndRemove(sets, removes);
  return buildExpressions({ UpdateExpression, ConditionExpression: conditions.join(' AND ') }, values, names);
}
