/** Decompresses request bodies. Must never produce more bytes than the caller allows. */
import { brotliDecompress, constants, gunzip, zstdDecompress } from 'node:zlib';
import { refuse, type Refusal } from '../../relay/http/refusal.ts';

type ZlibUnpack = (
  bytes: Uint8Array,
  options: { maxOutputLength: number; chunkSize: number; info: true },
  done: (error: Error | null, result: unknown) => void,
) => void;

/** Bounds the memory of decompression: RFC 8878 asks decoders for a window of 8 MB. */
const zstdParameters = { params: { [constants.ZSTD_d_windowLogMax]: 23 } };
/** All run off the event loop and bound their output while they write it. */
const unpackers: Readonly<Record<string, ZlibUnpack>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  zstd: (bytes, options, done) => zstdDecompress(bytes, { ...options, ...zstdParameters }, done),
  br: brotliDecompress,
};
const encodings = 'gzip, zstd, br';

type Unpack = (packed: Uint8Array, bytesMax: number) => Promise<Uint8Array | 'too_large'>;

/** Throws a Refusal for an unsupported encoding. @param name in lower case */
export function findUnpacker(name: string): Unpack {
  const unpack = Object.hasOwn(unpackers, name) ? unpackers[name] : undefined;
  if (!unpack)
    throw refuse(
      'unsupported_content_encoding',
      `The body may be compressed once, with one of ${encodings}. Say so in "content-encoding", or send it as it is, without this header.`,
      { headers: { 'accept-encoding': encodings } },
    );
  return (packed, maxOutputLength) =>
    new Promise((resolve, reject) => {
      unpack(packed, { maxOutputLength, chunkSize: 256 * 1024, info: true }, (error, result) => {
        const { buffer, engine } = (result ?? {}) as Unpacked;
        const code = error && (error as NodeJS.ErrnoException).code;
        if (code === 'ERR_BUFFER_TOO_LARGE') resolve('too_large');
        else if (error) reject(refuseEncoding(name, explainZlibError(code, name)));
        else if (engine.bytesWritten < packed.byteLength)
          reject(refuseEncoding(name, 'has more after its end: it must be compressed in one piece'));
        else resolve(buffer);
      });
    });
}

interface Unpacked {
  buffer: Uint8Array;
  /** Counts the compressed bytes that were read. */
  engine: { bytesWritten: number };
}

const explainZlibError = (code: string | null | undefined, name: string): string =>
  code === 'ZSTD_error_frameParameter_windowTooLarge'
    ? 'needs a window of more than 8 MB: compress it at level 19 or below, without --long'
    : `is not valid ${name}`;

const refuseEncoding = (name: string, what: string): Refusal =>
  refuse('invalid_encoding', `The header says "content-encoding: ${name}", but the body ${what}.`);
