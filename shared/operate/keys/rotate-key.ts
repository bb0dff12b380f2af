import { Failure, usageFailure } from '../operator-failure.ts';
import { findKey } from './find-key.ts';
import { showOnce } from './create-key.ts';
import { newSecretKey } from '../../adapters/system/secret-keys.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { keyHint } from '../../wire/name-patterns.ts';
import { judgeKey } from './key-state.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { confirm, remark } from '../../../infra/ops/cli/terminal/terminal.ts';

const hourMs = 3_600_000;
const graceHoursMax = 24 * 366;

/** Makes a key with the row of an old one, which gets an end: both in one step, or neither. */
export async function rotateKey(
  session: Session,
  written: string,
  options: { grace: number; yes?: boolean },
  nowMs: number,
): Promise<void> {
  if (!(options.grace >= 0 && options.grace <= graceHoursMax)) {
    throw usageFailure(`--grace ${options.grace}: wanted hours from 0 to ${graceHoursMax}`);
  }
  const old = await findKey(session, written);
  const verdict = judgeKey(old.row, nowMs);
  if (verdict.row === undefined || verdict.state !== 'usable') {
    throw new Failure(`${old.name} does not work (${verdict.why}), so a copy would not either`);
  }
  if (options.grace === 0) await confirm(`Refuse ${old.name} at once?`, options);

  const secretKey = newSecretKey();
  const kept = Object.entries(old.row).filter(([name]) => !name.startsWith('_'));
  const row = {
    ...Object.fromEntries(kept),
    hash: keyHash(secretKey),
    hint: keyHint(secretKey),
    _created: isoTime(nowMs),
    _replaces: old.hash,
  };
  const end = Math.min(nowMs + options.grace * hourMs, verdict.row.expires_at ?? Infinity);
  // Somebody may disable the old key at this moment: then there must be no new one.
  const unchanged = { enabled: old.row['enabled'] };
  await session.tables.succeed('keys', row, old.hash, { expires_at: isoTime(end) }, unchanged);
  showOnce(session, secretKey, row, verdict.why);
  remark(`${old.name} works until ${isoTime(end)}.`);
}
