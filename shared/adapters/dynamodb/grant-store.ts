/** Reads rows of `grants` and applies each once, in a transaction with its ledger row. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { parseYuan } from '../../billing/money.ts';
import {
  formatGrantLedgerId,
  unappliedMark,
  type GrantLedgerRow,
  type WrittenGrant,
} from '../../billing/ledger-row.ts';
import type { AppliedGrant, GrantMarks, GrantStore, GrantImage } from '../../relay/ports/money-stores.ts';
import { Poisoned, StoreBusy } from '../../relay/ports/store-errors.ts';
import { divideEvenly } from '../../billing/shares.ts';
import {
  buildExpressions,
  changeIfUnchanged,
  Table,
  valuesOf,
  type Attributes,
  type TableClient,
} from './table-client.ts';
import { buildShardName } from './quotas/quota-items.ts';
import { shardsMax } from './quotas/whole-account.ts';
import { writeTransaction } from './transactions.ts';
import { countInDaily } from './daily-sums.ts';
import { encodeLedgerRow } from './ledger-store.ts';

/**
 * States of a grant:
 *
 *     written --apply: ledger row and balance--> applied --mark--> applied and marked
 */
const isNotInLedger = 'attribute_not_exists(id)';
const isNotMarked = 'attribute_not_exists(#_applied)';

export function createGrantStore(client: TableClient, stack: string): GrantStore {
  const ledger = new Table(client, stack, 'ledger');
  const grants = new Table(client, stack, 'grants');
  const quotas = new Table(client, stack, 'quotas');
  const accounts = new Table(client, stack, 'accounts');
  return {
    async find(account, grantId) {
      const item = await ledger.get({ account, id: formatGrantLedgerId(grantId) });
      return item && readAppliedGrant(item);
    },
    hasAccount: async (account) => (await accounts.get({ account })) !== undefined,
    async apply(row) {
      const shardCount = await readShardCount(quotas, row.account);
      const TransactItems = [
        putOnce(ledger.name, row),
        ...addToBalance(quotas, row, shardCount),
        ...countInDaily(stack, [row]),
      ];
      const reply = await writeTransaction(client, TransactItems);
      if (reply.done) return { amount: row.amount, at: row.at };
      const [appliedBefore] = reply.refused;
      if (appliedBefore) return readAppliedGrant(appliedBefore);
      if (reply.invalid)
        throw new Poisoned("grants: the account's item does not take the amount", { cause: reply.error });
      throw new StoreBusy('The transaction did not go through.', { cause: reply.error });
    },
    async mark(account, grantId, marks) {
      await grants.update({ account, grant_id: grantId }, buildMarkUpdate(marks));
    },
    async *unapplied() {
      const { _unapplied: mark } = unappliedMark;
      const index = { IndexName: 'unapplied', ConsistentRead: undefined };
      const input = buildExpressions({ KeyConditionExpression: '#_unapplied = :mark' }, { ':mark': mark });
      for await (const page of grants.readPages('Query', { ...index, ...input })) {
        const keys = page.map(({ account, grant_id }) => ({ account, grant_id }) as Attributes);
        yield* (await grants.read(keys)).map(readGrantImage);
      }
    },
    async *unmarked({ part, of }) {
      const filter = buildExpressions({ FilterExpression: isNotMarked });
      const input = { ...filter, Segment: part, TotalSegments: of };
      for await (const items of grants.readPages('Scan', input)) yield* items.map(readGrantImage);
    },
  };
}

const putOnce = (TableName: string, row: GrantLedgerRow): TransactWriteItem => ({
  Put: {
    TableName,
    Item: encodeLedgerRow(row),
    ConditionExpression: isNotInLedger,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  },
});

/** Unreadable counts as one: the write then reports what is wrong with the item. */
async function readShardCount(quotas: Table, account: string): Promise<number> {
  const parts = Number((await quotas.get({ account }))?.['parts']?.N);
  return parts <= shardsMax ? parts : 1;
}

/**
 * The first grant creates the item with its maps, because later writes cannot create parent maps. All shards get their part,
 * if their number is unchanged. A negative grant may overdraw any of them.
 */
function addToBalance(
  quotas: Table,
  { account, amount }: GrantLedgerRow,
  shardCount: number,
): TransactWriteItem[] {
  const marks = amount < 0n && shardCount > 1;
  const UpdateExpression = `SET available = if_not_exists(available, :zero) + :amount,
      granted = if_not_exists(granted, :zero) + :amount, spent = if_not_exists(spent, :zero),
      settled = if_not_exists(settled, :zero), #open = if_not_exists(#open, :none),
      #plan = if_not_exists(#plan, :none), #rate = if_not_exists(#rate, :none)
      ${marks ? ', overdraft = :overdraft' : ''}`;
  const ConditionExpression = shardCount === 1 ? wasNeverSplit : hasSameShardCount;
  return divideEvenly(amount, shardCount).map((share, shard) => ({
    Update: {
      ...quotas.keyInput({ account: buildShardName({ account, shard }) }),
      ...buildExpressions(
        { UpdateExpression, ConditionExpression },
        { ':amount': share, ':zero': 0, ':none': {}, ':parts': shardCount, ':overdraft': marks || undefined },
      ),
    },
  }));
}

const hasSameShardCount = '#parts = :parts';
const wasNeverSplit = `(attribute_not_exists(#parts) OR ${hasSameShardCount})`;

function readAppliedGrant({ amount, at }: Attributes): AppliedGrant {
  const applied = parseYuan(amount?.N ?? '');
  if (applied === undefined || at?.S === undefined)
    throw new Poisoned('ledger: the row of a grant is unreadable');
  return { amount: applied, at: at.S };
}

const buildMarkUpdate = ({ applied, problem, warning }: GrantMarks) =>
  changeIfUnchanged(
    { key: 'account', names: [], stored: {} },
    {
      ...(applied !== undefined && { _applied: applied, _unapplied: undefined }),
      _problem: problem,
      _warning: warning,
    },
  );

/** Numbers stay text, which the schema parses exactly. Throws Poisoned if the key is missing. */
export function readGrantImage(attributes: Attributes): GrantImage {
  const texts = Object.entries(attributes).flatMap(([name, { N }]) => (N === undefined ? [] : [[name, N]]));
  const { account, grant_id, ...rest } = { ...valuesOf(attributes), ...Object.fromEntries(texts) };
  if (typeof account !== 'string' || typeof grant_id !== 'string')
    throw new Poisoned('grants: a row without its key');
  return { account, grant_id, ...rest };
}

export const readWrittenGrant = (item: Attributes): WrittenGrant => ({
  account: item['account']?.S ?? '',
  grantId: item['grant_id']?.S ?? '',
  amount: item['amount']?.N ?? item['amount']?.S ?? 'nothing',
  applied: item['_applied']?.S,
  problem: item['_problem']?.S,
  warning: item['_warning']?.S,
  reason: item['reason']?.S,
});
