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
