/** An operator's connection to a target. Functions import this file, so it must not use the SDK. */
import { Failure } from '../../operate/plan.ts';
import type { TableLimits, TableTraffic, Target, Reading } from '../../operate/operator-ports.ts';
import type { AwsCredentials } from '../system/environment.ts';
import type { TableName } from '../../tables/table-names.ts';
import { Table, type Attributes, type TableClient } from './table-client.ts';

export interface Store {
  target: Target;
  tables: TableClient;
  /** Without one, every call fails. */
  region: string | undefined;
  /** Throws if region or credentials are missing. */
  aws: () => Promise<{ region: string; credentials: AwsCredentials }>;
  traffic: () => TableTraffic;
}

/** Converts all errors of a port, so that they tell an operator what to do. */
export const explainErrors = <Port extends object>(port: Port, explain: (error: unknown) => Error): Port =>
  new Proxy(port, {
    get(_, name) {
      const own: unknown = Reflect.get(port, name);
      if (typeof own !== 'function') return own;
      return (...given: unknown[]): unknown => explainReply(Reflect.apply(own, port, given), explain);
    },
  });

function explainReply(reply: unknown, explain: (error: unknown) => Error): unknown {
  const fail = (error: unknown): never => {
    throw error instanceof Failure ? error : explain(error);
  };
  if (reply instanceof Promise) return reply.catch(fail);
  const isSequence = typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply;
  return isSequence ? explainSequence(reply as AsyncIterable<unknown>, fail) : reply;
}

async function* explainSequence(source: AsyncIterable<unknown>, fail: (error: unknown) => never) {
  try {
    yield* source;
  } catch (error) {
    fail(error);
  }
}

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeLimits.html */
export async function readTableLimits({ tables }: Store): Promise<TableLimits> {
  const limits = await tables.call('DescribeLimits', {});
  return {
    tableReads: limits.TableMaxReadCapacityUnits ?? 0,
    tableWrites: limits.TableMaxWriteCapacityUnits ?? 0,
  };
}

/** A local stack writes this item of `runtime` to say where it runs. */
export const localStackId = 'local-log';

interface LocalStack {
  log: { endpoint: string; groups: string[] } | undefined;
  /** Ends in `/v1`. */
  baseUrl: string | undefined;
  clone: string | undefined;
}

/** All undefined if no stack runs on these tables. */
export async function findLocalStack({ tables, target }: Store): Promise<LocalStack> {
  const Item = await new Table(tables, target.stack, 'runtime').get({ id: localStackId });
  const endpoint = Item?.['endpoint']?.S;
  const groups = Item?.['groups']?.L?.flatMap(({ S }) => S ?? []);
  return {
    log: endpoint === undefined || !groups ? undefined : { endpoint, groups },
    baseUrl: Item?.['base_url']?.S,
    clone: Item?.['clone']?.S,
  };
}

export function tryReading<Row>(
  item: Attributes,
  key: string,
  read: (item: Attributes) => Row,
): Reading<Row> {
  try {
    return { row: read(item) };
  } catch (error) {
    return { key, problem: error instanceof Error ? error.message : String(error) };
  }
}

// Marks of rows that operators wrote. The configuration and keys ignore attributes with `_`.

export interface AuthorMarks {
  /** The caller's ARN, or `local`. */
  _by: string;
  /** ISO 8601, by the operator's clock. */
  _at: string;
}

/** Called before each write, never before a read. */
export type RowAuthor = () => Promise<AuthorMarks>;

/** Tables that people edit. Other tables are written by functions, or record their author themselves. */
const signedTables: ReadonlySet<TableName> = new Set([
  'channels',
  'charges',
  'plans',
  'settings',
  'keys',
  'accounts',
  'grants',
  'codes',
]);

export const isSigned = (table: TableName): boolean => signedTables.has(table);

export const createRowAuthor =
  (operator: () => Promise<string>): RowAuthor =>
  async () => ({ _by: await operator(), _at: new Date().toISOString() });
