/** The tables of a target as operators reach them, and what tells operators what an error means. Functions import it: no SDK. */
import { Failure } from '../../operate/plan.ts';
import type { TableLimits, TableTraffic, Target, Reading } from '../../operate/operator-ports.ts';
import type { AwsCredentials } from '../system/environment.ts';
import type { TableName } from '../../tables/table-names.ts';
import { Table, type Attributes, type TableClient } from './table-client.ts';

/** The connection to the tables of a target. */
export interface Store {
  target: Target;
  tables: TableClient;
  /** Undefined when the environment sets no region; every call then fails. */
  region: string | undefined;
  /** For requests to other services. Throws when the environment has no region or no credentials. */
  aws: () => Promise<{ region: string; credentials: AwsCredentials }>;
  /** What was asked of the tables so far, each attempt counted. */
  traffic: () => TableTraffic;
}

/** A port whose errors tell an operator what to do. */
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

/** The item of `runtime` with which a local stack says where it is. */
export const localStackId = 'local-log';

interface LocalStack {
  /** Where its log is searched. */
  log: { endpoint: string; groups: string[] } | undefined;
  /** Ends in `/v1`. */
  baseUrl: string | undefined;
  /** The folder of the clone that it was started in. */
  clone: string | undefined;
}

/** Says nothing of local tables that are those of no running stack. */
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

// Rows that may be unreadable.

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

// The marks `_by` and `_at` of rows that operators wrote. Configuration and keys ignore attributes with `_`.

export interface AuthorMarks {
  /** The ARN of the caller; `local` beside local tables. */
  _by: string;
  /** ISO 8601, by the clock of the operator's machine. */
  _at: string;
}

/** Who writes, and when. Asked before each write, never before a read. */
export type RowAuthor = () => Promise<AuthorMarks>;

/** The tables that people edit. Items of other tables say by themselves who wrote them, or are written by functions. */
const signedTables: ReadonlySet<TableName> = new Set([
  'channels',
  'charges',
  'plans',
  'settings',
  'keys',
  'accounts',
  'grants',
]);

export const isSigned = (table: TableName): boolean => signedTables.has(table);

export const createRowAuthor =
  (operator: () => Promise<string>): RowAuthor =>
  async () => ({ _by: await operator(), _at: new Date().toISOString() });
