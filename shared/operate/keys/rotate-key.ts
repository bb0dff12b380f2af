/** Creates a key with the attributes of an old one and sets the old key's expiry, both in one transaction. */
import { textOf } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { makeKey, type MadeKey, type NewKeyPlan } from './create-key.ts';
import { findKey } from './find-key.ts';
import { keyState } from './key-state.ts';
import { listKeys } from './list-keys.ts';

const hourMs = 3_600_000;
const graceHoursMax = 24 * 366;

export interface RotateKeyPlan extends NewKeyPlan {
  /** The old key's name in messages. */
  oldName: string;
  /** ISO 8601. */
  oldWorksUntil: string;
}

/** @param written the old key, in a form that `findKey` accepts */
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
  const earlier = (await listKeys(ports, { account: read.account })).filter(
    (each) => each.row['_replaces'] === old.hash && each.state === 'usable',
  );
  const kept = Object.entries(old.row).filter(([name]) => !name.startsWith('_'));
  const end = isoTime(Math.min(nowMs + graceHours * hourMs, read.expires_at ?? Infinity));
  const row = { ...Object.fromEntries(kept), _created: isoTime(nowMs), _replaces: old.hash };
  return {
    changes: [
      { kind: 'create', table: 'keys', row },
      {
        kind: 'update',
        table: 'keys',
        key: { hash: old.hash },
        attributes: { expires_at: end },
        // If the old key is disabled or rotated in the meantime, no new key must be created.
        unchanged: { enabled: old.row['enabled'], expires_at: old.row['expires_at'] },
      },
    ],
    effect: [`a new key of account ${read.account}: ${why}`, `${old.name} works until ${end}`],
    questions: [graceHours === 0 ? `Refuse ${old.name} at once?` : `Let ${old.name} end at ${end}?`],
    warnings: earlier.map(
      ({ row }) =>
        `it was rotated before: ${textOf(row, 'hint')} replaces it already; nobody has that key? key disable ${textOf(row, 'hash').slice(0, 12)}`,
    ),
    account: read.account,
    rights: why,
    oldName: old.name,
    oldWorksUntil: end,
  };
}

export async function carryOutRotateKey(ports: OperatorPorts, plan: RotateKeyPlan): Promise<MadeKey> {
  const { changes, ...key } = makeKey(ports, plan);
  await ports.tables.writeTogether(changes);
  return key;
}
