/** Counts calls of keys, and budgets of keys and tags, in `runtime`: `rate#<key>#<minute>` and `budget#<key>#<period>`. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import {
  type BudgetName,
  type BudgetUse,
  budgetUseOf,
  findLedgerTimeMs,
  listBudgetCounters,
  type CloseRow,
} from '../../billing/ledger-row.ts';
import type { KeyCounters } from '../../relay/ports/runtime-stores.ts';
import { physicalNameOf } from '../../tables/table-names.ts';
import {
  attributesOf,
  buildExpressions,
  callOrThrowBusy,
  singleAttempt,
  Table,
  type Attributes,
  type TableClient,
} from './table-client.ts';

const minuteSeconds = 60;
/** Kept longer than a minute, because clocks differ. */
const rateKeptSeconds = 5 * minuteSeconds;

export function createKeyCounters(client: TableClient, stack: string): KeyCounters {
  const table = new Table(client, stack, 'runtime');
  const update = async (id: string, write: ReturnType<typeof buildExpressions>) => {
    const returned = {
      ReturnValues: 'UPDATED_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    } as const;
    const input = { ...table.keyInput({ id }), ...returned, ...write };
    const reply = await callOrThrowBusy(() => client.call('UpdateItem', input, singleAttempt));
    return { done: reply.done, item: (reply.done ? reply.reply.Attributes : reply.item) ?? {} };
  };

  return {
    async countCall(key, minute, max) {
      const write = buildExpressions(
        {
          UpdateExpression: 'ADD calls :one SET #expires = :expires',
          ConditionExpression: 'attribute_not_exists(calls) OR calls < :max',
        },
        { ':one': 1, ':max': max, ':expires': minute * minuteSeconds + rateKeptSeconds },
      );
      const { done, item } = await update(`rate#${key}#${minute}`, write);
      return done ? Number(item['calls']?.N) : undefined;
    },
    async hold(hold, amount, most) {
      const [change, values] = buildBudgetChange(hold.expires, { used: amount, running: 1 });
      const write = buildExpressions(
        {
          UpdateExpression: `${change}, #hold = :hold`,
          ConditionExpression: `(used <= :left OR (attribute_not_exists(used) AND :left >= :zero))
          AND (attribute_not_exists(#hold) OR #hold <> :hold)`,
        },
        { ...values, ':left': most - amount, ':zero': 0, ':hold': hold.name },
      );
      const { done, item } = await update(buildCounterId(hold), write);
      // An earlier try was applied, but its reply was lost.
      return { done: done || item['hold']?.S === hold.name, ...useOf(item) };
    },
    async use(counter) {
      const input = { ...table.keyInput({ id: buildCounterId(counter) }), ConsistentRead: true };
      return useOf((await client.call('GetItem', input, singleAttempt)).Item ?? {});
    },
    async change(counter, by) {
      const [UpdateExpression, values] = buildBudgetChange(counter.expires, by);
      await update(buildCounterId(counter), buildExpressions({ UpdateExpression }, values));
    },
  };
}

const useOf = (item: Attributes): BudgetUse => ({
  used: BigInt(item['used']?.N ?? '0'),
  running: Number(item['running']?.N ?? '0'),
});

const buildCounterId = ({ key, period }: BudgetName): string => `budget#${key}#${period}`;

/** Adds to a counter, and creates it if missing. `expires` applies to a new counter. */
const buildBudgetChange = (expires: number, { used, running }: BudgetUse) =>
  [
    'ADD used :used, running :running SET #expires = if_not_exists(#expires, :expires)',
    { ':used': used, ':running': running, ':expires': expires },
  ] as const;

/** A month, and some days for its last calls. */
const keptSeconds = 40 * 24 * 60 * 60;

/** Must run in the transaction that puts these ledger rows. Returns what calls did not spend to their budgets. */
export function countInBudgets(stack: string, rows: readonly CloseRow[]): TransactWriteItem[] {
  const changes = new Map<string, { use: BudgetUse; expires: number }>();
  for (const row of rows) {
    const { used, running } = budgetUseOf(row);
    const expires = Math.ceil(findLedgerTimeMs(row) / 1000) + keptSeconds;
    for (const id of listBudgetCounters(row).map(buildCounterId)) {
      const { use } = changes.get(id) ?? { use: { used: 0n, running: 0 } };
      changes.set(id, { use: { used: use.used + used, running: use.running + running }, expires });
    }
  }
  return [...changes].map(([id, { use, expires }]) => {
    const [UpdateExpression, values] = buildBudgetChange(expires, use);
    const at = { TableName: physicalNameOf(stack, 'runtime'), Key: attributesOf({ id }) };
    return { Update: { ...at, ...buildExpressions({ UpdateExpression }, values) } };
  });
}
