/**
 * Seals the vendor's id of a message thread into the client's id, so nothing is stored. A client can neither continue a thread of
 * another account nor claim that a conversation is shorter than it is.
 */
import { asRecord, parseJson } from '../../wire/json.ts';
import type { HeldThread } from '../../wire/turn-state.ts';
import type { Sealer } from '../ports/host.ts';

const prefix = 'msg_';
/** Longer ids are not the relay's, which have about 400 characters. */
const lengthMax = 2_048;
const vendorIdPattern = /^[\w.:-]{1,128}$/;

/** Returns undefined if the vendor's id is invalid. */
export const createThreadId = (sealer: Sealer, account: string, thread: HeldThread): string | undefined =>
  vendorIdPattern.test(thread.id) ? prefix + sealer.seal(JSON.stringify({ account, thread })) : undefined;

/** Returns undefined if the id belongs to another account or to no thread, or is damaged or too old. */
export function openThreadId(sealer: Sealer, account: string, id: string): HeldThread | undefined {
  if (!id.startsWith(prefix) || id.length > lengthMax) return undefined;
  const opened = sealer.open(id.slice(prefix.length));
  if (typeof opened === 'string') return undefined;
  const { account: owner, thread } = asRecord(parseJson(opened.text));
  // Only the relay can seal, so the content needs no check.
  return owner === account ? (thread as HeldThread | undefined) : undefined;
}
