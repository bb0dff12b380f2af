/**
 * Finds details: fields inside a client's messages, items and tools that few forms have, such as a speaker's name. A call can do
 * without them, so it is sent even where they don't fit, and the client learns which ones were left out.
 */
import { isRecord, type JsonRecord } from './json.ts';

/** Not searched, because callers may use any names inside. */
const callersOwn: ReadonlySet<string> = new Set(
  'parameters input_schema output_schema schema input input_examples arguments metadata'.split(' '),
);
const speakers: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant']);
/**
 * Returns paths such as `messages[].name`.
 * @param names the details to look for, by the field of the body
 */
export function findDetails(body: JsonRecord, names: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(names).flatMap(([field, some]) =>
    [...findFields(body[field], new Set(some))].map((name) => `${field}[].${name}`),
  );
}

/** Returns the paths of details that are not in the sent body. */
export function listUnsentDetails(paths: readonly string[], body: JsonRecord): string[] {
  if (paths.length === 0) return [];
  const wanted = new Set(paths.map(nameOf));
  const sent = findFields(Object.values(body).filter(Array.isArray), wanted);
  return paths.filter((path) => !sent.has(nameOf(path)));
}

const nameOf = (path: string): string => path.split('.').at(-1) ?? path;

/** The depth of a body is limited, so this recursion is too. */
function findFields(value: unknown, wanted: ReadonlySet<string>, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) {
    for (const each of value) if (typeof each === 'object') findFields(each, wanted, found);
  } else if (isRecord(value))
    // A body may have 100,000 fields, and most hold texts.
    for (const name in value) {
      const inner = value[name];
      if (wanted.has(name) && asksForSomething(inner) && (name !== 'name' || speakers.has(value['role'])))
        found.add(name);
      if (typeof inner === 'object' && !callersOwn.has(name)) findFields(inner, wanted, found);
    }
  return found;
}

function asksForSomething(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(asksForSomething);
  const said = isRecord(value) && 'type' in value ? value['type'] : value;
  return (said ?? false) !== false && said !== '' && said !== 'auto' && said !== 'direct';
}
