/** What a month costs, line by line. Never asks AWS: prices are those of `aws-prices.ts`. */
import { usageFailure } from './plan.ts';

/**
 * AWS's list prices in US dollars, without tax: the only place that has them. Each price names where it was read and when.
 * Whoever relies on one looks it up again at the addresses below.
 */

export const regions = ['us-east-1', 'us-west-2', 'eu-central-1', 'ap-northeast-1'] as const;
export type Region = (typeof regions)[number];

/** Where a price was read. `date`: the day of the reading, or of the page, as exactly as it is known. */
interface PriceSource {
  what: string;
  date: string;
}

const offers = 'https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws';

export const priceSources = {
  frankfurt: {
    what: `AWS Price List, eu-central-1 (${offers}/AmazonDynamoDB, AWSLambda, AmazonCloudWatch), as a public project read it`,
    date: '2026-09-11',
  },
  tokyo: {
    what: `AWS Price List, ap-northeast-1 (${offers}/AmazonDynamoDB, AWSDataTransfer, AWSSecretsManager, AmazonCloudWatch, awswaf), as a public project read it`,
    date: '2026-09-23',
  },
  tokyoLogs: {
    what: 'AWS Price List, ap-northeast-1, CloudWatch and Lambda requests, in force from 2026-07-01, as a public project read it',
    date: '2026-07-20',
  },
  lambda: {
    what: 'AWS Price List, AWSLambda, us-east-1, in force from 2025-10-01; https://aws.amazon.com/lambda/pricing/',
    date: '2025-10-28',
  },
  lambdaRegions: {
    what: 'arm64 has one price in all regions but af-south-1, ap-east-1, eu-south-1, me-south-1 and me-central-1: table of a public project after https://aws.amazon.com/lambda/pricing/',
    date: 'not dated',
  },
  lambdaStreaming: { what: 'a public summary of https://aws.amazon.com/lambda/pricing/', date: '2026' },
  cloudFront: {
    what: 'https://aws.amazon.com/cloudfront/pricing/, first 10 TB, and the free tier of every account (stored copy)',
    date: 'not dated; after 2025-11',
  },
  cloudFrontRequests: {
    what: 'AWS Price List, AmazonCloudFront, usage types US-Requests-HTTPS-Proxy and US-DataTransfer-Out-OBytes, as a public project read it',
    date: '2026-10-08',
  },
  cloudFrontJapan: {
    what: 'a bill with the usage types JP-Requests-HTTPS-Proxy and JP-DataTransfer-Out-OBytes, published as an example',
    date: 'not dated; before 2020',
  },
  cloudFrontPlans: {
    what: 'https://aws.amazon.com/cloudfront/pricing/ and the developer guide, flat-rate-pricing-plan, as a public project read them',
    date: '2026-09-05',
  },
  dynamoDb: {
    what: 'https://aws.amazon.com/dynamodb/pricing/on-demand/ after the cut of 2024-11-01, as an article gives it',
    date: '2025-07-21',
  },
  dynamoDbStorage: {
    what: 'AWS Price List, AmazonDynamoDB, us-east-1, as a public project read it',
    date: '2026-10-08',
  },
  cloudWatch: {
    what: 'https://aws.amazon.com/cloudwatch/pricing/, us-east-1, as an article gives it',
    date: '2026-02',
  },
  secrets: {
    what: 'https://aws.amazon.com/secrets-manager/pricing/, as several articles give it',
    date: '2026',
  },
  internet: {
    what: 'https://aws.amazon.com/ec2/pricing/on-demand/, data transfer, as an article gives it',
    date: '2026',
  },
  waf: {
    what: 'https://aws.amazon.com/waf/pricing/ (one price in all regions), as articles give it',
    date: '2026',
  },
  sns: { what: 'AWS Price List, AmazonSNS, us-east-1, as a public project read it', date: '2026-10-08' },
  /** Taken to be that of us-east-1: both regions have had one price list for these services for years. */
  asVirginia: { what: 'not found for this region: the price of us-east-1', date: 'not found' },
  /** From the list as it is commonly known. */
  notFound: {
    what: 'not found in a dated source: the list price as it is commonly known',
    date: 'not found',
  },
} as const satisfies Record<string, PriceSource>;

type SourceName = keyof typeof priceSources;

interface Price {
  unit: string;
  byRegion: Record<Region, readonly [usd: number, source: SourceName]>;
  /** What AWS gives to every account each month, for good. */
  free?: number;
}

const everywhere = (usd: number, source: SourceName): Price['byRegion'] => ({
  'us-east-1': [usd, source],
  'us-west-2': [usd, source],
  'eu-central-1': [usd, source],
  'ap-northeast-1': [usd, source],
});

const american = (usd: number, source: SourceName) =>
  ({ 'us-east-1': [usd, source], 'us-west-2': [usd, 'asVirginia'] }) as const;

export const prices = {
  /** arm64; the first 7.5 billion a month. */
  lambdaCompute: {
    unit: 'GB-second',
    free: 400_000,
    byRegion: {
      'us-east-1': [0.0000133334, 'lambda'],
      'us-west-2': [0.0000133334, 'lambdaRegions'],
      'eu-central-1': [0.0000133334, 'frankfurt'],
      'ap-northeast-1': [0.0000133334, 'lambdaRegions'],
    },
  },
  lambdaRequests: {
    unit: 'request',
    free: 1_000_000,
    byRegion: {
      ...american(0.0000002, 'lambda'),
      'eu-central-1': [0.0000002, 'frankfurt'],
      'ap-northeast-1': [0.0000002, 'tokyoLogs'],
    },
  },
  /** Of each answer the first 6 MB cost nothing. */
  lambdaStreaming: {
    unit: 'GB',
    free: 100,
    byRegion: { ...everywhere(0.008, 'notFound'), 'us-east-1': [0.008, 'lambdaStreaming'] },
  },
  /** The first 10 TB a month. */
  internet: {
    unit: 'GB',
    free: 100,
    byRegion: {
      ...american(0.09, 'internet'),
      'eu-central-1': [0.09, 'notFound'],
      'ap-northeast-1': [0.114, 'tokyo'],
    },
  },
  /** The first 10 TB a month. By where the reader is; taken to be near the region. What the function sends to CloudFront costs nothing. */
  cloudFrontOut: {
    unit: 'GB',
    free: 1024,
    byRegion: { ...everywhere(0.085, 'cloudFront'), 'ap-northeast-1': [0.114, 'cloudFront'] },
  },
  cloudFrontRequests: {
    unit: 'HTTPS request',
    free: 10_000_000,
    byRegion: {
      ...everywhere(0.000001, 'cloudFrontRequests'),
      'eu-central-1': [0.0000012, 'notFound'],
      'ap-northeast-1': [0.0000012, 'cloudFrontJapan'],
    },
  },
  /** Bodies of requests. */
  cloudFrontToOrigin: {
    unit: 'GB',
    byRegion: {
      ...everywhere(0.02, 'cloudFrontRequests'),
      'eu-central-1': [0.02, 'notFound'],
      'ap-northeast-1': [0.06, 'cloudFrontJapan'],
    },
  },
  dynamoDbWrites: {
    unit: 'write unit',
    byRegion: {
      ...american(0.000000625, 'dynamoDb'),
      'eu-central-1': [0.0000007625, 'frankfurt'],
      'ap-northeast-1': [0.000000715, 'tokyo'],
    },
  },
  dynamoDbReads: {
    unit: 'read unit',
    byRegion: {
      ...american(0.000000125, 'dynamoDb'),
      'eu-central-1': [0.0000001525, 'frankfurt'],
      'ap-northeast-1': [0.0000001425, 'tokyo'],
    },
  },
  dynamoDbStorage: {
    unit: 'GB-month',
    free: 25,
    byRegion: {
      ...american(0.25, 'dynamoDbStorage'),
      'eu-central-1': [0.306, 'frankfurt'],
      'ap-northeast-1': [0.285, 'notFound'],
    },
  },
  /** Point-in-time recovery. */
  dynamoDbBackup: {
    unit: 'GB-month',
    byRegion: {
      ...american(0.2, 'notFound'),
      'eu-central-1': [0.2448, 'frankfurt'],
      'ap-northeast-1': [0.228, 'notFound'],
    },
  },
  logs: {
    unit: 'GB',
    free: 5,
    byRegion: {
      ...american(0.5, 'cloudWatch'),
      'eu-central-1': [0.63, 'frankfurt'],
      'ap-northeast-1': [0.76, 'tokyo'],
    },
  },
  logStorage: {
    unit: 'GB-month',
    byRegion: {
      ...american(0.03, 'cloudWatch'),
      'eu-central-1': [0.0324, 'frankfurt'],
      'ap-northeast-1': [0.033, 'tokyoLogs'],
    },
  },
  /** For the share of the month's hours in which it has a value. */
  metrics: {
    unit: 'metric-month',
    free: 10,
    byRegion: { ...everywhere(0.3, 'cloudWatch'), 'ap-northeast-1': [0.3, 'tokyo'] },
  },
  /** An alarm that reckons with two metrics is billed as two. */
  alarms: {
    unit: 'metric-month',
    free: 10,
    byRegion: {
      ...everywhere(0.1, 'cloudWatch'),
      'eu-central-1': [0.1, 'frankfurt'],
      'ap-northeast-1': [0.1, 'tokyo'],
    },
  },
  /** Free while it draws at most 50 metrics. */
  dashboards: { unit: 'dashboard-month', free: 3, byRegion: everywhere(3, 'cloudWatch') },
  secrets: {
    unit: 'secret-month',
    byRegion: { ...everywhere(0.4, 'secrets'), 'ap-northeast-1': [0.4, 'tokyo'] },
  },
  secretReads: { unit: 'call', byRegion: everywhere(0.05 / 10_000, 'secrets') },
  /** With one rule. */
  webAcl: { unit: 'month', byRegion: everywhere(5 + 1, 'waf') },
  webAclRequests: { unit: 'request', byRegion: everywhere(0.0000006, 'waf') },
  notices: { unit: 'publication', free: 1_000_000, byRegion: everywhere(0.0000005, 'sns') },
} as const satisfies Record<string, Price>;

type PriceName = keyof typeof prices;

/** CloudFront at one price a month for one distribution, a web ACL included; more than the allowance is slowed down, not billed. */
interface FlatRatePlan {
  usd: number;
  requests: number;
  gigabytesOut: number;
}

const terabytes = 1024;

/** Source: `cloudFrontPlans`. The first plan that allows the traffic is the one to compare with. */
export const flatRatePlans = {
  free: { usd: 0, requests: 1_000_000, gigabytesOut: 100 },
  pro: { usd: 15, requests: 10_000_000, gigabytesOut: 50 * terabytes },
  business: { usd: 200, requests: 125_000_000, gigabytesOut: 50 * terabytes },
  premium: { usd: 1000, requests: 500_000_000, gigabytesOut: 50 * terabytes },
} as const satisfies Record<string, FlatRatePlan>;

type FlatRatePlanName = keyof typeof flatRatePlans;

/** Amounts in US dollars. `list`: at list prices. `billed`: without what AWS gives to every account each month. */
export interface Sum {
  list: number;
  billed: number;
}

export interface CostLine extends Sum {
  what: string;
  quantity: number;
  unit: string;
  usdEach: number;
  /** Where and when the price was read. */
  source: string;
}

export interface CostReport {
  workload: Workload;
  traffic: CostLine[];
  idle: CostLine[];
  sums: { traffic: Sum; perMillion: Sum; idle: Sum; month: Sum; year: Sum };
  /** What the reader has to know, in sentences. */
  remarks: string[];
}

export function costReport(workload: Workload): CostReport {
  checkWorkload(workload);
  // What is free is used up by the stack at rest first.
  const left = new Map<PriceName, number>();
  const priced = (taken: Taken[]): CostLine[] => taken.map((each) => lineOf(each, workload, left));
  const idle = priced(idleUsage(workload).filter(isBilled(workload)));
  const traffic = priced(trafficUsage(workload).filter(isBilled(workload)));
  const plan = planOf(workload);
  if (plan) traffic.push(planLine(workload.edge, plan));
  const month = add(sumOf(traffic), sumOf(idle));
  return {
    workload,
    traffic,
    idle,
    sums: {
      traffic: sumOf(traffic),
      perMillion: times(sumOf(traffic), workload.calls === 0 ? 0 : 1_000_000 / workload.calls),
      idle: sumOf(idle),
      month,
      year: times(month, 12),
    },
    remarks: plan ? planRemarks(workload, plan) : [],
  };
}

const planOf = ({ edge }: Workload): FlatRatePlan | undefined =>
  edge === 'pay-as-you-go' ? undefined : flatRatePlans[edge];

/** What the plan's price includes. Whether it includes bodies to the origin is not said: they are billed here. */
const inPlan = new Set<PriceName>(['cloudFrontOut', 'cloudFrontRequests', 'webAcl', 'webAclRequests']);

const isBilled =
  (workload: Workload) =>
  ({ price }: Taken): boolean =>
    planOf(workload) === undefined || !inPlan.has(price);

function lineOf({ price: name, what, quantity }: Taken, { region }: Workload, left: Map<PriceName, number>) {
  const price: Price = prices[name];
  const [usdEach, source] = price.byRegion[region];
  const free = Math.min(quantity, left.get(name) ?? price.free ?? 0);
  left.set(name, (left.get(name) ?? price.free ?? 0) - free);
  const { what: read, date } = priceSources[source];
  return {
    what,
    quantity,
    unit: price.unit,
    usdEach,
    list: quantity * usdEach,
    billed: (quantity - free) * usdEach,
    source: `${read} (${date})`,
  };
}

function planLine(name: Workload['edge'], { usd }: FlatRatePlan): CostLine {
  const { what, date } = priceSources.cloudFrontPlans;
  const source = `${what} (${date})`;
  return {
    what: `CloudFront, plan ${name}`,
    quantity: 1,
    unit: 'month',
    usdEach: usd,
    list: usd,
    billed: usd,
    source,
  };
}

function planRemarks(workload: Workload, { requests, gigabytesOut }: FlatRatePlan): string[] {
  const taken = trafficUsage(workload);
  const of = (name: PriceName): number => taken.find(({ price }) => price === name)?.quantity ?? 0;
  return of('cloudFrontRequests') > requests || of('cloudFrontOut') > gigabytesOut
    ? [
        `The traffic is above what plan ${workload.edge} allows (${requests} requests, ${gigabytesOut} GB): it may be slowed down.`,
      ]
    : [];
}

const sumOf = (lines: Sum[]): Sum => lines.reduce(add, { list: 0, billed: 0 });
const add = (a: Sum, b: Sum): Sum => ({ list: a.list + b.list, billed: a.billed + b.billed });
const times = ({ list, billed }: Sum, by: number): Sum => ({ list: list * by, billed: billed * by });

// What a month of calls is, for the question of what it costs.

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

// Whether a month of calls can be.

/** Throws a usage failure for a month that cannot be. */
function checkWorkload(workload: Workload): void {
  const { region, calls, callsPerSecond, seconds, memoryMegabytes } = workload;
  if (!regions.includes(region))
    throw usageFailure(`no prices of ${region as string}: known are ${regions.join(', ')}`);
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

// What a stack takes in a month without a call. Knows no prices.

function idleUsage({ alarms, channels, webAcl }: Workload): Taken[] {
  const runs = atRest.hours * atRest.runsPerHour;
  return [
    { price: 'alarms', what: `metrics of alarms: ${alarms}`, quantity: alarms },
    { price: 'secrets', what: 'origin secret, seal key', quantity: atRest.ownSecrets },
    { price: 'secrets', what: `secrets of channels: ${channels}`, quantity: channels },
    {
      price: 'secretReads',
      what: 'checks of channel secrets',
      quantity: atRest.hours * atRest.secretReadsPerHour * channels,
    },
    { price: 'metrics', what: 'metrics at rest', quantity: atRest.restMetrics },
    { price: 'dashboards', what: 'the dashboard', quantity: atRest.dashboards },
    {
      price: 'lambdaCompute',
      what: 'scheduled runs',
      quantity: (runs * atRest.secondsOfRun * atRest.memoryMegabytes) / 1024,
    },
    { price: 'lambdaRequests', what: 'invocations by schedules', quantity: runs },
    { price: 'dynamoDbReads', what: 'reads of scheduled runs', quantity: runs * atRest.readsOfRun },
    { price: 'notices', what: 'notices of alarms', quantity: atRest.notices },
    ...(webAcl ? [{ price: 'webAcl', what: 'web ACL', quantity: 1 } as const] : []),
  ];
}

/** What one call takes of each service: figures that tests hold, and assumed ones, which say so. */

/** What one call takes. Each figure names the test that holds it, or says that it is assumed. */
export const perCall = {
  /** test/unit/adapters/telemetry/log-volume.test.ts. Platform lines: none, by the system log level. */
  logBytes: 900,
  failureLogBytes: 3_500,
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
  /** In a transaction: for each pair of account and model by day and by hour, for each of channel and model by day, twice. */
  sumWrites: 4,
  /** In a transaction, for each account. */
  monthWrites: 2,
  /** For each batch: what is open, and the minute. */
  batchWrites: 2,
  /** Pointer, cooldowns and what was learned, at most once in 8 s; key and account, at most once in 30 s. */
  reads: 4,
  /** With its index and DynamoDB's overhead. */
  rowBytes: 900,
  /** An environment reads the secret of a channel again after 2.5 to 5 minutes. */
  secretSeconds: 225,
  /** Records of the table stream of `quotas`. */
  streamRecords: 2,
} as const;

// What a month of calls takes of the tables, and of the functions that read their streams. Knows no prices.

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

/** What the functions take that no caller waits for: figures that tests hold, and assumed ones, which say so. */

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
const atRest = {
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
  /** `OpenReservations` and `BadRows`, which are written when they are 0. */
  restMetrics: 2,
  /** In hours with traffic: of the stack, and of each channel. */
  stackMetrics: 10,
  channelMetrics: 3,
  /** CloudWatch stores logs compressed. Assumed. */
  logCompression: 0.2,
} as const;

// An amount of a service, before it has a price.

/** An amount of one service, in the unit of its price. */
interface Taken {
  price: PriceName;
  what: string;
  quantity: number;
}

/** AWS's gigabyte. */
const gigabyte = 1024 ** 3;

// What a month of calls takes of each service. Knows no prices.

const answerBytes = ({ chunks }: Workload): number => chunks * perCall.chunkBytes + perCall.answerBytes;
const sentBytes = ({ requestBytes }: Workload): number => requestBytes + perCall.requestHeaderBytes;

/** Lambda and the secrets. */
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

const trafficUsage = (workload: Workload): Taken[] => [
  ...functionUsage(workload),
  ...networkUsage(workload),
  ...tableUsage(workload),
  ...streamUsage(workload),
  ...observedUsage(workload),
  ...(workload.webAcl
    ? [{ price: 'webAclRequests', what: 'requests inspected', quantity: workload.calls } as const]
    : []),
];
