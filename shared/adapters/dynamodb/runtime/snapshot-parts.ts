/** A snapshot's bytes, cut into items and put together again. */
import { gunzipSync, gzipSync } from 'node:zlib';

/** Below DynamoDB's 400 KB for an item, with room for names. */
const partBytesMax = 300_000;
/** Far above any real configuration, and far below what would exhaust a function's memory. */
const contentBytesMax = 64_000_000;

/** JSON, compressed, in pieces that each fit into an item; at least one. */
export function toParts(content: unknown): Uint8Array[] {
  const bytes = gzipSync(JSON.stringify(content));
  const count = Math.ceil(bytes.length / partBytesMax);
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * partBytesMax, (index + 1) * partBytesMax),
  );
}

/** What `toParts` was given. Throws when the bytes are not all there. */
export const fromParts = (parts: Uint8Array[]): unknown =>
  JSON.parse(gunzipSync(Buffer.concat(parts), { maxOutputLength: contentBytesMax }).toString());
