/**
 * The item `cooldowns` of the table `runtime`: one attribute for each candidate that is not healthy, six characters with a
 * text of at most 33, and `bytes`, their size. Every environment reads it every few seconds, so it never grows over one
 * read unit. Holds no secret and no account, only hashes. Attributes of other forms are the version's before
 * (`cool:...`, `probe:...`, `failures:...`): not read, and removed when they are over.
 */
import { forgottenAtMs, type HealthEntry, type RestKind } from '../../relay/ports/runtime-stores.ts';
import { cooldownsSize, type RuntimeItem } from './runtime-items.ts';

/** Leaves the rest of 4,096 bytes to the item's id and `bytes`. */
const entriesBytesMax = 4_000;
/** How many attributes one write removes beside its own. */
const removedAtOnce = 20;

const nameLength = 6;
const nameForm = /^[0-9a-z]{6}$/;
const oldForm = /^(cool|probe|failures):(.+)$/s;
export const entryName = (key: number): string => key.toString(36).padStart(nameLength, '0');

const keyOf = (name: string): number => Number.parseInt(name, 36);
/** The item as one read or write found it. */
export interface HealthImage {
  readonly entries: ReadonlyMap<number, HealthEntry>;
  /** The texts of all entries by name, unreadable ones included. */
  readonly texts: ReadonlyMap<string, string>;
  /** The size of all entries. */
  readonly bytes: number;
  /** The size that the item says. Undefined: it says none. */
  readonly recordedBytes: number | undefined;
  /** Numbers of the version before this one. */
  readonly old: ReadonlyMap<string, number>;
}

export function imageOf(item: RuntimeItem | undefined): HealthImage {
  const entries = new Map<number, HealthEntry>();
  const texts = new Map<string, string>();
  const old = new Map<string, number>();
  let bytes = 0;
  for (const [name, value] of Object.entries(item ?? {})) {
    if (typeof value === 'number' && oldForm.test(name)) old.set(name, value);
    if (typeof value !== 'string' || !nameForm.test(name)) continue;
    texts.set(name, value);
    bytes += name.length + value.length;
    const entry = entryOf(value);
    if (entry) entries.set(keyOf(name), entry);
  }
  const recorded = item?.[cooldownsSize];
  return { entries, texts, bytes, old, recordedBytes: typeof recorded === 'number' ? recorded : undefined };
}

/** One conditional write: it is applied if every entry of `expected` has that text, and otherwise changes nothing. */
export interface HealthWrite {
  readonly expected: ReadonlyMap<string, string | undefined>;
  /** Undefined: the entry is removed. */
  readonly entries: ReadonlyMap<string, string | undefined>;
  /** Attributes of the version before this one; removed without a condition. */
  readonly removed: readonly string[];
  /** How much the entries grow. */
  readonly growth: number;
  /** If they grow: the size that the item may say at most, for the write to find room. */
  readonly room: number;
  /** The item says a wrong size: it is replaced if it is still this one. */
  readonly wrongBytes?: { was: number | undefined; bytes: number } | undefined;
}

/** Undefined: the image leaves no room for the entry, because all others end later. */
export function writeOf(
  image: HealthImage,
  { key, entry, nowMs }: { key: number; entry: HealthEntry | undefined; nowMs: number },
): HealthWrite | undefined {
  const name = entryName(key);
  const text = entry && entryText(entry);
  const entries = new Map([[name, text]]);
  let growth = sizeOf(name, text) - sizeOf(name, image.texts.get(name));
  const others = [...image.entries]
    .filter(([other]) => other !== key)
    .map(([other, one]) => ({ name: entryName(other), endsMs: forgottenAtMs(one) }));
  const drop = (dropped: { name: string }): void => {
    entries.set(dropped.name, undefined);
    growth -= sizeOf(dropped.name, image.texts.get(dropped.name));
  };
  for (const other of others.filter(({ endsMs }) => endsMs <= nowMs).slice(0, removedAtOnce)) drop(other);
  if (growth > 0 && image.bytes + growth > entriesBytesMax) {
    const endsMs = entry ? forgottenAtMs(entry) : 0;
    const sooner = others.filter((other) => other.endsMs < endsMs && !entries.has(other.name));
    for (const other of sooner.toSorted((a, b) => a.endsMs - b.endsMs)) {
      if (image.bytes + growth <= entriesBytesMax) break;
      drop(other);
    }
    if (image.bytes + growth > entriesBytesMax) return undefined;
  }
  const isRight = (image.recordedBytes ?? 0) === image.bytes;
  return {
    entries,
    growth,
    room: entriesBytesMax - growth,
    expected: new Map([...entries.keys()].map((one) => [one, image.texts.get(one)])),
    removed: overOf(image.old, nowMs).slice(0, removedAtOnce),
    ...(!isRight && { wrongBytes: { was: image.recordedBytes, bytes: image.bytes + growth } }),
  };
}

const sizeOf = (name: string, text: string | undefined): number =>
  text === undefined ? 0 : name.length + text.length;

/** A candidate's old attributes, unless its cooldown or its probe still runs. */
function overOf(old: HealthImage['old'], nowMs: number): string[] {
  const running = new Set<string>();
  for (const [name, value] of old) {
    const [, what, id = ''] = oldForm.exec(name) ?? [];
    if (what !== 'failures' && value > nowMs) running.add(id);
  }
  return [...old.keys()].filter((name) => !running.has(oldForm.exec(name)?.[2] ?? ''));
}

// The text of a candidate's health, 33 characters at most. Every version that runs reads it: forms are only added.

const kindLetters = { rate_limit: 'L', credentials: 'C', failing: 'F' } as const satisfies Record<
  RestKind,
  string
>;
const kinds = new Map<string, RestKind>([
  ['L', 'rate_limit'],
  ['C', 'credentials'],
  ['F', 'failing'],
]);
/** Numbers are written in base 36, whose letters are small; a capital says what follows. */
const restForm = /^([LCF])([0-9a-z]{1,10})(?:S([0-9a-z]{1,10}))?(?:P([0-9a-z]{1,10}))?(?:A([0-9a-z]{1,8}))?$/;
const runForm = /^N([1-9])T([0-9a-z]{1,10})A([0-9a-z]{1,8})(?:A([0-9a-z]{1,8}))?$/;

const digits = (value: number): string => Math.ceil(value).toString(36);
const valueOf = (text: string): number => Number.parseInt(text, 36);

function entryText(entry: HealthEntry): string {
  if (entry.kind === 'failures') {
    const { count, accounts, lastMs } = entry;
    return `N${Math.min(count, 9)}T${digits(lastMs)}${accounts.map((account) => `A${account}`).join('')}`;
  }
  const { kind, untilMs, statedUntilMs, probeUntilMs, failedBy } = entry;
  const stated = statedUntilMs === undefined ? '' : `S${digits(statedUntilMs)}`;
  const probe = probeUntilMs === undefined ? '' : `P${digits(probeUntilMs)}`;
  const account = failedBy === undefined ? '' : `A${failedBy}`;
  return `${kindLetters[kind]}${digits(untilMs)}${stated}${probe}${account}`;
}

/** Undefined: not of this form, such as a later version's. */
function entryOf(text: string): HealthEntry | undefined {
  const [, letter = '', until, stated, probe, failedBy] = restForm.exec(text) ?? [];
  const kind = kinds.get(letter);
  if (kind !== undefined && until !== undefined)
    return {
      kind,
      untilMs: valueOf(until),
      ...(stated !== undefined && { statedUntilMs: valueOf(stated) }),
      ...(probe !== undefined && { probeUntilMs: valueOf(probe) }),
      ...(failedBy !== undefined && { failedBy }),
    };
  const [, count, last, ...accounts] = runForm.exec(text) ?? [];
  if (count === undefined || last === undefined) return undefined;
  const known = accounts.filter((account) => account !== undefined);
  return { kind: 'failures', count: Number(count), accounts: known, lastMs: valueOf(last) };
}

// A write of health as the expressions of one conditional update.

interface HealthUpdate {
  update: string;
  condition: string;
  names: Record<string, string>;
  values: Record<string, string | number>;
}

export function updateOf(write: HealthWrite): HealthUpdate {
  const entries = entryUpdate(write);
  const size = sizeUpdate(write);
  const clauses = [
    listed('SET', [...entries.sets, ...size.sets]),
    listed('REMOVE', entries.removes),
    listed('ADD', size.adds),
  ];
  return {
    update: clauses.join(' ').trim(),
    condition: [...entries.conditions, ...size.conditions].join(' AND '),
    names: { ...entries.names, ...size.names },
    values: { ...entries.values, ...size.values },
  };
}

const listed = (clause: string, parts: readonly string[]): string =>
  parts.length > 0 ? `${clause} ${parts.join(', ')}` : '';

/** Every entry that is set or removed must be as the image has it. */
function entryUpdate({ entries, expected, removed }: HealthWrite) {
  const old = removed.map((name, i): [string, string] => [`#old${i}`, name]);
  const names: Record<string, string> = Object.fromEntries(old);
  const values: Record<string, string> = {};
  const sets: string[] = [];
  const removes = old.map(([placeholder]) => placeholder);
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
  return { names, values, sets, removes, conditions };
}

/** `bytes` is exact, because every write says what it adds; a write that adds must find room. */
function sizeUpdate({ growth, room, wrongBytes }: HealthWrite): {
  names: Record<string, string>;
  values: Record<string, number>;
  sets: string[];
  adds: string[];
  conditions: string[];
} {
  const names = { '#bytes': cooldownsSize };
  if (wrongBytes) {
    const { was, bytes } = wrongBytes;
    return {
      names,
      values: { ':bytes': bytes, ...(was !== undefined && { ':wasBytes': was }) },
      sets: ['#bytes = :bytes'],
      adds: [],
      conditions: [was === undefined ? 'attribute_not_exists(#bytes)' : '#bytes = :wasBytes'],
    };
  }
  if (growth === 0) return { names: {}, values: {}, sets: [], adds: [], conditions: [] };
  return {
    names,
    values: { ':growth': growth, ...(growth > 0 && { ':room': room }) },
    sets: [],
    adds: ['#bytes :growth'],
    conditions: growth > 0 ? ['(attribute_not_exists(#bytes) OR #bytes <= :room)'] : [],
  };
}
