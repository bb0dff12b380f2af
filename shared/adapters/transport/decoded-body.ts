/**
 * Decodes a compressed reply as it arrives: what a read brought is handed on before the next read. Decodes a little at a
 * time, as it is read, so whoever reads bounds what a small reply can become.
 */
import { Readable, pipeline, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { TransportError } from '../../upstreams/exchange.ts';

const flush = constants.Z_SYNC_FLUSH;

/** By the name of the encoding; the first byte tells the two forms of `deflate` apart. */
const decoders: Record<string, (first: number) => Transform> = {
  gzip: () => createGunzip({ flush }),
  'x-gzip': () => createGunzip({ flush }),
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate({ flush }) : createInflateRaw({ flush })),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};

const unreadable = (): TransportError =>
  new TransportError('encoding', 'The reply has an encoding that cannot be read.');

/** Throws a TransportError: that of the reads, or `encoding`. An early return ends the reads early too. */
export async function* decoded(
  reads: AsyncIterator<Uint8Array>,
  encoding: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let output: Transform | undefined;
  try {
    const create = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined;
    if (!create) throw unreadable();
    const { value: first, done } = await reads.next();
    if (done) return;
    output = create(first[0] ?? 0);
    pipeline(Readable.from(all(first, reads), { objectMode: false }), output, () => undefined);
    yield* output;
  } catch (error) {
    throw error instanceof TransportError ? error : unreadable();
  } finally {
    output?.destroy();
    await reads.return?.();
  }
}

async function* all(first: Uint8Array, reads: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (;;) {
    const { value, done } = await reads.next();
    if (done) return;
    yield value;
  }
}
