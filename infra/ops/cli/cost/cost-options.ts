/** The options of the command `cost`, and the month that they mean. */
import { InvalidArgumentError } from 'commander';
import { flatRatePlans, regions, type Region } from '../../../../shared/operate/cost/aws-prices.ts';
import { reference, type Workload } from '../../../../shared/operate/cost/workload.ts';

export interface CostOptions {
  calls: number;
  rate: number;
  seconds: number;
  tokens?: number;
  chunks?: number;
  requestKilobytes: number;
  memory: number;
  region: Region;
  accounts: number;
  models: number;
  channels: number;
  /** Percent. */
  failures: number;
  monthsKept: number;
  alarms: number;
  plan: Workload['edge'];
  sameRegion?: boolean;
  webAcl?: boolean;
}

export const regionNames = regions.join(', ');
export const edges = ['pay-as-you-go', ...Object.keys(flatRatePlans)] as Workload['edge'][];

export const parseRegion = (written: string): Region => oneOf(regions, written);
export const parseEdge = (written: string): Workload['edge'] => oneOf(edges, written);

function oneOf<Name extends string>(names: readonly Name[], written: string): Name {
  const name = names.find((each) => each === written);
  if (name === undefined) throw new InvalidArgumentError(`Wanted ${names.join(', ')}.`);
  return name;
}

export const workloadOf = (options: CostOptions): Workload => ({
  calls: options.calls,
  callsPerSecond: options.rate,
  seconds: options.seconds,
  chunks: options.chunks ?? options.tokens ?? reference.chunks,
  requestBytes: options.requestKilobytes * 1000,
  memoryMegabytes: options.memory,
  region: options.region,
  accounts: options.accounts,
  models: options.models,
  channels: options.channels,
  failureShare: options.failures / 100,
  internetUpstream: options.sameRegion !== true,
  monthsKept: options.monthsKept,
  edge: options.plan,
  webAcl: options.webAcl === true,
  alarms: options.alarms,
});
