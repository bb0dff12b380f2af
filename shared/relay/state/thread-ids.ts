/**
 * Ids of answers whose conversation an upstream holds: the client's id is a seal of the vendor's, so nothing is stored, and no client
 * can name an answer of another account, nor say that a conversation is shorter than it is.
 */
import { asRecord, parseJson } from '../../wire/json.ts';
import type { HeldThread } from '../../wire/turn-state.ts';
import type { Sealer } from '../ports/host.ts';

const prefix = 'msg_';
/** Of the relay's own ids, which have some 400 characters. */
const lengthMax = 2_048;
const vendorIdPattern = /^[\w.:-]{1,128}$/;

/** Undefined: the vendor's id is none. */
export const createThreadId = (sealer: Sealer, account: string, thread: HeldThread): string | undefined =>
  vendorIdPattern.test(thread.id) ? prefix + sealer.seal(JSON.stringify({ account, thread })) : undefined;

/** Undefined: it is of another account, of no thread, damaged, or too old. */
export function openThreadId(sealer: Sealer, account: string, id: string): HeldThread | undefined {
  if (!id.startsWith(prefix) || id.length > lengthMax) return undefined;
  const opened = sealer.open(id.slice(prefix.length));
  if (typeof opened === 'string') return undefined;
  const { account: owner, thread } = asRecord(parseJson(opened.text));
  // Nobody but the relay seals.
  return owner === account ? (thread as HeldThread | undefined) : undefined;
}
