/** Emulates CloudWatch Logs on the lines of this stack: StartQuery, GetQueryResults, DescribeLogGroups. */
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { type DynamoDBClient, PutItemCommand, ResourceNotFoundException } from '@aws-sdk/client-dynamodb';
import { closeServer, listenOnLoopback, serverForPrograms } from '../host/loopback.ts';
import type { KeptLine, KeptLines } from './kept-lines.ts';
import { localStackId } from '../../../shared/adapters/dynamodb/operator-store.ts';
import { physicalTableName } from '../../../shared/tables/table-names.ts';
import type { Log } from '../host/messages.ts';

/** Of a query that nobody asks for again. */
const queriesMax = 20;

interface LogsApi {
  endpoint: string;
  close(): Promise<void>;
}

type Answer = [status: number, body: object];

interface Asked {
  logGroupNamePrefix?: string;
  queryId?: string;
  logGroupNames?: string[];
  startTime?: number;
  endTime?: number;
  queryString?: string;
}

/** The name of a function's log group. */
const logGroupOf = (stack: string, functionName: string): string => `${stack}-${functionName}`;

export async function startLogsApi(stack: string, kept: KeptLines): Promise<LogsApi> {
  const queries = new Map<string, object>();
  const actions: Record<string, (body: Asked) => Answer> = {
    'Logs_20140328.StartQuery'(asked) {
      const query = parseQuery(asked.queryString ?? '');
      if (!query) return refused('MalformedQueryException');
      const groups = new Set(asked.logGroupNames);
      const lines = kept.all().filter(({ functionName }) => groups.has(logGroupOf(stack, functionName)));
      const [fromMs, toMs] = [(asked.startTime ?? 0) * 1000, (asked.endTime ?? 0) * 1000];
      const inTime = lines.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
      const found = inTime.filter((line) => query.matches(fieldsOf(line)));
      const newest = found.toReversed().slice(0, query.limit);
      const id = randomUUID();
      queries.set(id, {
        status: 'Complete',
        results: newest.map(rowOf),
        statistics: {
          recordsMatched: found.length,
          recordsScanned: inTime.length,
          bytesScanned: bytesOf(inTime),
        },
      });
      const [oldest] = queries.keys();
      if (queries.size > queriesMax && oldest !== undefined) queries.delete(oldest);
      return [200, { queryId: id }];
    },
    'Logs_20140328.DescribeLogGroups'({ logGroupNamePrefix = '' }) {
      const lines = Map.groupBy(kept.all(), ({ functionName }) => logGroupOf(stack, functionName));
      const found = [...lines].filter(([name]) => name.startsWith(logGroupNamePrefix));
      return [200, { logGroups: found.map(([logGroupName, own]) => groupOf(logGroupName, own)) }];
    },
    'Logs_20140328.GetQueryResults'({ queryId = '' }) {
      const results = queries.get(queryId);
      return results ? [200, results] : refused('ResourceNotFoundException');
    },
  };
  const answer = (target: string, body: string): Answer => {
    const action = actions[target];
    return action ? action(JSON.parse(body) as Asked) : refused('UnknownOperationException');
  };
  const server = serverForPrograms((request, response) => {
    const { authorization = '' } = request.headers;
    void text(request)
      .then((body): Answer => {
        if (!authorization.startsWith('AWS4-HMAC-SHA256 '))
          return refused('MissingAuthenticationTokenException');
        return answer(String(request.headers['x-amz-target']), body);
      })
      .catch((): Answer => refused('SerializationException'))
      .then(([status, body]) => {
        response
          .writeHead(status, { 'content-type': 'application/x-amz-json-1.1' })
          .end(JSON.stringify(body));
      });
  });
  const port = await listenOnLoopback(server, 0);
  return { endpoint: `http://127.0.0.1:${port}`, close: () => closeServer(server) };
}

const refused = (name: string): Answer => [400, { __type: name, message: name }];

/** Lines that are not of the relay's own log have no fields. */
function fieldsOf({ text: line }: KeptLine): Record<string, unknown> {
  try {
    if (!line.startsWith('{')) return {};
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const groupOf = (logGroupName: string, lines: readonly KeptLine[]): object => ({
  logGroupName,
  storedBytes: bytesOf(lines),
  creationTime: lines[0]?.atMs ?? 0,
});

const bytesOf = (lines: readonly KeptLine[]): number =>
  lines.reduce((sum, { text: line }) => sum + line.length, 0);

const rowOf = ({ atMs, text: line }: KeptLine): object[] => [
  { field: '@timestamp', value: new Date(atMs).toISOString().replace('T', ' ').replace('Z', '') },
  { field: '@message', value: line },
];

/** Queries of CloudWatch Logs Insights as the operators' tool sends them, and no others. */

interface Query {
  matches(fields: Readonly<Record<string, unknown>>): boolean;
  limit: number;
}

/** Undefined: not a query of the tool. */
function parseQuery(text: string): Query | undefined {
  const [fields, filter = '', sort, limit = ''] = text.split('\n| ');
  const most = /^limit (\d{1,5})$/.exec(limit)?.[1];
  if (fields !== 'fields @timestamp, @message' || sort !== 'sort @timestamp desc') return undefined;
  if (most === undefined || !filter.startsWith('filter ')) return undefined;
  const conditions = filter
    .slice('filter '.length)
    .split(/ and (?=[\w@.]+ (?:in|like|>) )/)
    .map(parseCondition);
  const all = conditions.filter((condition) => condition !== undefined);
  if (all.length !== conditions.length) return undefined;
  return { matches: (line) => all.every((condition) => condition(line)), limit: Number(most) };
}

type Condition = (line: Readonly<Record<string, unknown>>) => boolean;

function parseCondition(text: string): Condition | undefined {
  const [, listed, values = ''] = /^([\w.]+) in \[(.*)\]$/s.exec(text) ?? [];
  if (listed !== undefined) {
    const accepted = new Set<unknown>([...values.matchAll(/"([^"\\]*)"/g)].map(([, value]) => value));
    return (line) => accepted.has(line[listed]);
  }
  const [, measured, bound] = /^([\w.]+) > (\d+)$/.exec(text) ?? [];
  if (measured !== undefined) return (line) => Number(line[measured]) > Number(bound);
  const [, field, prefix = ''] = /^([\w.]+) like \/\^([0-9a-z]+)\/$/.exec(text) ?? [];
  return field === undefined
    ? undefined
    : (line) => {
        const value = line[field];
        return typeof value === 'string' && value.startsWith(prefix);
      };
}

/** The functions whose lines have calls; `server` answers in their place. */
const answering = ['chat', 'responses', 'background', 'server'];

/** The stack's log: every line is kept, and goes on to `shown`. */
export const keepingLines =
  (kept: KeptLines, shown: Log): Log =>
  (line) => {
    const [, functionName = 'stack', text = line] = /^\[(\w+)\] (.*)$/.exec(line) ?? [];
    kept.add({ atMs: Date.now(), functionName, text });
    shown(line);
  };

/** Says beside the tables where log and relay are: the operators' tool knows the tables alone. */
export async function publishAddresses(
  client: DynamoDBClient,
  stack: string,
  { log, port }: { log: string; port: number },
): Promise<void> {
  const groups = answering.map((name) => ({ S: logGroupOf(stack, name) }));
  const put = new PutItemCommand({
    TableName: physicalTableName(stack, 'runtime'),
    Item: {
      id: { S: localStackId },
      endpoint: { S: log },
      groups: { L: groups },
      base_url: { S: `http://127.0.0.1:${port}/v1` },
    },
  });
  try {
    await client.send(put);
  } catch (error) {
    // A template without that table has no relay whose lines are searched.
    if (!(error instanceof ResourceNotFoundException)) throw error;
  }
}
