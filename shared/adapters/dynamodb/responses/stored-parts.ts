/**
 * Content as gzip, in parts that fit into items. The name of a content is the hash of its bytes: its parts have names that
 * no other content has, so a head never leads to the parts of another, and a write may be repeated.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { ResponseTooLarge } from '../../../relay/ports/stored/response-store.ts';

/** Below DynamoDB's limit of 400 KB for an item, with room for the other attributes. */
const partBytesMax = 300_000;
/** 12 MB: what a conversation may have, as it is sent, with room for what does not shrink. */
export const partsMax = 40;
/** Of what is read: more than any request and answer. */
const unpackedBytesMax = 64 * 1024 * 1024;
/** Functions have a fraction of a processor: what is longer is compressed in a third of the time, a little worse. */
const fastFromLength = 1_000_000;

const deflated = promisify<string, { level: number }, Buffer>(gzip);
const inflated = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

export interface PackedContent {
  name: string;
  /** In order, at least one. */
  parts: Uint8Array[];
  bytes: number;
  /** UTF-16 code units before it was packed. */
  length: number;
}

/** Throws ResponseTooLarge. */
export async function pack(content: unknown): Promise<PackedContent> {
  const text = JSON.stringify(content);
  const { Z_BEST_SPEED, Z_DEFAULT_COMPRESSION } = constants;
  const level = text.length > fastFromLength ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  const packed = await deflated(text, { level });
  const count = Math.ceil(packed.length / partBytesMax);
  if (count > partsMax) throw new ResponseTooLarge(`${packed.length} bytes`);
  const parts = Array.from({ length: count }, (_, part) =>
    packed.subarray(part * partBytesMax, (part + 1) * partBytesMax),
  );
  const name = createHash('sha256').update(packed).digest('base64url').slice(0, 22);
  return { name, parts, bytes: packed.length, length: text.length };
}

export async function unpack(parts: readonly Uint8Array[]): Promise<unknown> {
  const text = await inflated(Buffer.concat(parts), { maxOutputLength: unpackedBytesMax });
  return JSON.parse(text.toString());
}
