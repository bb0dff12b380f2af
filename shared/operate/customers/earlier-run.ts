/** Finds what an earlier run of `customer new` left, and refuses an account that is somebody's already. Writes nothing. */
import type { WrittenGrant } from '../../billing/grant.ts';
import { isAccountOff } from '../../config/rows/account-row.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { listKeys } from '../keys/list-keys.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

/** A note on the key that `customer new` makes. */
export const keyMark = { _made_with: 'customer new' } as const;

export interface EarlierRun {
  /** The row of the account. Undefined: there was no earlier run. */
  row: RawRow | undefined;
  grants: WrittenGrant[];
  /** Usable keys that it made, which nobody has used. */
  keys: { hash: string; hint: string; created: string }[];
}

/** Throws a Failure if the account has called, or has keys that were made in another way. */
export async function earlierRun(ports: OperatorPorts, account: string): Promise<EarlierRun> {
  const { tables, ledger } = ports;
  const [row, quota, grants, found] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    Array.fromAsync(ledger.grants(account)),
    listKeys(ports, { account }),
  ]);
  const item = quota && 'row' in quota ? quota.row : undefined;
  const hasCalled = item !== undefined && (item.settled > 0 || item.open.size > 0 || item.spent > 0n);
  if (isAccountOff(row))
    throw usageFailure(
      `account ${account} is switched off: \`customer enable ${account}\` lets it call again`,
    );
  const keys = found.map((each) => each.row);
  const isUnreadable = quota !== undefined && item === undefined;
  const isOfAnother = keys.some((key) => key['_made_with'] !== keyMark._made_with);
  if (hasCalled || isUnreadable || isOfAnother)
    throw usageFailure(
      `${account} is a customer already: see \`customer show ${account}\`; \`key create\` makes a key, \`account grant\` tops up`,
    );
  return {
    row,
    grants: grants.flat(),
    keys: keys
      .filter(({ enabled }) => enabled !== false)
      .map((key) => ({
        hash: textOf(key, 'hash'),
        hint: textOf(key, 'hint'),
        created: textOf(key, '_created') || 'a time that is not known',
      })),
  };
}
