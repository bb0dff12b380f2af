/** Stores redeem codes in `codes`. A redemption marks the code and writes its grant in one transaction. */
import { formatYuan } from '../../billing/money.ts';
import type { CodeStore } from '../../relay/account/redeem-code.ts';
import { putGrant } from './payment-store.ts';
import { buildExpressions, Table, valuesOf, type TableClient } from './table-client.ts';
import { writeUnlessRefused } from './transactions.ts';

/** Compares the amount, too: after an edit between read and write, the old amount must not be credited. */
const isOpen = 'amount = :amount AND attribute_not_exists(redeemed_by) AND attribute_not_exists(revoked_at)';

export function createCodeStore(client: TableClient, stack: string): CodeStore {
  const codes = new Table(client, stack, 'codes');
  const grants = new Table(client, stack, 'grants');
  return {
    async find(hash) {
      const item = await codes.get({ hash });
      return item && valuesOf(item);
    },
    async redeem({ hash }, grant, at) {
      const update = buildExpressions(
        { UpdateExpression: 'SET redeemed_by = :account, redeemed_at = :at', ConditionExpression: isOpen },
        { ':account': grant.account, ':at': at, ':amount': Number(formatYuan(grant.amount)) },
      );
      // Overwrite a grant row with this id: it exists if only `codes` was restored, and the ledger still credits the id once.
      const { ConditionExpression: _, ...put } = putGrant(grants.name, grant).Put;
      const writes = [{ Update: { ...codes.keyInput({ hash }), ...update } }, { Put: put }];
      return (await writeUnlessRefused(client, writes)).length === 0;
    },
  };
}
