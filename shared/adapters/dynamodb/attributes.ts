/** Attributes of an item in DynamoDB's wire format. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Attributes = Record<string, AttributeValue>;

/** For JSON.parse. Bytes are strings under `B`, or lists of strings under `BS`; everything else under these names is an object. */
export const withBytes = (name: string, value: unknown): unknown => {
  if (name === 'B' && typeof value === 'string') return Buffer.from(value, 'base64');
  return name === 'BS' && Array.isArray(value)
    ? value.map((each: unknown) => (typeof each === 'string' ? Buffer.from(each, 'base64') : each))
    : value;
};

/** An image in a record of a table stream: Lambda passes bytes as base64 text. */
export const attributesOfImage = (image: unknown = {}): Attributes =>
  JSON.parse(JSON.stringify(image), withBytes) as Attributes;

/**
 * Texts and numbers in wire format, and values out of it. Answering functions write and read nothing else beside accounts'
 * items, and the SDK's conversions of any value are 5 KB of what they load at their start.
 */
export const plainAttributes = (values: Record<string, string | number>): Attributes =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'number' ? { N: String(value) } : { S: value },
    ]),
  );

/** Numbers are what `Number` makes of them, also out of range: schemas of rows report them. */
export const plainValues = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, plainValue(value)]));

function plainValue({ S, N, BOOL, M, L, SS, NS, B, BS }: AttributeValue): unknown {
  if (N !== undefined) return Number(N);
  if (M) return plainValues(M);
  if (L) return L.map(plainValue);
  if (NS) return new Set(NS.map(Number));
  if (SS ?? BS) return new Set<unknown>(SS ?? BS);
  return S ?? BOOL ?? B ?? null;
}
