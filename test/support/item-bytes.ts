/**
 * The size of an item by DynamoDB's rules: names and texts in UTF-8; numbers about one byte per two digits plus one.
 * Source: Amazon DynamoDB Developer Guide, "DynamoDB item sizes and formats".
 */
export const itemBytes = (item: Record<string, unknown>): number =>
  Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);

function valueBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value === 'number') return Math.ceil(String(Math.abs(value)).length / 2) + 1;
  throw new Error(`no rule for ${typeof value}`);
}
