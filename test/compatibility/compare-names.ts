/** Compares the public names with those of the last release, by the rules of docs/compatibility.md. */
import { writtenByUsers, type PublicNames } from './public-names.ts';

const partsOf = (text: string): string[] => text.split(' | ');

/**
 * True if values of this kind are still possible. For names that users write, `any` covers every kind, and `string` every text. Readers
 * need the exact kind: `"quota_exceeded" | string` documents that code.
 */
const isCovered = (part: string, now: readonly string[], isWritten: boolean): boolean =>
  now.includes(part) ||
  (part === 'integer' && now.includes('number')) ||
  (isWritten && /^["']/.test(part) && now.includes('string')) ||
  (isWritten && part !== 'undefined' && now.includes('any'));

/** `keys.budget` of `keys.budget.amount`, `key new` of `key new --models`. */
const parentOf = (name: string): string =>
  name.replace(/(\.[\w$]+| --\S+| argument \d+| (query|header|path|cookie) \S+)$/, '');

/**
 * Returns a line for each change of a name that only a major version may make.
 * @param removed names with their kind, which the changelog lists as removed: `commands key rotate`
 */
export function findBreaks(
  released: PublicNames,
  current: PublicNames,
  removed: ReadonlySet<string> = new Set(),
): string[] {
  const kinds = Object.keys({ ...released, ...current }).filter((kind) => released[kind] !== current[kind]);
  return kinds.flatMap((kind) => {
    const [before, after] = [released[kind] ?? {}, current[kind] ?? {}];
    const lost = Object.entries(before).flatMap(([name, text]) => {
      const now = after[name];
      if (now === undefined) return [[name, 'removed or renamed'] as const];
      if (now === text) return [];
      const gone = partsOf(text).filter((part) => !isCovered(part, partsOf(now), writtenByUsers.has(kind)));
      if (gone.length === 0) return [];
      const isRequired = gone.includes('undefined') && writtenByUsers.has(kind);
      return [[name, isRequired ? 'required now' : `no longer ${gone.join(' | ')}, but ${now}`] as const];
    });
    const required = Object.entries(after).flatMap(([name, text]) => {
      const parent = parentOf(name);
      // The OpenAPI document has no line for the items of a list.
      const isKnown = (before[parent] ?? before[parent.replace(/\[\]$/, '')]) !== undefined;
      const isNew = before[name] === undefined && parent !== name && isKnown;
      const isRequired = isNew && writtenByUsers.has(kind) && !partsOf(text).includes('undefined');
      return isRequired ? [[name, 'new and required'] as const] : [];
    });
    return [...lost, ...required]
      .filter(([name]) => !removed.has(`${kind} ${name}`))
      .map(([name, fault]) => `${kind} ${name}: ${fault}; only a major version may do that`);
  });
}

/** The names that the changelog lists under "Removed" since the last release. */
export function readRemovedNames(changelog: string): Set<string> {
  const [, unreleased = ''] = changelog.split(/^## Unreleased$/m);
  const [, removed = ''] = (unreleased.split(/^## /m)[0] ?? '').split(/^### Removed$/m);
  const lines = removed.split(/^### /m)[0] ?? '';
  return new Set(Array.from(lines.matchAll(/`([^`]+)`/g), ([, name = '']) => name));
}
