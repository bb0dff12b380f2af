/** Makes a key for an account, and the account if there is none. The key itself is in the result alone, stored nowhere. */
import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { keyHint } from '../../wire/name-patterns.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow } from '../row-tables.ts';
import type { NewRow } from '../row-writes.ts';
import { keyState } from './key-state.ts';

export interface NewKeyInput {
  account: string;
  models?: string[];
  official?: boolean;
  expires?: string;
  maxConcurrency?: number;
  rpm?: number;
}

/** The row of the key gets hash and hint when the key is made. */
export interface NewKeyPlan extends Plan<NewRow> {
  account: string;
  /** What the key may do, in words. */
  rights: string;
}

export interface MadeKey {
  /** The key: nobody can show it again. */
  secretKey: string;
  hash: string;
  hint: string;
  account: string;
  rights: string;
}

export interface CreatedKey extends MadeKey {
  isNewAccount: boolean;
}

export async function planCreateKey(
  { tables, clock }: OperatorPorts,
  { account, models, official, expires, maxConcurrency, rpm }: NewKeyInput,
): Promise<NewKeyPlan> {
  const nowMs = clock.now();
  const row: RawRow = {
    account,
    enabled: true,
    ...(models && { models }),
    ...(official && { official: true }),
    ...(expires !== undefined && { expires_at: expires }),
    ...(maxConcurrency !== undefined && { max_concurrency: maxConcurrency }),
    ...(rpm !== undefined && { rpm }),
    _created: isoTime(nowMs),
  };
  const { state, why: rights } = keyState({ ...row, hash: keyHash('of the key to be made') }, nowMs);
  if (state !== 'usable') throw usageFailure(`this key would not work: ${rights}`);
  const reading = readRow(AccountRow, { account });
  if ('problem' in reading) throw usageFailure(`account: ${reading.problem}`);
  const isNewAccount = (await tables.get('accounts', account)) === undefined;
  const newAccount: NewRow = { kind: 'create', table: 'accounts', row: { account } };
  const newKey: NewRow = { kind: 'create', table: 'keys', row };
  return {
    changes: isNewAccount ? [newAccount, newKey] : [newKey],
    effect: [
      ...(isNewAccount ? [`account ${account} is new`] : []),
      `a key of account ${account}: ${rights}`,
    ],
    questions: [],
    account,
    rights,
  };
}

export async function carryOutCreateKey(ports: OperatorPorts, plan: NewKeyPlan): Promise<CreatedKey> {
  const { account, rights } = plan;
  const made = { ...makeKey(ports), account, rights };
  const { hash, hint } = made;
  let isNewAccount = false;
  for (const { table, row } of plan.changes) {
    const isCreated = await ports.tables.create(table, table === 'keys' ? { ...row, hash, hint } : row);
    if (table === 'accounts') isNewAccount = isCreated;
    else if (!isCreated) throw new Failure('no key was made: repeat the command');
  }
  return { ...made, isNewAccount };
}

export function makeKey({ random }: OperatorPorts): Pick<MadeKey, 'secretKey' | 'hash' | 'hint'> {
  const secretKey = random.secretKey();
  return { secretKey, hash: keyHash(secretKey), hint: keyHint(secretKey) };
}
