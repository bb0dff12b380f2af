/**
 * Reads pages of tables for operators with a bounded number of requests. Reads may be a second old unless the port says
 * otherwise.
 */
import { formatAccountId } from '../../billing/daily-keys.ts';
import { grantPrefix } from '../../billing/ledger-row.ts';
import type { RowPages, RowsFound, RowsWanted, RawRow } from '../../operate/operator-ports.ts';
import type { TableName } from '../../tables/table-names.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { dailySumOf } from './daily-sums.ts';
import { readWrittenGrant } from './grant-store.ts';
import { readHealthImage } from './health-items.ts';
import { findLedgerPartitions, decodeLedgerRow, readNewestRows } from './ledger-store.ts';
import { tryReading, type Store } from './operator-store.ts';
import { readChannelMarks } from './alerts/channel-hours.ts';
import { channelMarksId, cooldownsId, readItems } from './runtime-items.ts';
import { readOpenCalls } from './quotas/open-registry.ts';
import { attributesOf, buildExpressions, Table, valuesOf } from './table-client.ts';

/** A scan reads 1 MB per request. */
const scansMax = 2;
/** Above this, requests have no limit of rows. */
const fewMax = 200;

export function createRowPages({ tables, target }: Store): RowPages {
  const tableOf = (table: TableName) => new Table(tables, target.stack, table);
  return {
    rows: (wanted) => findRows(tableOf(wanted.table), wanted),
    async rowsOf(table, keys) {
      const name = tableSchemas[table].partitionKey.name;
      const wanted = keys.map((key) => attributesOf({ [name]: key }));
      return (await tableOf(table).read(wanted)).map(valuesOf);
    },
    async grants(account, limit) {
      // A query that reaches its limit always reports more.
      const more = { Limit: limit + 1, ConsistentRead: true };
      const found = await tableOf('grants').queryNewest('account = :account', { ':account': account }, more);
      const isAll = found.isAll && found.items.length <= limit;
      return { grants: found.items.slice(0, limit).map(readWrittenGrant), isAll };
    },
    async days(account, from, limit) {
      const id = formatAccountId(account);
      // `~` sorts after the digits of a day.
      const values = { ':id': id, ':from': `day#${from}`, ':to': 'day#~' };
      const more = { Limit: limit, ConsistentRead: true };
      const range = 'id = :id AND period BETWEEN :from AND :to';
      const { items, isAll } = await tableOf('daily').queryNewest(range, values, more);
      const days = items.map((item) => tryReading(item, `daily ${id} ${item['period']?.S}`, dailySumOf));
      return { days, isAll };
    },
    async requests(account, before, limit) {
      // Digits of request ids sort before the ids of grants.
      const partitions = await findLedgerPartitions(tables, target.stack, account);
      const wanted = { before: before ?? grantPrefix, Limit: limit };
      const { items, isAll } = await readNewestRows(tableOf('ledger'), partitions, wanted);
      const rows = items.map((item) => tryReading(item, `${account} ${item['id']?.S}`, decodeLedgerRow));
      return { rows, next: isAll ? undefined : items.at(-1)?.['id']?.S };
    },
    async health() {
      const items = await readItems(tableOf('runtime'), [cooldownsId, channelMarksId], { mayBeOld: true });
      const { entries } = readHealthImage(items.get(cooldownsId));
      return { entries, marks: readChannelMarks(items.get(channelMarksId), Date.now()) };
    },
    underWay: (nowMs) => readOpenCalls(tables, target.stack, nowMs),
  };
}

async function findRows(of: Table, { table, after, where, limit }: RowsWanted): Promise<RowsFound> {
  const key = tableSchemas[table].partitionKey.name;
  const rows: RawRow[] = [];
  let start = after === undefined ? undefined : attributesOf({ [key]: after });
  // Filtered rows are read, too, but not sent.
  const requestsMax = where ? scansMax : 1;
  const ConsistentRead = where !== undefined && 'is' in where;
  const few = where === undefined && limit <= fewMax ? { Limit: limit } : {};
  for (let asked = 0; asked < requestsMax; asked += 1) {
    const input = {
      TableName: of.name,
      ExclusiveStartKey: start,
      ...buildFilter(where),
      ...few,
      ConsistentRead,
    };
    const { Items = [], LastEvaluatedKey } = await of.client.call('Scan', input);
    rows.push(...Items.map(valuesOf));
    start = LastEvaluatedKey;
    if (start === undefined || rows.length >= limit) break;
  }
  if (rows.length <= limit) return { rows, next: start?.[key]?.S };
  const shown = rows.slice(0, limit);
  return { rows: shown, next: String(shown.at(-1)?.[key]) };
}

function buildFilter(where: RowsWanted['where']) {
  if (!where) return {};
  const [FilterExpression, value] =
    'is' in where ? ['#name = :value', where.is] : ['contains(#name, :value)', where.contains];
  return buildExpressions({ FilterExpression }, { ':value': value }, { '#name': where.attribute });
}
