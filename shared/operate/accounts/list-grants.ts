/** View: grants, newest ids first, of all accounts or of one. */
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
  const found: WrittenGrant[] = [];
  for await (const page of ledger.grants(account)) {
    onProgress(page.length);
    found.push(...page.filter(({ applied }) => !open || applied === undefined));
  }
  const sorted = found.toSorted(
    (a, b) => compareCodeUnits(b.applied ?? '~', a.applied ?? '~') || compareCodeUnits(b.grantId, a.grantId),
  );
  return { grants: sorted.slice(0, limit).map(safe), count: found.length };
}

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
