/** Alerts in the table `runtime`. A transaction writes each mark with its notice, if the mark is as it was read. */
import {
  type AlertMark,
  type AlertStore,
  type NoticeStore,
  type AlertAccounts,
  receivers,
  type Receiver,
  type StoredNotice,
} from '../../../relay/ports/alerts.ts';
import { buildExpressions, Table, valuesOf, type StoreDeps, type TableClient } from '../table-client.ts';
import { readWhole } from '../quotas/whole-account.ts';
import { writeTransaction } from '../transactions.ts';
import { readItems, type RuntimeItem } from '../runtime-items.ts';
import { readAlertedAccount, type AlertedAccount } from '../../../config/rows/alerted-account.ts';
import { KeyRow } from '../../../config/rows/key-row.ts';
import { readRow } from '../../../config/rows/read-row.ts';
import type { Clock } from '../../../relay/ports/host.ts';
import { ExpiringCache } from '../../system/node-ports.ts';
import type { Notice } from '../../../wire/public-api.ts';

const isAbsent = 'attribute_not_exists(id)';
const isAsSeen = 'changes = :seen AND #open = :was';
const buildSeenValues = ({ open, changes }: AlertMark) => ({ ':seen': changes, ':was': open });

export function createAlertStore(client: TableClient, stack: string): AlertStore {
  const table = new Table(client, stack, 'runtime');
  return {
    async marks(causes) {
      const ids = new Map(causes.map((cause) => [buildMarkId(cause), cause]));
      const items = await readItems(table, [...ids.keys()]);
      return new Map([...items].map(([id, item]) => [ids.get(id) ?? '', decodeMark(item)]));
    },
    async raise({ cause, seen, notice, expires }) {
      const changes = (seen?.changes ?? 0) + 1;
      const mark = { id: buildMarkId(cause), open: true, changes, notice: notice.id, expires };
      const condition = buildExpressions(
        { ConditionExpression: seen ? isAsSeen : isAbsent },
        seen && buildSeenValues(seen),
      );
      const reply = await writeTransaction(client, [
        { Put: { ...table.putInput(mark), ...condition } },
        { Put: { ...table.putInput(encodeNotice(notice)), ConditionExpression: isAbsent } },
      ]);
      if (!reply.done && reply.invalid) throw reply.error;
      return reply.done;
    },
    async clear(cause, seen) {
      const write = buildExpressions(
        { UpdateExpression: 'SET #open = :open, changes = changes + :one', ConditionExpression: isAsSeen },
        { ...buildSeenValues(seen), ':open': false, ':one': 1 },
      );
      return (await table.update({ id: buildMarkId(cause) }, write)).done;
    },
  };
}

// Notices, and the list of those that wait for another try.

const isTry = 'attribute_exists(id) AND tries = :tries';

/** The list is one item with an attribute for each notice, so that two writers do not conflict. */
export function createNoticeStore(client: TableClient, stack: string): NoticeStore {
  const table = new Table(client, stack, 'runtime');
  // A batch, because the function is allowed no other read of this table.
  const readItem = async (id: string) => (await readItems(table, [id])).get(id);
  const changeList = (notice: string, UpdateExpression: string, values?: object) =>
    table.update({ id: waitingId }, buildExpressions({ UpdateExpression }, values, { '#notice': notice }));
  return {
    async find(id) {
      const item = await readItem(buildNoticeId(id));
      return item && decodeNotice(item);
    },
    async claim(id, tries, dueMs) {
      const write = buildExpressions(
        { UpdateExpression: 'SET tries = :next, due = :due', ConditionExpression: isTry },
        { ':tries': tries, ':next': tries + 1, ':due': dueMs },
      );
      return (await table.update({ id: buildNoticeId(id) }, write)).done;
    },
    async leave(id, tries, left) {
      const write = buildExpressions(
        { UpdateExpression: 'SET #left = :left', ConditionExpression: isTry },
        { ':tries': tries, ':left': left },
      );
      await table.update({ id: buildNoticeId(id) }, write);
    },
    async waiting() {
      const item = (await readItem(waitingId)) ?? {};
      return Object.keys(item).filter((attribute) => attribute !== 'id');
    },
    async await(id) {
      await changeList(id, 'SET #notice = :one', { ':one': 1 });
    },
    async forget(ids) {
      for (const id of ids) await changeList(id, 'REMOVE #notice');
    },
  };
}

// Reads accounts, keys and balances for alerts. Never writes.

/** Limits of accounts are cached; most accounts have none. */
const limitLifetimeMs = 5 * 60_000;
const limitsMax = 10_000;

interface AlertAccountsDeps extends StoreDeps {
  clock: Clock;
  /** Allows receivers on loopback. */
  local: boolean;
}

export function createAlertAccounts({ client, clock, stack, local }: AlertAccountsDeps): AlertAccounts {
  const tableOf = (name: 'accounts' | 'keys' | 'quotas') => new Table(client, stack, name);
  const limits = new ExpiringCache<AlertedAccount | undefined>({
    clock,
    entriesMax: limitsMax,
    lifetimeMs: () => limitLifetimeMs,
  });
  const readUsable = (raw: unknown): AlertedAccount[] => {
    const reading = readAlertedAccount(raw, { local });
    return 'row' in reading ? [reading.row] : [];
  };
  const readAccount = async (account: string): Promise<AlertedAccount | undefined> => {
    const item = await tableOf('accounts').get({ account });
    return item && readUsable(valuesOf(item))[0];
  };
  async function* scanRows(name: 'accounts' | 'keys'): AsyncGenerator<unknown[]> {
    for await (const items of tableOf(name).readPages('Scan', { ConsistentRead: undefined }))
      yield items.map(valuesOf);
  }
  return {
    row: readAccount,
    alertBelow: async (account) => (await limits.get(account, () => readAccount(account)))?.alertBelow,
    async balance(account) {
      const whole = await readWhole(tableOf('quotas'), account);
      return whole && whole.granted + (whole.metered ?? 0n) - whole.spent;
    },
    async *accounts() {
      for await (const rows of scanRows('accounts')) yield rows.flatMap(readUsable);
    },
    async *keys() {
      for await (const rows of scanRows('keys'))
        yield rows.flatMap((raw) => {
          const reading = readRow(KeyRow, raw);
          return 'row' in reading ? [reading.row] : [];
        });
    },
  };
}

// Items: `alert#<cause>` is the mark of a cause, `notice#<id>` a notice and its delivery, `notices` the list that waits.

const buildMarkId = (cause: string): string => `alert#${cause}`;
/** Also named in function-descriptions.ts: new items with this prefix invoke the notifier. */
export const noticePrefix = 'notice#';
const buildNoticeId = (id: string): string => `${noticePrefix}${id}`;
const waitingId = 'notices';

const noticeDays = 30;

const decodeMark = (item: RuntimeItem): AlertMark => ({
  open: item['open'] === true,
  changes: typeof item['changes'] === 'number' ? item['changes'] : 0,
});

export const encodeNotice = (notice: Notice): RuntimeItem => ({
  id: buildNoticeId(notice.id),
  notice: JSON.stringify(notice),
  tries: 0,
  due: 0,
  left: [...receivers],
  expires: notice.created + noticeDays * 24 * 3600,
});

function decodeNotice(item: RuntimeItem): StoredNotice | undefined {
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
