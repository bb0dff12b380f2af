/**
 * What a month of calls is, for the question of what it costs, and what one call takes of each service. The figures that
 * tests hold: log bytes, bytes of a chunk, write units, log lines and metrics. The assumed ones say so.
 */
import { usageFailure } from '../operator-failure.ts';
import { regions, type FlatRatePlanName, type Region } from './aws-prices.ts';

export interface Workload {
  /** Calls in a month. */
  calls: number;
  /** While there is traffic: how many calls begin in a second. */
  callsPerSecond: number;
  /** How long an answer streams. */
  seconds: number;
  /** Events of an answer, one for each piece of text. */
  chunks: number;
  requestBytes: number;
  memoryMegabytes: number;
  region: Region;
  /** Equally busy accounts and models: they decide how many daily sums a call touches. */
  accounts: number;
  models: number;
  /** Each has a secret. */
  channels: number;
  /** The share of calls that fail and write the longer log. */
  failureShare: number;
  /** Upstreams are reached through the internet, not inside the region. */
  internetUpstream: boolean;
  /** How many months of ledger rows are stored, this one included. */
  monthsKept: number;
  edge: 'pay-as-you-go' | FlatRatePlanName;
  webAcl: boolean;
  /** Metrics that alarms look at. */
  alarms: number;
}

/** The stream of which a million is a fixed unit: 10 s, 500 chunks, a request of 20 KB; ten at once. */
export const reference: Workload = {
  calls: 1_000_000,
  callsPerSecond: 1,
  seconds: 10,
  chunks: 500,
  requestBytes: 20_000,
  memoryMegabytes: 256,
  region: 'us-east-1',
  accounts: 4,
  models: 2,
  channels: 2,
  failureShare: 0.01,
  internetUpstream: true,
  monthsKept: 1,
  edge: 'pay-as-you-go',
  webAcl: false,
  alarms: 20,
};

/** What one call takes. Each figure names the test that holds it, or says that it is assumed. */
export const perCall = {
  /** test/unit/adapters/telemetry/log-volume.test.ts. Platform lines: none, by the system log level. */
  logBytes: 900,
  failureLogBytes: 3_000,
  /** test/docs/cost.test.ts: a chunk with a word, of a model with a name of 11 characters. */
  chunkBytes: 235,
  /** Headers of the answer, its first and last events. Assumed. */
  answerBytes: 1_000,
  /** Headers of the request, both to the function and to the upstream. Assumed. */
  requestHeaderBytes: 1_000,
  /** Beside the stream: reserve before it, settle and log line after it. Assumed, with a TLS round trip to the tables. */
  addedSeconds: 0.03,
  /** Starts of environments are billed too. Assumed: one call in a hundred starts one, for 1.5 s at 256 MB. */
  startSeconds: 0.015,
  /** test/contract/call-costs.test.ts: reserve and settle, one unit each while at most eight calls of a part run. */
  accountWrites: 2,
  /** One write more for each minute that a call runs beyond the first. */
  leaseSeconds: 60,
  /** test/contract/call-costs.test.ts: the row in a transaction, and its index. */
  rowWrites: 3,
  /** By day and by hour, in a transaction, for each pair of account and model and each pair of channel and model. */
  sumWrites: 4,
  /** Pointer, cooldowns and what was learned, at most once in 8 s; key and account, at most once in 30 s. */
  reads: 4,
  /** With its index and DynamoDB's overhead. */
  rowBytes: 900,
  /** An environment reads the secret of a channel again after 2.5 to 5 minutes. */
  secretSeconds: 225,
  /** Records of the table stream of `quotas`. */
  streamRecords: 2,
} as const;

/** What the functions behind the table stream of `quotas` take. */
export const streamReaders = {
  recordsAtOnce: 100,
  /** `gathersSeconds` of functions `ledger` and `alerts`; test/infra/triggers.test.ts. */
  gathersSeconds: 5,
  functions: 2,
  memoryMegabytes: 256,
  /** Assumed, for a batch. */
  secondsOfBatch: 0.1,
} as const;

/** What a month of rest takes: there are no calls, and the schedules run. */
export const atRest = {
  hours: 730,
  /** Runs of sweeper and notify each minute, config every 5, grants every 15 minutes, alerts each hour. */
  runsPerHour: 60 + 60 + 12 + 4 + 1,
  /** Assumed: a scheduled run that finds nothing. */
  secondsOfRun: 0.05,
  memoryMegabytes: 256,
  /** Assumed: registrations and progress of the sweeper, due notices, pointer and rows of the configuration. */
  readsOfRun: 2,
  /** The function config reads the secret of each channel every 5 minutes. */
  secretReadsPerHour: 12,
  /** The origin secret and the seal key. */
  ownSecrets: 2,
  dashboards: 1,
  notices: 100,
  /** In hours with traffic: of the stack, and of each channel. A stack at rest has none. */
  stackMetrics: 10,
  channelMetrics: 3,
  /** CloudWatch stores logs compressed. Assumed. */
  logCompression: 0.2,
} as const;

/** Throws a usage failure for a month that cannot be. */
export function checkWorkload(workload: Workload): void {
  const { region, calls, callsPerSecond, seconds, memoryMegabytes } = workload;
  if (!regions.includes(region))
    throw usageFailure(`no prices of ${String(region)}: known are ${regions.join(', ')}`);
  for (const [name, value] of Object.entries(workload))
    if (typeof value === 'number' && !(value >= 0 && Number.isFinite(value)))
      throw usageFailure(`${name}: wanted a number of 0 or more`);
  if (memoryMegabytes < 128) throw usageFailure('memory: Lambda has functions from 128 MB on');
  if (calls > 0 && (callsPerSecond === 0 || seconds === 0))
    throw usageFailure('calls need a rate and a duration above 0');
  const most = callsPerSecond * atRest.hours * 3600;
  if (calls > most)
    throw usageFailure(
      `${calls} calls do not fit into a month of ${callsPerSecond} a second: set a higher rate`,
    );
}
