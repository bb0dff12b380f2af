import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { newSecretKey } from '../../adapters/system/secret-keys.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { keyHint } from '../../wire/name-patterns.ts';
import { judgeKey } from './key-state.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface CreateOptions {
  account: string;
  models?: string[];
  official?: boolean;
  expires?: string;
  maxConcurrency?: number;
  rpm?: number;
}

/** @returns the key, which is shown too */
export async function createKey(session: Session, options: CreateOptions, nowMs: number): Promise<string> {
  const secretKey = newSecretKey();
  const row: RawRow = {
    hash: keyHash(secretKey),
    account: options.account,
    hint: keyHint(secretKey),
    enabled: true,
    ...(options.models && { models: options.models }),
    ...(options.official && { official: true }),
    ...(options.expires !== undefined && { expires_at: options.expires }),
    ...(options.maxConcurrency !== undefined && { max_concurrency: options.maxConcurrency }),
    ...(options.rpm !== undefined && { rpm: options.rpm }),
    _created: isoTime(nowMs),
  };
  const verdict = judgeKey(row, nowMs);
  if (verdict.state !== 'usable') throw usageFailure(`this key would not work: ${verdict.why}`);
  await addAccount(session, options.account);
  if (!(await session.tables.create('keys', row))) throw new Failure('no key was made: repeat the command');
  showOnce(session, secretKey, row, verdict.why);
  return secretKey;
}

async function addAccount(session: Session, account: string): Promise<void> {
  const reading = readRow(AccountRow, { account });
  if ('problem' in reading) throw usageFailure(`account: ${reading.problem}`);
  if (await session.tables.create('accounts', { account })) remark(`account ${account} is new`);
}

/** The one moment at which a key can be read: it is stored nowhere. */
export function showOnce(session: Session, secretKey: string, row: RawRow, rights: string): void {
  if (session.json) {
    sayJson({ key: secretKey, hash: row['hash'], hint: row['hint'], account: row['account'] });
    return;
  }
  say('');
  say(`  ${secretKey}`);
  say('');
  say('Copy it now: only its hash is stored, so nobody can show it again.');
  say(`Account ${String(row['account'])}; ${rights}. It works within 5 seconds.`);
}
