/** What a month of calls is, for the question of what it costs. */
import type { FlatRatePlanName, Region } from './aws-prices.ts';

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
  alarms: 31,
};
