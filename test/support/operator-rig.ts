import type { UpstreamRequest } from '../../shared/upstreams/exchange.ts';
import { emptyRows, type ConfigRows } from '../../shared/config/rows/read-table.ts';
import type {
  PublishedVersion,
  OperatorPorts,
  RawRow,
  RowTables,
} from '../../shared/operate/operator-ports.ts';
import { tableSchemas } from '../../shared/tables/table-schemas.ts';
import type { TableName } from '../../shared/tables/table-names.ts';
import { VirtualClock } from './virtual-clock.ts';

type Ports = Omit<OperatorPorts, 'clock'> & { clock: VirtualClock };

export interface OperatorRig {
  ports: Ports;
  /** Every requested write in order: `create channels a`. */
  writes: string[];
  /** The requests to upstreams. */
  sent: UpstreamRequest[];
}

export interface RigOptions {
  rows?: Partial<Record<TableName, RawRow[]>>;
  /** The rows of the published versions, version 1 first. */
  published?: Partial<ConfigRows>[];
  /** Names of writes that find the row changed by somebody else. */
  overtaken?: string[];
  local?: boolean;
  /** The answer of every upstream. */
  reply?: { status: number; body: string };
}

/** The operators' ports over rows in memory, with virtual time; writes are only recorded. */
export function operatorRig({
  rows = {},
  published = [],
  overtaken = [],
  local = true,
  reply = { status: 200, body: '{}' },
}: RigOptions): OperatorRig {
  const writes: string[] = [];
  const sent: UpstreamRequest[] = [];
  const write = async (verb: string, table: TableName, key: unknown): Promise<boolean> => {
    const name = `${verb} ${table} ${String(key)}`;
    writes.push(name);
    return !overtaken.includes(name);
  };
  const unused = () => {
    throw new Error('not part of this rig');
  };
  const keyOf = (table: TableName, row: RawRow): unknown => row[tableSchemas[table].partitionKey.name];
  const tables: RowTables = {
    get: async (table, key) => rows[table]?.find((row) => keyOf(table, row) === key),
    scan: async (table) => rows[table] ?? [],
    write: ({ kind, table, ...rest }) =>
      write(kind, table, keyOf(table, 'key' in rest ? rest.key : rest.row)),
    writeTogether: unused,
  };
  const versions = published.map((_, at): PublishedVersion => {
    const version = at + 1;
    return { version, format: 1, parts: 1, copies: 1, rowParts: 1, digest: '', publishedAt: version };
  });
  const ports: Ports = {
    target: { stack: 'relay', local },
    clock: new VirtualClock(),
    random: { secretKey: unused, hex: unused },
    hmac: { sign: unused, matches: unused },
    tables,
    pages: {
      rows: unused,
      rowsOf: unused,
      grants: unused,
      days: unused,
      requests: unused,
      health: unused,
      underWay: unused,
    },
    traffic: () => ({ requests: 0, bytes: 0 }),
    copies: {
      window: unused,
      status: unused,
      make: unused,
      remove: unused,
      quota: unused,
      accounts: unused,
      lost: unused,
      putBack: unused,
      replaceQuota: unused,
    },
    ledger: {
      quota: unused,
      quotas: unused,
      accounts: unused,
      ledger: unused,
      request: unused,
      ledgerAccounts: unused,
      daily: unused,
      addToDaily: unused,
      monthAccounts: unused,
      accountMonths: unused,
      hours: unused,
      served: unused,
      minutes: unused,
      grants: async function* grants() {},
      close: unused,
      closedAs: unused,
      chargeLate: unused,
    },
    payments: { find: unused, write: unused, account: unused, all: unused },
    consoles: {
      beginSession: unused,
      session: unused,
      endSession: unused,
      revoke: unused,
      isFirst: unused,
      keep: unused,
      read: unused,
      take: unused,
      countRefund: unused,
      countWatch: unused,
      append: unused,
      history: unused,
    },
    responses: { head: unused, read: unused, remove: unused, rows: unused },
    operator: unused,
    config: {
      tables: async () => ({
        ...emptyRows,
        ...Object.fromEntries(Object.keys(emptyRows).map((table) => [table, rows[table as TableName] ?? []])),
      }),
      newest: async () => versions.at(-1),
      versions: async () => versions.toReversed(),
      version: async (number) => versions[number - 1] ?? unused(),
      rows: async ({ version }) => ({ ...emptyRows, ...published[version - 1] }),
      snapshot: unused,
    },
    secrets: {
      put: async ({ reference }) => void (await write('put', 'channels', reference)),
      read: async (reference) => `value of ${reference}`,
      remove: async (reference) => void (await write('remove', 'channels', reference)),
      variable: async (name) => `value of env:${name}`,
    },
    upstreams: {
      async send(request) {
        sent.push(request);
        const body = (async function* bytes() {
          yield new TextEncoder().encode(reply.body);
        })();
        return { status: reply.status, headers: {}, body };
      },
    },
    baseUrl: async () => undefined,
    log: { source: async () => undefined, search: unused, counts: unused },
    account: unused,
  };
  return { ports, writes, sent };
}
