/** Inflates with Node's zlib, at once: how much one call may inflate is bounded, and nothing of it is kept. */
import { inflateSync } from 'node:zlib';
import type { Inflate } from '../../relay/ports/inflate.ts';

export const zlibInflate: Inflate = (bytes, lengthMax) => {
  try {
    return inflateSync(bytes, { maxOutputLength: Math.max(1, lengthMax) }).toString('latin1');
  } catch {
    return undefined;
  }
};
