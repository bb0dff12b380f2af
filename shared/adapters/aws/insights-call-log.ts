/**
 * Searches logs by CloudWatch Logs Insights: one query, polled for a bounded time. Locally the stack answers the same calls.
 * Never writes, and never puts what is searched for into a query but quoted.
 * https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html, API_GetQueryResults.html
 */
import * as z from 'zod/mini';
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
import { callAws, buildJsonCall, readReply, type AwsCaller } from './aws-request.ts';
import { dayMs } from '../../wire/iso-time.ts';

export interface CallLogDeps extends AwsCaller {
  /** Where the log is. `endpoint` absent: CloudWatch. Undefined: it is not known. */
  place(): Promise<(LogSource & { endpoint?: string | undefined }) | undefined>;
  /** Converts an error to a Failure that tells the operator what to do. */
  explain: (error: unknown, where: string) => Error;
}

/** The first result comes within a second or so; a month of a busy log takes half a minute. */
const pollMs = [200, 500, 1_000, 2_000] as const;
const searchMsMax = 60_000;

const startReply = z.object({ queryId: z.string() });
const resultsReply = z.object({
  status: z.string(),
  statistics: z.optional(z.object({ bytesScanned: z.optional(z.number()) })),
  results: z.optional(
    z.array(z.array(z.object({ field: z.optional(z.string()), value: z.optional(z.string()) }))),
  ),
});

export function createInsightsCallLog(deps: CallLogDeps): CallLog {
  let location: ReturnType<CallLogDeps['place']> | undefined;
  /** Another deployment, or another start of a local stack, may have another one. */
  const forget = (): void => void (location = undefined);
  /** It is asked for once: a page that is watched searches every second. */
  const locateLog = async () => {
    location ??= deps.place();
    let found;
    try {
      found = await location;
    } finally {
      if (!found) forget();
    }
    return found;
  };
  const rowsOf = async (search: LogSearch, queryString: string): Promise<FoundRows> => {
    const found = await locateLog();
    if (!found) throw new Failure('it is not known where the log of this relay is');
    const call = createCall(found.endpoint);
    const callOrForget: Call = (action, body) =>
      call(action, body).catch((error: unknown) => {
        forget();
        throw deps.explain(error, 'CloudWatch Logs');
      });
    return runQuery(callOrForget, { ...search, groups: found.groups, queryString });
  };
  return {
    source: async () => {
      const found = await locateLog();
      return found && { groups: found.groups, kept: await keptIn(found.groups, createCall(found.endpoint)) };
    },
    async search(search) {
      const { rows, scannedBytes } = await rowsOf(search, queryOf(search));
      return { lines: rows.flatMap(lineOf).toReversed(), scannedBytes };
    },
    async counts(search, by) {
      const { rows, scannedBytes } = await rowsOf(search, countsOf(search, by));
      return { counts: rows.map((row) => countOf(row, by.field)), scannedBytes };
    },
  };

  function createCall(named: string | undefined): Call {
    const { aws, environment } = deps;
    const endpoint = named ?? environment['AWS_ENDPOINT_URL_CLOUDWATCH_LOGS'];
    const caller = {
      aws,
      environment: { ...environment, ...(endpoint !== undefined && { AWS_ENDPOINT_URL_LOGS: endpoint }) },
    };
    return (action, body) => callAws(caller, buildJsonCall('logs', `Logs_20140328.${action}`, body));
  }
}

type Call = (action: string, body: object) => Promise<string>;

const groupsReply = z.object({
  logGroups: z.array(
    z.object({
      logGroupName: z.string(),
      storedBytes: z.optional(z.number()),
      creationTime: z.optional(z.number()),
      retentionInDays: z.optional(z.number()),
    }),
  ),
});

/** Each by its name: the names that a prefix finds may be more. Undefined: a policy of an older stack does not allow it. */
async function keptIn(groups: readonly string[], call: Call): Promise<LogSource['kept']> {
  const nowMs = systemClock.now();
  try {
    const found = await Promise.all(
      groups.map(async (name) => {
        const reply = await call('DescribeLogGroups', { logGroupNamePrefix: name });
        return readReply(groupsReply, reply).logGroups.filter(({ logGroupName }) => logGroupName === name);
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

type Row = readonly { field?: string | undefined; value?: string | undefined }[];

interface FoundRows {
  rows: readonly Row[];
  scannedBytes: number;
}

interface Query extends Record<'fromMs' | 'toMs', number> {
  groups: readonly string[];
  queryString: string;
}

async function runQuery(call: Call, { fromMs, toMs, groups, queryString }: Query): Promise<FoundRows> {
  const { queryId } = readReply(
    startReply,
    await call('StartQuery', {
      logGroupNames: groups,
      startTime: Math.floor(fromMs / 1000),
      endTime: Math.ceil(toMs / 1000),
      queryString,
    }),
  );
  const untilMs = systemClock.now() + searchMsMax;
  for (let turn = 0; systemClock.now() < untilMs; turn += 1) {
    await systemClock.sleep(pollMs[Math.min(turn, pollMs.length - 1)] ?? 0);
    const {
      status,
      statistics,
      results = [],
    } = readReply(resultsReply, await call('GetQueryResults', { queryId }));
    if (status === 'Complete') return { rows: results, scannedBytes: statistics?.bytesScanned ?? 0 };
    if (status !== 'Scheduled' && status !== 'Running')
      throw new Failure(`CloudWatch Logs did not carry the search out: ${status}`);
  }
  throw new Failure(`the search takes longer than ${searchMsMax / 1000} s: give a shorter time`);
}

export const queryOf = ({ conditions, limit }: LogSearch): string =>
  ['fields @timestamp, @message', filterOf(conditions), 'sort @timestamp desc', `limit ${limit}`].join(
    '\n| ',
  );

const countsOf = ({ conditions }: LogSearch, { field, stepMs }: { field: string; stepMs: number }): string =>
  [filterOf(conditions), `stats count(*) as calls by ${composeBin(stepMs)}, ${field}`].join('\n| ');

const filterOf = (conditions: LogSearch['conditions']): string =>
  `filter ${conditions.map(formatCondition).join(' and ')}`;

/** In the largest unit: more than 60 of seconds or minutes are taken for 60. */
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

/** Names with other signs stand in backticks. */
const quoteField = (field: string): string => (field.includes('-') ? `\`${field}\`` : field);

function quoteValue(value: string): string {
  if (/["\\\n\r]/.test(value))
    throw usageFailure(`${JSON.stringify(value)} cannot be searched for in the log`);
  return `"${value}"`;
}

const valueOf = (row: Row, name: string): string =>
  row.find(({ field }) => field?.startsWith(name))?.value ?? '';

const timeOf = (written: string): number => Date.parse(`${written.replace(' ', 'T')}Z`);

const countOf = (row: Row, field: string): LineCount => ({
  startMs: timeOf(valueOf(row, 'bin(')),
  value: valueOf(row, field),
  count: Number(valueOf(row, 'calls')),
});

/** A line that is no JSON is none of a function. */
function lineOf(row: Row): FoundLines['lines'] {
  try {
    const fields: unknown = JSON.parse(valueOf(row, '@message'));
    if (typeof fields !== 'object' || fields === null) return [];
    return [{ atMs: timeOf(valueOf(row, '@timestamp')), fields: { ...fields } }];
  } catch {
    return [];
  }
}
