/** The counter of a key's budget: its item in `runtime`, and the writes that change it. */
import type { TransactWriteItem, UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { budgetUseOf, type BudgetUse } from '../../billing/budget-use.ts';
import { ledgerTimeMs, type CloseRow } from '../../billing/ledger-row.ts';
import { physicalTableName } from '../../tables/table-names.ts';

export const budgetCounterId = ({ key, period }: { key: string; period: string }): string =>
  `budget#${key}#${period}`;

/**
 * Adds to what is used, and to the number of calls that hold some. Creates the counter if there is none.
 * `expires`: Unix seconds; holds for a counter that has no time yet.
 */
export const budgetChange = (
  expires: number,
  { used, running }: BudgetUse,
): Pick<
  UpdateItemCommandInput,
  'UpdateExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
> => ({
  UpdateExpression: 'ADD used :used, running :running SET #expires = if_not_exists(#expires, :expires)',
  ExpressionAttributeNames: { '#expires': 'expires' },
  ExpressionAttributeValues: marshall({ ':used': used, ':running': running, ':expires': expires }),
});

/** A month, and some days in which its last calls end. */
const keptSeconds = 40 * 24 * 60 * 60;

/** For the transaction that puts these ledger rows: what the calls did not spend of their budgets becomes free. */
export function countInBudgets(stack: string, rows: readonly CloseRow[]): TransactWriteItem[] {
  const changes = new Map<string, { use: BudgetUse; expires: number }>();
  for (const row of rows) {
    if (row.budget === undefined) continue;
    const id = budgetCounterId({ key: row.key, period: row.budget });
    const { used, running } = budgetUseOf(row);
    const { use } = changes.get(id) ?? { use: { used: 0n, running: 0 } };
    const expires = Math.ceil(ledgerTimeMs(row) / 1000) + keptSeconds;
    changes.set(id, { use: { used: use.used + used, running: use.running + running }, expires });
  }
  return [...changes].map(([id, { use, expires }]) => ({
    Update: {
      TableName: physicalTableName(stack, 'runtime'),
      Key: marshall({ id }),
      ...(budgetChange(expires, use) as { UpdateExpression: string }),
    },
  }));
}
