/** Fields of a request by name, as lines of paths: what a tenant may send in a dialect, and what limits or multiplies an answer. */

/** Fields by name, each with the fields inside it. */
export type FieldRules = ReadonlyMap<string, FieldRules>;

/** Inside a field: its value may be anything. */
export const anything = '*';
export const noFields: FieldRules = new Map();

/**
 * `a.b` is the field b inside a, in each entry where a is a list; `a.*` is an a with anything in it. A field with nothing
 * inside holds a plain value, or a list of these.
 */
export function parseFieldRules(
  lines: readonly string[],
  nameOf = (name: string): string => name,
): FieldRules {
  type Growing = Map<string, Growing>;
  const rules: Growing = new Map();
  for (const path of lines.join(' ').split(' ')) {
    let inner = rules;
    for (const name of path.split('.').map(nameOf)) {
      const next: Growing = inner.get(name) ?? new Map<string, Growing>();
      inner.set(name, next);
      inner = next;
    }
  }
  return rules;
}

/** Paths of the fields inside one, for the lines of `parseFieldRules`. */
export const prefixFields = (field: string, names: string): string => names.replaceAll(/\S+/g, `${field}.$&`);

/** Upper case first: it has fewer letters that are equal to others by case alone, as servers in Go compare names. */
export const foldCase = (name: string): string => name.toUpperCase().toLowerCase();
/** Asked first: a body may have tens of thousands of names. */
const isFolded = /^[a-z\d]*$/;
/** Without case, `_` and `-`, as some servers compare names. */
export const foldName = (name: string): string =>
  isFolded.test(name) ? name : foldCase(name).replaceAll(/[_-]/g, '');

/** The words of a name, joined by `_`: `apiBase`, `api-base` and `API_BASE` are `api_base`. */
export const wordsOf = (name: string): string =>
  foldCase(name.replaceAll('-', '_').replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '_'));

/** No object and no list of objects. */
export const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((each) => typeof each !== 'object') : typeof value !== 'object';
