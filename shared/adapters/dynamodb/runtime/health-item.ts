/**
 * The item `cooldowns` of the table `runtime`: one attribute for each candidate that is not healthy, six characters with a
 * text of at most 33, and `bytes`, their size. Every environment reads it every few seconds, so it never grows over one
 * read unit. Holds no secret and no account, only hashes. Attributes of other forms are the version's before
 * (`cool:...`, `probe:...`, `failures:...`): not read, and removed when they are over.
 */
import { forgottenAtMs, type HealthEntry } from '../../../relay/ports/stores/channel-health.ts';
import { entryOf, entryText } from './health-text.ts';
import { cooldownsSize, type RuntimeItem } from './runtime-items.ts';

/** Leaves the rest of 4,096 bytes to the item's id and `bytes`. */
export const entriesBytesMax = 4_000;
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
