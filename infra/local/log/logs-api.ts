/** Emulates CloudWatch Logs on the lines of this stack: StartQuery, GetQueryResults, DescribeLogGroups. */
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import { serverForPrograms } from '../host/for-programs.ts';
import type { KeptLine, KeptLines } from './kept-lines.ts';
import { parseQuery } from './query.ts';

/** Of a query that nobody asks for again. */
const queriesMax = 20;

export interface LogsApi {
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
export const logGroupOf = (stack: string, functionName: string): string => `${stack}-${functionName}`;

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
