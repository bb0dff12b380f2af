/** The names in commands' output: fields of `--json`, columns of `--csv`, and exit codes. */
import { parse } from 'csv-parse/sync';
import type { Names } from '../compatibility/declared-names.ts';

export interface PrintedRun {
  command: string;
  /** The outcome of the command: `refused`, `failed`. */
  state: string;
  form: 'text' | 'json' | 'csv';
  code: number;
  output: string;
}

/** Values of rows, as a setting or a difference has them: other names of test/compatibility are theirs. */
const rowValue = /(\.attributes\[\]\.(after|before)|\bsetting .*\.value)$/;

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'list' : isMap(value) ? 'map' : typeof value;

/** Lists the names in the values of one place. A field that a map lacks may be `undefined`. */
function namesOf(values: readonly unknown[], name: string, more: readonly string[] = []): Names {
  if (rowValue.test(name)) return { [name]: ['any', ...more].join(' | ') };
  const maps = values.filter(isMap);
  const items = values.filter((value) => Array.isArray(value)).flat();
  const fields = Array.from(new Set(maps.flatMap(Object.keys)), (key) => {
    const having = maps.filter((map) => key in map).map((map) => map[key]);
    return namesOf(having, `${name}.${key}`, having.length < maps.length ? ['undefined'] : []);
  });
  return Object.assign(
    { [name]: [...new Set(values.map(kindOf)), ...more].toSorted().join(' | ') },
    items.length > 0 && namesOf(items, `${name}[]`),
    ...fields,
  ) as Names;
}

/** All commands share one form of refusal. */
export function outputNames(runs: readonly PrintedRun[]): Names {
  const codes = runs.map(({ command, state, code }) => [`${command} exit code, ${state}`, String(code)]);
  const columns = runs
    .filter(({ form, code }) => form === 'csv' && code < 2)
    .flatMap(({ command, output }) => {
      const [header = []] = parse(output, { to: 1 });
      return header.map((column) => [`${command} --csv ${column}`, 'column']);
    });
  const values = runs
    .filter(({ form }) => form === 'json')
    .map(({ command, output }) => {
      const value: unknown = JSON.parse(output);
      return { place: isMap(value) && isMap(value['error']) ? 'refusal --json' : `${command} --json`, value };
    });
  const places = Map.groupBy(values, ({ place }) => place);
  const fields = Array.from(places, ([place, found]) => {
    const all = found.map(({ value }) => value);
    return namesOf(all, place);
  });
  const names = Object.assign(Object.fromEntries(columns.concat(codes)), ...fields) as Names;
  return Object.fromEntries(Object.entries(names).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
