/** Carries out plans whose changes are row writes. */
import { Failure, type Plan, usable, usageFailure } from './plan.ts';
import type { OperatorPorts, RowWrite, RawRow } from './operator-ports.ts';
import { AccountRow } from '../config/rows/account-row.ts';
import { readRow, plainRow } from '../config/rows/read-row.ts';
import { canonicalJson } from '../wire/json.ts';
import { fingerprint } from '../wire/fingerprint.ts';

/**
 * Carries out the writes in order and throws at the first write that fails with a `conflict`.
 * @param onProgress called with the number of further writes that were tried
 * @returns the writes that were made; failed writes without a `conflict` are left out
 */
export async function carryOutWrites(
  { tables }: Pick<OperatorPorts, 'tables'>,
  { changes, refusal }: Plan<RowWrite>,
  onProgress?: (count: number) => void,
): Promise<RowWrite[]> {
  if (refusal !== undefined) throw new Failure(refusal);
  const made: RowWrite[] = [];
  for (const write of changes) {
    if (await tables.write(write)) made.push(write);
    else if (write.conflict) throw write.conflict;
    onProgress?.(1);
  }
  return made;
}

// Finds the row of the account to change. A mistyped name must not create an account.

/** What cannot be seen looks like another customer's name, and no address of a page can be `..`. */
const newName = /^(?!\.+$)[^\p{C}]{1,200}$/u;

interface FoundAccount {
  row: RawRow;
  /** The writes that create the account; empty: it exists. `effect` describes them. */
  changes: RowWrite[];
  effect: string[];
}

/** Throws a Failure if the account does not exist and `isNew` is false. */
export async function findAccount(
  { tables }: OperatorPorts,
  account: string,
  isNew = false,
): Promise<FoundAccount> {
  const row = { account };
  usable(readRow(AccountRow, row));
  const found = await tables.get('accounts', account);
  if (found) return { row: found, changes: [], effect: [] };
  if (!isNew)
    throw usageFailure(
      `there is no account ${account}: make it with its first key, or by a grant with --new`,
    );
  if (!newName.test(account))
    throw usageFailure(
      'account: a new name has at most 200 characters, all of which one sees, and more than dots',
    );
  return {
    row,
    changes: [{ kind: 'create', table: 'accounts', row }],
    effect: [`account ${account} is new`],
  };
}

// Whether a row is still as an operator looked at it: a form loaded before the edit of somebody else must not undo it.

/** Of a row, or of the part of one that is edited alone. Short, and of no use to anybody else. */
export const rowMark = (row: unknown): string => fingerprint(canonicalJson(plainRow(row)) ?? '');

/**
 * Throws a Failure if the row is not as it was looked at.
 * @param name what an operator calls it
 * @param seen its `rowMark` then; undefined: it was not looked at, so nothing is compared
 */
export function refuseChanged(name: string, row: unknown, seen: string | undefined): void {
  if (seen !== undefined && rowMark(row) !== seen)
    throw new Failure(`${name} was changed by somebody else meanwhile: look at it again, then repeat`);
}
