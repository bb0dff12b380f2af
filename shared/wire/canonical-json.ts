/** Equal values give equal texts, whatever order their fields were written in. Undefined stays undefined. */
export function canonicalJson(value: object): string;
export function canonicalJson(value: unknown): string | undefined;
export function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => (isPlainObject(part) ? sortFields(part) : part));
}

/** The order of texts by their code units: the same on every machine, whatever its locale. Numbers go by size. */
export function compareCodeUnits(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const sortFields = (value: object): object =>
  Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compareCodeUnits(a, b)));

const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
