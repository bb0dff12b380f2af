/**
 * Creates a key for an account, and the account if it does not exist. The key is in the result and stored
 * nowhere.
 */
import { isAccountOff } from '../../config/rows/account-row.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { keyHint } from '../../wire/name-patterns.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import { findAccount } from '../find-account.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { carryOutWrites } from '../row-writes.ts';
import { keyState } from './key-state.ts';
import { unservedModels } from './unserved-models.ts';

export interface NewKeyInput {
  account: string;
  models?: string[];
  official?: boolean;
  expires?: string;
  maxConcurrency?: number;
  rpm?: number;
  /** Undefined: as the setting `store` says. */
  store?: boolean;
}

/** `makeKey` adds hash and hint to the key's row when the plan is carried out. */
export interface NewKeyPlan extends Plan<RowWrite> {
  account: string;
  /** What the key may do, in words. */
  rights: string;
}

export interface MadeKey {
  /** The key. It cannot be shown again. */
  secretKey: string;
  hash: string;
  hint: string;
}

export async function planCreateKey(
  ports: OperatorPorts,
  { account, models, official, expires, maxConcurrency, rpm, store }: NewKeyInput,
): Promise<NewKeyPlan> {
  const nowMs = ports.clock.now();
  const row: RawRow = {
    account,
    enabled: true,
    ...(models && { models }),
    ...(official && { official: true }),
    ...(expires !== undefined && { expires_at: expires }),
    ...(maxConcurrency !== undefined && { max_concurrency: maxConcurrency }),
    ...(rpm !== undefined && { rpm }),
    ...(store !== undefined && { store }),
    _created: isoTime(nowMs),
  };
  const { state, why: rights } = keyState({ ...row, hash: keyHash('of the key to be made') }, nowMs);
  if (state !== 'usable') throw usageFailure(`this key would not work: ${rights}`);
  const found = await findAccount(ports, account, true);
  return {
    // Without a conflict: nobody else can have made a row of this key's hash. The reply to an earlier try was lost.
    changes: [...found.changes, { kind: 'create', table: 'keys', row }],
    effect: [...found.effect, `a key of account ${account}: ${rights}`],
    questions: [],
    warnings: [
      ...(isAccountOff(found.row)
        ? [`account ${account} is off: the key is refused until \`customer enable ${account}\``]
        : []),
      ...(await unservedModels(ports, models)),
    ],
    account,
    rights,
  };
}

export async function carryOutCreateKey(
  ports: OperatorPorts,
  plan: NewKeyPlan,
): Promise<MadeKey & { made: RowWrite[] }> {
  const { changes, ...key } = makeKey(ports, plan);
  return { ...key, made: await carryOutWrites(ports, { ...plan, changes }) };
}

/** Generates a key. The returned changes are those of the plan, with hash and hint in the key's row. */
export function makeKey({ random }: OperatorPorts, plan: Plan<RowWrite>): MadeKey & { changes: RowWrite[] } {
  const secretKey = random.secretKey();
  const [hash, hint] = [keyHash(secretKey), keyHint(secretKey)];
  const changes = plan.changes.map((write) =>
    write.table === 'keys' && write.kind === 'create'
      ? { ...write, row: { ...write.row, hash, hint } }
      : write,
  );
  return { secretKey, hash, hint, changes };
}
