/** A JSON object. JSON from outside passes `isRecord` or `asRecord` before its fields are read. */
export type JsonRecord = Record<string, unknown>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const asRecord = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

/** Only the fields that have a value: a null of the OpenAI API means that the field is absent. */
export const withoutNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null && value !== undefined));

/** The value at a path inside a value; undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
  return valueAt((value as Record<PropertyKey, unknown>)[step], rest);
}

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
