/** View: whether the balances of some customers add up by themselves. The quick part of an audit: it reads no ledger row. */
import { formatYuan } from '../../billing/amount.ts';
import { imbalance } from '../../billing/quota-item.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface AuditedBalances {
  /** How many were looked at, in the order of the table `accounts`. */
  count: number;
  findings: { account: string; finding: string }[];
  /** Where the next ones begin. Undefined: these were the last. */
  next: string | undefined;
}

export async function auditBalances(
  { ledger, pages }: Pick<OperatorPorts, 'ledger' | 'pages'>,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<AuditedBalances> {
  const { rows, next } = await pages.rows({ table: 'accounts', after, limit });
  const names = rows.map(({ account }) => String(account));
  const balances = await ledger.quotas(names);
  return {
    count: names.length,
    findings: balances.flatMap((each) => {
      if ('problem' in each) return [{ account: each.key, finding: each.problem }];
      const { account, moved } = each.row;
      const difference = imbalance(each.row);
      if (difference !== undefined)
        return [
          { account, finding: `differs by ${formatYuan(difference)} yuan from what was granted and spent` },
        ];
      return moved === 0n
        ? []
        : [
            {
              account,
              finding: `${formatYuan(moved)} yuan are between its parts: an audit of the customer says why`,
            },
          ];
    }),
    next,
  };
}
