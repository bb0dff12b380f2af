/**
 * The schemas of all tables, shared by the CDK stack, the local stack, the operators' CLI and the runtime. A
 * change of a key, an index or a stream view replaces a customer's table, so a golden test fixes them.
 */
export interface KeyAttribute {
  name: string;
  type: 'S' | 'N';
}

export interface TableSchema {
  partitionKey: KeyAttribute;
  sortKey?: KeyAttribute;
  /** The attribute (Unix seconds) after which DynamoDB removes the row. */
  ttl?: string;
  stream?: 'KEYS_ONLY' | 'NEW_AND_OLD_IMAGES';
  /** Absent: each second of the last 35 days can be restored. False: what was deleted is gone. */
  recoverable?: false;
  /** Global secondary indexes, keys only. */
  indexes?: { name: string; partitionKey: KeyAttribute }[];
  /** The writer of the rows: operators by hand, or only functions. */
  writtenBy: 'operators' | 'functions';
}

const S = (name: string): KeyAttribute => ({ name, type: 'S' });
const N = (name: string): KeyAttribute => ({ name, type: 'N' });

export const tableSchemas = {
  channels: { partitionKey: S('id'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  charges: { partitionKey: N('id'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  plans: { partitionKey: N('level'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  settings: { partitionKey: S('name'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  keys: { partitionKey: S('hash'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  accounts: { partitionKey: S('account'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'operators' },
  grants: {
    partitionKey: S('account'),
    sortKey: S('grant_id'),
    stream: 'NEW_AND_OLD_IMAGES',
    // Has only rows with this mark: what is to be found by a schedule must not cost more with each grant that ever was.
    indexes: [{ name: 'unapplied', partitionKey: S('_unapplied') }],
    writtenBy: 'operators',
  },
  quotas: { partitionKey: S('account'), stream: 'NEW_AND_OLD_IMAGES', writtenBy: 'functions' },
  ledger: {
    partitionKey: S('account'),
    sortKey: S('id'),
    indexes: [{ name: 'by_id', partitionKey: S('id') }],
    writtenBy: 'functions',
  },
  responses: {
    partitionKey: S('account'),
    sortKey: S('id'),
    ttl: 'expires',
    recoverable: false,
    writtenBy: 'functions',
  },
  payments: { partitionKey: S('id'), writtenBy: 'functions' },
  codes: { partitionKey: S('hash'), writtenBy: 'operators' },
  daily: {
    partitionKey: S('id'),
    sortKey: S('period'),
    ttl: 'expires',
    writtenBy: 'functions',
  },
  runtime: { partitionKey: S('id'), ttl: 'expires', stream: 'KEYS_ONLY', writtenBy: 'functions' },
} as const satisfies Record<string, TableSchema>;

export const tableNames = Object.keys(tableSchemas) as (keyof typeof tableSchemas)[];
