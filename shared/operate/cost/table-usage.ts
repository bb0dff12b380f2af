/** What a month of calls takes of the tables, and of the functions that read their streams. Knows no prices. */
import { streamReaders } from './background-amounts.ts';
import { perCall } from './call-amounts.ts';
import { gigabyte, type Taken } from './taken.ts';
import type { Workload } from './workload.ts';

/** How many of `kinds` equally likely kinds appear among so many. */
const distinct = (kinds: number, among: number): number =>
  kinds === 0 ? 0 : kinds * (1 - (1 - 1 / kinds) ** among);

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
  const sums = perCall.sumWrites * pairs + perCall.monthWrites * distinct(accounts, calls);
  return perCall.rowWrites + (sums + perCall.batchWrites) / calls;
}

const renewals = ({ seconds }: Workload): number =>
  Math.max(0, Math.ceil(seconds / perCall.leaseSeconds) - 1);

export function tableUsage(workload: Workload): Taken[] {
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
export function streamUsage(workload: Workload): Taken[] {
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
