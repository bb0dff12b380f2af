/** JSON with sorted fields, so that equal values give equal texts. Undefined stays undefined. */
export function canonicalJson(value: object): string;
export function canonicalJson(value: unknown): string | undefined;
export function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => (isPlainObject(part) ? sortFields(part) : part));
}

/** Compares texts by code units, independent of the machine's locale, and numbers by value. */
export function compareCodeUnits(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const sortFields = (value: object): object =>
  Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compareCodeUnits(a, b)));

const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
