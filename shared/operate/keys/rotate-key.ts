/** Makes a key with the row of an old one, which gets an end: both in one step, or neither. */
import { isoTime } from '../../wire/iso-time.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow } from '../row-tables.ts';
import { makeKey, type MadeKey } from './create-key.ts';
import { findKey } from './find-key.ts';
import { keyState } from './key-state.ts';

const hourMs = 3_600_000;
const graceHoursMax = 24 * 366;

/** The new row, which gets hash and hint when the key is made, and the end of the old one. */
export interface RotateKeyChange {
  row: RawRow;
  old: { key: string; attributes: { expires_at: string }; unchanged: RawRow };
}

export interface RotateKeyPlan extends Plan<RotateKeyChange> {
  changes: [RotateKeyChange];
  account: string;
  /** What the key may do, in words. */
  rights: string;
  /** How to call the old key in a message. */
  oldName: string;
}

export interface RotatedKey extends MadeKey {
  oldName: string;
  /** ISO 8601. */
  oldWorksUntil: string;
}

/** @param written the old key as an operator names it: see findKey */
export async function planRotateKey(
  ports: OperatorPorts,
  { written, graceHours }: { written: string; graceHours: number },
): Promise<RotateKeyPlan> {
  if (!(graceHours >= 0 && graceHours <= graceHoursMax))
    throw usageFailure(`--grace ${graceHours}: wanted hours from 0 to ${graceHoursMax}`);
  const old = await findKey(ports, written);
  const nowMs = ports.clock.now();
  const { state, why, row: read } = keyState(old.row, nowMs);
  if (read === undefined || state !== 'usable')
    throw new Failure(`${old.name} does not work (${why}), so a copy would not either`);
  const kept = Object.entries(old.row).filter(([name]) => !name.startsWith('_'));
  const end = isoTime(Math.min(nowMs + graceHours * hourMs, read.expires_at ?? Infinity));
  const change = {
    row: { ...Object.fromEntries(kept), _created: isoTime(nowMs), _replaces: old.hash },
    // Somebody may disable the old key at this moment: then there must be no new one.
    old: { key: old.hash, attributes: { expires_at: end }, unchanged: { enabled: old.row['enabled'] } },
  };
  return {
    changes: [change],
    effect: [`a new key of account ${read.account}: ${why}`, `${old.name} works until ${end}`],
    questions: graceHours === 0 ? [`Refuse ${old.name} at once?`] : [],
    account: read.account,
    rights: why,
    oldName: old.name,
  };
}

export async function carryOutRotateKey(
  ports: OperatorPorts,
  { changes: [change], account, rights, oldName }: RotateKeyPlan,
): Promise<RotatedKey> {
  const { row, old } = change;
  const made = makeKey(ports);
  await ports.tables.succeed('keys', { ...row, hash: made.hash, hint: made.hint }, old);
  return { ...made, account, rights, oldName, oldWorksUntil: old.attributes.expires_at };
}
