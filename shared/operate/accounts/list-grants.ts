/** View: grants, those that are not applied first, then the newest, of all accounts or of one. Holds few more than it shows. */
import type { WrittenGrant } from '../../billing/grant.ts';
import { parseYuan } from '../../billing/amount.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface GrantsWanted {
  account?: string | undefined;
  /** Only those that the relay has not applied, or does not take. */
  open?: boolean | undefined;
  limit: number;
}

export interface GrantList {
  grants: WrittenGrant[];
  /** All that fit, with those beyond the limit. */
  count: number;
}

/** What stands in the place of an amount, and is none, may be anything, so it is not shown. */
const safe = (grant: WrittenGrant): WrittenGrant => ({
  ...grant,
  amount: parseYuan(grant.amount) === undefined ? '?' : grant.amount,
});

/** @param onProgress called with the number of further rows that were read */
export async function listGrants(
  { ledger }: Pick<OperatorPorts, 'ledger'>,
  { account, open = false, limit }: GrantsWanted,
  onProgress: (count: number) => void,
): Promise<GrantList> {
  const firstOf = (grants: WrittenGrant[]): WrittenGrant[] => grants.toSorted(byApplied).slice(0, limit);
  let kept: WrittenGrant[] = [];
  let count = 0;
  for await (const page of ledger.grants(account)) {
    onProgress(page.length);
    const found = page.filter(({ applied }) => !open || applied === undefined);
    count += found.length;
    kept.push(...found);
    // Not after each page: with a high limit, that would sort the same rows again and again.
    if (kept.length > 2 * limit) kept = firstOf(kept);
  }
  return { grants: firstOf(kept).map(safe), count };
}

/** Those that are not applied first, then the newest. */
const byApplied = (a: WrittenGrant, b: WrittenGrant): number =>
  compareCodeUnits(b.applied ?? '~', a.applied ?? '~') || compareCodeUnits(b.grantId, a.grantId);

/** Throws a Failure if there is none. */
export async function showGrant(
  { ledger }: Pick<OperatorPorts, 'ledger'>,
  { account, id }: { account: string; id: string },
): Promise<WrittenGrant> {
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  const found = grants.find(({ grantId }) => grantId === id);
  if (!found)
    throw usageFailure(`account ${account} has no grant ${id}: see \`grant list --account ${account}\``);
  return safe(found);
}
