/** Marks of alerts in the table `runtime`. A mark is written only as it was read, in one transaction with its notice. */
import type { UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import {
  type AlertMark,
  type AlertStore,
  type NoticeStore,
  type AlertAccounts,
  receivers,
  type Receiver,
  type StoredNotice,
} from '../../../relay/ports/alerts.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import {
  attributesOf,
  conditionalCall,
  type TableClient,
  valuesOf,
  itemPages,
  storeCall,
} from '../table-client.ts';
import { readWhole } from '../quotas/whole-account.ts';
import { transactionCall } from '../transactions.ts';
import { getItems, type RuntimeItem } from '../runtime-items.ts';
import { readAlertedAccount, type AlertedAccount } from '../../../config/rows/alerted-account.ts';
import { KeyRow } from '../../../config/rows/key-row.ts';
import { readRow } from '../../../config/rows/read-row.ts';
import type { Clock } from '../../../relay/ports/host.ts';
import { ExpiringCache } from '../../system/expiring-cache.ts';
import type { Notice } from '../../../wire/public-api.ts';

const isAbsent = 'attribute_not_exists(id)';
const isAsSeen = 'changes = :seen AND #open = :was';

export function dynamoAlertStore(client: TableClient, stack: string): AlertStore {
  const TableName = physicalTableName(stack, 'runtime');
  return {
    async marks(causes) {
      const ids = new Map(causes.map((cause) => [markId(cause), cause]));
      const items = await getItems({ client, name: TableName }, [...ids.keys()]);
      return new Map([...items].map(([id, item]) => [ids.get(id) ?? '', markOf(item)]));
    },
    async raise({ cause, seen, notice, expires }) {
      const mark = { id: markId(cause), open: true, changes: (seen?.changes ?? 0) + 1, notice: notice.id };
      const put = { TableName, Item: attributesOf({ ...mark, expires }) };
      const TransactItems = [
        { Put: { ...put, ...(seen ? asSeen(seen) : { ConditionExpression: isAbsent }) } },
        { Put: { TableName, Item: attributesOf(noticeItem(notice)), ConditionExpression: isAbsent } },
      ];
      const reply = await transactionCall(client, TransactItems);
      if (!reply.done && reply.invalid) throw reply.error;
      return reply.done;
    },
    async clear(cause, seen) {
      const { ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues } = asSeen(seen);
      const input = {
        TableName,
        Key: attributesOf({ id: markId(cause) }),
        UpdateExpression: 'SET #open = :open, changes = changes + :one',
        ConditionExpression,
        ExpressionAttributeNames,
        ExpressionAttributeValues: {
          ...ExpressionAttributeValues,
          ...attributesOf({ ':open': false, ':one': 1 }),
        },
      };
      return (await conditionalCall(() => client.call('UpdateItem', input))).done;
    },
  };
}

const asSeen = ({ open, changes }: AlertMark) => ({
  ConditionExpression: isAsSeen,
  ExpressionAttributeNames: { '#open': 'open' },
  ExpressionAttributeValues: attributesOf({ ':seen': changes, ':was': open }),
});

// Notices and the list of those that wait, in the table `runtime`.

const isTry = 'attribute_exists(id) AND tries = :tries';

/** The list is one item with an attribute for each notice, because a set could not be written by two at once. */
export function dynamoNoticeStore(client: TableClient, stack: string): NoticeStore {
  const name = physicalTableName(stack, 'runtime');
  const update = (id: string, input: Omit<UpdateItemCommandInput, 'TableName' | 'Key'>) =>
    conditionalCall(() =>
      client.call('UpdateItem', { TableName: name, Key: attributesOf({ id }), ...input }),
    );
  return {
    async find(id) {
      const item = (await getItems({ client, name }, [noticeId(id)])).get(noticeId(id));
      return item && noticeOf(item);
    },
    async claim(id, tries, dueMs) {
      const { done } = await update(noticeId(id), {
        UpdateExpression: 'SET tries = :next, due = :due',
        ConditionExpression: isTry,
        ExpressionAttributeValues: attributesOf({ ':tries': tries, ':next': tries + 1, ':due': dueMs }),
      });
      return done;
    },
    async leave(id, tries, left) {
      await update(noticeId(id), {
        UpdateExpression: 'SET #left = :left',
        ConditionExpression: isTry,
        ExpressionAttributeNames: { '#left': 'left' },
        ExpressionAttributeValues: attributesOf({ ':tries': tries, ':left': left }),
      });
    },
    async waiting() {
      const item = (await getItems({ client, name }, [waitingId])).get(waitingId) ?? {};
      return Object.keys(item).filter((attribute) => attribute !== 'id');
    },
    async await(id) {
      await update(waitingId, {
        UpdateExpression: 'SET #notice = :one',
        ExpressionAttributeNames: { '#notice': id },
        ExpressionAttributeValues: attributesOf({ ':one': 1 }),
      });
    },
    async forget(ids) {
      for (const id of ids)
        await update(waitingId, {
          UpdateExpression: 'REMOVE #notice',
          ExpressionAttributeNames: { '#notice': id },
        });
    },
  };
}

// What alerts read of accounts, keys and balances. Writes nothing.

/** Every busy account is read once in this time, most of them without a limit. */
const limitLifetimeMs = 5 * 60_000;
const limitsMax = 10_000;

interface AlertAccountsParts {
  client: TableClient;
  clock: Clock;
  stack: string;
  /** true on the local stack: receivers on loopback are allowed. */
  local: boolean;
}

export function dynamoAlertAccounts({ client, clock, stack, local }: AlertAccountsParts): AlertAccounts {
  const tableOf = (name: 'accounts' | 'keys' | 'quotas') => physicalTableName(stack, name);
  const limits = new ExpiringCache<AlertedAccount | undefined>({
    clock,
    entriesMax: limitsMax,
    lifetimeMs: () => limitLifetimeMs,
  });
  const usable = (raw: unknown): AlertedAccount[] => {
    const reading = readAlertedAccount(raw, { local });
    return 'row' in reading ? [reading.row] : [];
  };
  const row = async (account: string): Promise<AlertedAccount | undefined> => {
    const input = { TableName: tableOf('accounts'), Key: attributesOf({ account }), ConsistentRead: true };
    const { Item } = await storeCall(() => client.call('GetItem', input));
    return Item && usable(valuesOf(Item))[0];
  };
  async function* pages(name: 'accounts' | 'keys'): AsyncGenerator<unknown[]> {
    for await (const items of itemPages(client, 'Scan', { TableName: tableOf(name) }))
      yield items.map(valuesOf);
  }
  return {
    row,
    alertBelow: async (account) => (await limits.get(account, () => row(account)))?.alertBelow,
    async balance(account) {
      const quotas = { client, TableName: tableOf('quotas') };
      const whole = await storeCall(() => readWhole(quotas, account));
      return whole && whole.granted - whole.spent;
    },
    async *accounts() {
      for await (const rows of pages('accounts')) yield rows.flatMap(usable);
    },
    async *keys() {
      for await (const rows of pages('keys'))
        yield rows.flatMap((raw) => {
          const reading = readRow(KeyRow, raw);
          return 'row' in reading ? [reading.row] : [];
        });
    },
  };
}

// Items of the table `runtime` that alerts keep: `alert#<cause>` is the mark of a cause, `notice#<id>` an event with its
// delivery, `notices` the list of events that need another try.

const markId = (cause: string): string => `alert#${cause}`;
/** function-descriptions.ts names it too: new items with this prefix invoke the notifier. */
export const noticePrefix = 'notice#';
const noticeId = (id: string): string => `${noticePrefix}${id}`;
const waitingId = 'notices';

/** An ended notice stays this long, for people who look for it. */
const noticeDays = 30;

const markOf = (item: RuntimeItem): AlertMark => ({
  open: item['open'] === true,
  changes: typeof item['changes'] === 'number' ? item['changes'] : 0,
});

const noticeItem = (notice: Notice): RuntimeItem => ({
  id: noticeId(notice.id),
  notice: JSON.stringify(notice),
  tries: 0,
  due: 0,
  left: [...receivers],
  expires: notice.created + noticeDays * 24 * 3600,
});

/** Undefined: everybody has got it, or it was given up. */
function noticeOf(item: RuntimeItem): StoredNotice | undefined {
  const { notice, tries, due, left } = item;
  if (typeof notice !== 'string' || !Array.isArray(left) || left.length === 0) return undefined;
  return {
    // The cast is safe: only functions write notices.
    notice: JSON.parse(notice) as Notice,
    tries: Number(tries),
    dueMs: Number(due),
    left: left as Receiver[],
  };
}
