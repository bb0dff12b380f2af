/**
 * Searches logs with CloudWatch Logs Insights: one query, polled for a bounded time. The local stack answers the same calls.
 * Search terms enter a query only as checked, quoted text.
 * https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html
 */
import {
  CloudWatchLogsClient,
  DescribeLogGroupsCommand,
  GetQueryResultsCommand,
  StartQueryCommand,
  type ResultField,
} from '@aws-sdk/client-cloudwatch-logs';
import type {
  CallLog,
  FoundLines,
  LineCount,
  LogCondition,
  LogSearch,
  LogSource,
} from '../../operate/operator-ports.ts';
import { Failure, usageFailure } from '../../operate/plan.ts';
import { systemClock } from '../system/node-ports.ts';
import { composeClientSettings, type AwsCaller } from './client-settings.ts';
import { dayMs } from '../../wire/iso-time.ts';

export interface CallLogDeps extends AwsCaller {
  /** Without `endpoint` it is CloudWatch. */
  place(): Promise<(LogSource & { endpoint?: string | undefined }) | undefined>;
  explain: (error: unknown, where: string) => Error;
}

/** A result takes about a second, a month of a busy log 30 s. */
const pollMs = [200, 500, 1_000, 2_000] as const;
const searchMsMax = 60_000;

export function createInsightsCallLog(deps: CallLogDeps): CallLog {
  const connect = async () => {
    const found = await deps.place();
    return found && { groups: found.groups, client: openClient(found.endpoint) };
  };
  let connection: ReturnType<typeof connect> | undefined;
  /** A new deployment or a restarted local stack may have another one. */
  const forget = (): void => void (connection = undefined);
  /** Cached, because a watched page searches every second. */
  const locateLog = async () => {
    connection ??= connect();
    let found;
    try {
      found = await connection;
    } finally {
      if (!found) forget();
    }
    return found;
  };
  const findRows = async (search: LogSearch, queryString: string): Promise<FoundRows> => {
    const found = await locateLog();
    if (!found) throw new Failure('the log groups of this relay are unknown');
    const query = { ...search, groups: found.groups, queryString };
    return runQuery(found.client, query).catch((error: unknown) => {
      if (error instanceof Failure) throw error;
      forget();
      throw deps.explain(error, 'CloudWatch Logs');
    });
  };
  return {
    source: async () => {
      const found = await locateLog();
      return found && { groups: found.groups, kept: await readRetention(found.groups, found.client) };
    },
    async search(search) {
      const { rows, scannedBytes } = await findRows(search, composeQuery(search));
      return { lines: rows.flatMap(readLine).toReversed(), scannedBytes };
    },
    async counts(search, by) {
      const { rows, scannedBytes } = await findRows(search, composeCountQuery(search, by));
      return { counts: rows.map((row) => readCount(row, by.field)), scannedBytes };
    },
  };

  function openClient(endpoint: string | undefined): CloudWatchLogsClient {
    const settings = composeClientSettings(deps, 'CLOUDWATCH_LOGS');
    return new CloudWatchLogsClient({ ...settings, ...(endpoint !== undefined && { endpoint }) });
  }
}

/** Filters by name, because a prefix may find more groups. Policies of older stacks forbid this read. */
async function readRetention(
  groups: readonly string[],
  client: CloudWatchLogsClient,
): Promise<LogSource['kept']> {
  const nowMs = systemClock.now();
  try {
    const found = await Promise.all(
      groups.map(async (name) => {
        const command = new DescribeLogGroupsCommand({ logGroupNamePrefix: name });
        const { logGroups = [] } = await client.send(command);
        return logGroups.filter(({ logGroupName }) => logGroupName === name);
      }),
    );
    return found.flat().map(({ storedBytes = 0, creationTime = 0, retentionInDays }) => ({
      bytes: storedBytes,
      sinceMs: Math.max(creationTime, retentionInDays === undefined ? 0 : nowMs - retentionInDays * dayMs),
    }));
  } catch {
    return undefined;
  }
}

type Row = readonly ResultField[];

interface FoundRows {
  rows: readonly Row[];
  scannedBytes: number;
}

type Query = LogSearch & { groups: readonly string[]; queryString: string };

async function runQuery(
  client: CloudWatchLogsClient,
  { fromMs, toMs, groups, queryString }: Query,
): Promise<FoundRows> {
  const { queryId } = await client.send(
    new StartQueryCommand({
      logGroupNames: [...groups],
      startTime: Math.floor(fromMs / 1000),
      endTime: Math.ceil(toMs / 1000),
      queryString,
    }),
  );
  const untilMs = systemClock.now() + searchMsMax;
  for (let turn = 0; systemClock.now() < untilMs; turn += 1) {
    await systemClock.sleep(pollMs[Math.min(turn, pollMs.length - 1)] ?? 0);
    const reply = await client.send(new GetQueryResultsCommand({ queryId }));
    const { status, statistics, results: rows = [] } = reply;
    if (status === 'Complete') return { rows, scannedBytes: statistics?.bytesScanned ?? 0 };
    if (status !== 'Scheduled' && status !== 'Running')
      throw new Failure(`CloudWatch Logs did not complete the search: ${status}`);
  }
  throw new Failure(`the search takes longer than ${searchMsMax / 1000} s: use a shorter period`);
}

export const composeQuery = ({ conditions, limit }: LogSearch): string =>
  ['fields @timestamp, @message', composeFilter(conditions), 'sort @timestamp desc', `limit ${limit}`].join(
    '\n| ',
  );

const composeCountQuery = (
  { conditions }: LogSearch,
  { field, stepMs }: { field: string; stepMs: number },
): string =>
  [composeFilter(conditions), `stats count(*) as calls by ${composeBin(stepMs)}, ${field}`].join('\n| ');

const composeFilter = (conditions: LogSearch['conditions']): string =>
  `filter ${conditions.map(formatCondition).join(' and ')}`;

/** Uses the largest unit: Insights caps seconds and minutes at 60. */
function composeBin(stepMs: number): string {
  const minutes = stepMs / 60_000;
  return `bin(${minutes < 1 ? `${60 * minutes}s` : minutes < 60 ? `${minutes}m` : `${minutes / 60}h`})`;
}

function formatCondition(condition: LogCondition): string {
  if ('isOneOf' in condition)
    return `${quoteField(condition.field)} in [${condition.isOneOf.map(quoteValue).join(', ')}]`;
  if ('above' in condition) return `${condition.field} > ${condition.above}`;
  if ('is' in condition) return `${condition.field} = ${condition.is}`;
  if (!/^[0-9a-z]+$/.test(condition.startsWith)) throw usageFailure('an id has small letters and digits');
  return `${condition.field} like /^${condition.startsWith}/`;
}

const quoteField = (field: string): string => (field.includes('-') ? `\`${field}\`` : field);

function quoteValue(value: string): string {
  if (/["\\\n\r]/.test(value))
    throw usageFailure(`${JSON.stringify(value)} cannot be searched for in the log`);
  return `"${value}"`;
}

const findValue = (row: Row, name: string): string =>
  row.find(({ field }) => field?.startsWith(name))?.value ?? '';

const parseTime = (written: string): number => Date.parse(`${written.replace(' ', 'T')}Z`);

const readCount = (row: Row, field: string): LineCount => ({
  startMs: parseTime(findValue(row, 'bin(')),
  value: findValue(row, field),
  count: Number(findValue(row, 'calls')),
});

/** Functions write JSON only. Other lines come from the runtime. */
function readLine(row: Row): FoundLines['lines'] {
  try {
    const fields: unknown = JSON.parse(findValue(row, '@message'));
    if (typeof fields !== 'object' || fields === null) return [];
    return [{ atMs: parseTime(findValue(row, '@timestamp')), fields: { ...fields } }];
  } catch {
    return [];
  }
}
