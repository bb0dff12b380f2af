/** What a month of calls takes of each service. Knows no prices. */
import type { PriceName } from './aws-prices.ts';
import { atRest, perCall, streamReaders, type Workload } from './workload.ts';

/** An amount of one service, in the unit of its price. */
export interface Taken {
  price: PriceName;
  what: string;
  quantity: number;
}

/** AWS's gigabyte. */
export const gigabyte = 1024 ** 3;

const answerBytes = ({ chunks }: Workload): number => chunks * perCall.chunkBytes + perCall.answerBytes;
const sentBytes = ({ requestBytes }: Workload): number => requestBytes + perCall.requestHeaderBytes;

/** How many of `kinds` equally likely kinds appear among so many. */
const distinct = (kinds: number, among: number): number => kinds * (1 - (1 - 1 / kinds) ** among);

/** Records in a batch of the table stream: those that came while Lambda gathered. */
function recordsOfBatch({ callsPerSecond }: Workload): number {
  const { gathersSeconds, recordsAtOnce } = streamReaders;
  const gathered = 1 + callsPerSecond * perCall.streamRecords * gathersSeconds;
  return Math.min(gathered, recordsAtOnce);
}

/** Write units of `ledger` and `daily` for one call: the sums of a batch are written once for all its calls. */
export function ledgerWrites(workload: Workload): number {
  const { accounts, channels, models } = workload;
  const calls = Math.max(1, recordsOfBatch(workload) / perCall.streamRecords);
  const pairs = distinct(accounts * models, calls) + distinct(channels * models, calls);
  // A batch registers what is open with one write.
  return perCall.rowWrites + (perCall.sumWrites * pairs + 1) / calls;
}

const renewals = ({ seconds }: Workload): number =>
  Math.max(0, Math.ceil(seconds / perCall.leaseSeconds) - 1);

/** Lambda, the tables and the secrets. */
function functionUsage(workload: Workload): Taken[] {
  const { calls, seconds, memoryMegabytes } = workload;
  const billedSeconds = seconds + perCall.addedSeconds + perCall.startSeconds;
  const streamedBytes = Math.max(0, answerBytes(workload) - 6 * 1024 ** 2);
  return [
    {
      price: 'lambdaCompute',
      what: `${memoryMegabytes} MB for ${billedSeconds} s a call`,
      quantity: (calls * billedSeconds * memoryMegabytes) / 1024,
    },
    { price: 'lambdaRequests', what: 'invocations by calls', quantity: calls },
    {
      price: 'lambdaStreaming',
      what: 'answers beyond 6 MB',
      quantity: (calls * streamedBytes) / gigabyte,
    },
    {
      price: 'secretReads',
      what: 'secrets of channels, by busy environments',
      quantity: (calls * seconds) / perCall.secretSeconds,
    },
  ];
}

function networkUsage(workload: Workload): Taken[] {
  const { calls, internetUpstream } = workload;
  const upGigabytes = (calls * sentBytes(workload)) / gigabyte;
  const upstream: Taken = { price: 'internet', what: 'requests to upstreams', quantity: upGigabytes };
  return [
    ...(internetUpstream ? [upstream] : []),
    {
      price: 'cloudFrontOut',
      what: 'answers to clients',
      quantity: (calls * answerBytes(workload)) / gigabyte,
    },
    { price: 'cloudFrontRequests', what: 'requests of clients', quantity: calls },
    { price: 'cloudFrontToOrigin', what: 'request bodies to the function', quantity: upGigabytes },
  ];
}

function tableUsage(workload: Workload): Taken[] {
  const { calls, monthsKept } = workload;
  const storedGigabytes = (calls * monthsKept * perCall.rowBytes) / gigabyte;
  return [
    {
      price: 'dynamoDbWrites',
      what: 'reserve, settle, leases',
      quantity: calls * (perCall.accountWrites + renewals(workload)),
    },
    {
      price: 'dynamoDbWrites',
      what: 'ledger rows, daily sums',
      quantity: calls * ledgerWrites(workload),
    },
    { price: 'dynamoDbReads', what: 'configuration and keys', quantity: calls * perCall.reads },
    {
      price: 'dynamoDbStorage',
      what: `ledger rows of months: ${monthsKept}`,
      quantity: storedGigabytes,
    },
    { price: 'dynamoDbBackup', what: 'their point-in-time recovery', quantity: storedGigabytes },
  ];
}

/** The functions that read the table stream of `quotas`. Reading it costs nothing for Lambda. */
function streamUsage(workload: Workload): Taken[] {
  const batches = (workload.calls * perCall.streamRecords) / recordsOfBatch(workload);
  const runs = batches * streamReaders.functions;
  const { memoryMegabytes, secondsOfBatch } = streamReaders;
  return [
    {
      price: 'lambdaCompute',
      what: 'readers of the table stream',
      quantity: (runs * secondsOfBatch * memoryMegabytes) / 1024,
    },
    { price: 'lambdaRequests', what: 'invocations by the table stream', quantity: runs },
  ];
}

function observedUsage({ calls, callsPerSecond, channels, failureShare }: Workload): Taken[] {
  const bytes = calls * ((1 - failureShare) * perCall.logBytes + failureShare * perCall.failureLogBytes);
  const busyShare = calls === 0 ? 0 : Math.min(1, calls / callsPerSecond / 3600 / atRest.hours);
  return [
    { price: 'logs', what: 'a line for each call', quantity: bytes / gigabyte },
    {
      price: 'logStorage',
      what: 'logs of a month',
      quantity: (bytes / gigabyte) * atRest.logCompression,
    },
    {
      price: 'metrics',
      what: 'metrics in hours with traffic',
      quantity: busyShare * (atRest.stackMetrics + channels * atRest.channelMetrics),
    },
  ];
}

export const trafficUsage = (workload: Workload): Taken[] => [
  ...functionUsage(workload),
  ...networkUsage(workload),
  ...tableUsage(workload),
  ...streamUsage(workload),
  ...observedUsage(workload),
  ...(workload.webAcl
    ? [{ price: 'webAclRequests', what: 'requests inspected', quantity: workload.calls } as const]
    : []),
];
