/**
 * Computes the tables of docs/cost.md from AWS's unit prices, the resources of a call, and the template. Run it to write them. With a
 * JSON object, such as '{"calls":1500000,"seconds":12}', it prints what those calls cost instead.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { functionDescriptions, functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { resourcesOf, synthesize, type Template } from '../infra/synthesize.ts';
import { callUnits } from '../support/call-units.ts';

const priceList = 'AWS Price List, us-east-1';

/** US dollars a unit in us-east-1, without tax; the free quantity of each month; where and when it was read. */
const prices = {
  lambdaSecond: { usd: 0.0000133334, free: 400_000, source: priceList, read: '2025-10-28' },
  lambdaCall: { usd: 0.0000002, free: 1_000_000, source: priceList, read: '2025-10-28' },
  edgeRequest: { usd: 0.000001, free: 10_000_000, source: priceList, read: '2026-10-08' },
  edgeToOrigin: { usd: 0.02, free: 0, source: priceList, read: '2026-10-08' },
  internet: { usd: 0.09, free: 100, source: 'aws.amazon.com/ec2/pricing/on-demand', read: '2026' },
  write: { usd: 0.000000625, free: 0, source: 'aws.amazon.com/dynamodb/pricing', read: '2025-07-21' },
  read: { usd: 0.000000125, free: 0, source: 'aws.amazon.com/dynamodb/pricing', read: '2025-07-21' },
  stored: { usd: 0.25, free: 25, source: priceList, read: '2026-10-08' },
  backup: { usd: 0.2, free: 0, source: 'aws.amazon.com/dynamodb/pricing', read: '2025' },
  log: { usd: 0.5, free: 5, source: 'aws.amazon.com/cloudwatch/pricing', read: '2026-02' },
  logStored: { usd: 0.03, free: 5, source: 'aws.amazon.com/cloudwatch/pricing', read: '2026-02' },
  metric: { usd: 0.3, free: 10, source: 'aws.amazon.com/cloudwatch/pricing', read: '2026-02' },
  alarm: { usd: 0.1, free: 10, source: 'aws.amazon.com/cloudwatch/pricing', read: '2026-02' },
  dashboard: { usd: 3, free: 3, source: 'aws.amazon.com/cloudwatch/pricing', read: '2026-02' },
  secret: { usd: 0.4, free: 0, source: 'aws.amazon.com/secrets-manager/pricing', read: '2026' },
  secretRead: { usd: 0.000005, free: 0, source: 'aws.amazon.com/secrets-manager/pricing', read: '2026' },
  keyUse: { usd: 0.000003, free: 20_000, source: 'aws.amazon.com/kms/pricing', read: '2026-03' },
  taskHour: {
    usd: 0.03238 + 2 * 0.00356 + 0.005,
    free: 0,
    source: 'aws.amazon.com/fargate/pricing and vpc/pricing',
    read: '2026',
  },
  balancerHour: {
    usd: 0.0225,
    free: 0,
    source: 'aws.amazon.com/elasticloadbalancing/pricing',
    read: '2026',
  },
  balancerGigabyte: {
    usd: 0.008,
    free: 0,
    source: 'aws.amazon.com/elasticloadbalancing/pricing',
    read: '2026',
  },
} as const;

/** CloudFront's bytes to clients, by the gigabytes of a month up to which a price holds (aws.amazon.com/cloudfront/pricing, read in 2026). */
const edgeBytes = [
  { upTo: 10 * 1024, usd: 0.085 },
  { upTo: 50 * 1024, usd: 0.08 },
  { upTo: Infinity, usd: 0.06 },
];
const edgeBytesFree = 1024;

/** CloudFront's flat prices with the requests and gigabytes that each includes (read on 2026-09-05). */
const plans = [
  { plan: 'free', usd: 0, requests: 1_000_000, gigabytes: 100 },
  { plan: 'pro', usd: 15, requests: 10_000_000, gigabytes: 50 * 1024 },
  { plan: 'business', usd: 200, requests: 125_000_000, gigabytes: 50 * 1024 },
  { plan: 'premium', usd: 1_000, requests: 500_000_000, gigabytes: 50 * 1024 },
];

const hours = 730;
const gigabyte = 2 ** 30;

interface Workload {
  calls: number;
  /** While there is traffic. */
  callsPerSecond: number;
  seconds: number;
  chunks: number;
  requestBytes: number;
  megabytes: number;
  accounts: number;
  models: number;
  channels: number;
}

/** One call a second, or more if the calls need a higher rate to fit into a month. */
const reference = (calls: number, megabytes = 256): Workload => ({
  calls,
  callsPerSecond: Math.max(1, calls / hours / 3600),
  seconds: 10,
  chunks: 500,
  requestBytes: 20_000,
  megabytes,
  accounts: 4,
  models: 2,
  channels: 2,
});

/** The resources of a call. A test checks each figure, unless its comment says "Assumed". */
const perCall = {
  /** Around the stream, and cold starts of 1.5 s for one call in a hundred. Assumed. */
  addedSeconds: 0.03 + 0.015,
  /** test/unit/adapters/telemetry/log-volume.test.ts */
  logBytes: 0.99 * 900 + 0.01 * 3_500,
  chunkBytes: 235,
  /** Of headers each way. Assumed. */
  headerBytes: 1_000,
  accountWrites: callUnits.quotas,
  reads: 4,
  rowBytes: 900,
  /** An environment reads a channel's secret again after so many seconds. */
  secretSeconds: 225,
};

/** How many of equally likely kinds appear among so many calls. */
const distinct = (kinds: number, calls: number): number => kinds * (1 - (1 - 1 / kinds) ** calls);

/** Calls of a batch of the stream of `quotas`, which has two records a call. */
function callsOfBatch({ callsPerSecond }: Workload, reader: 'ledger' | 'alerts'): number {
  const stream = functionDescriptions[reader].streams?.find(({ table }) => table === 'quotas');
  const { gathersSeconds = 0, recordsAtOnce = 1 } = stream ?? {};
  return Math.max(1, Math.min(1 + callsPerSecond * 2 * gathersSeconds, recordsAtOnce) / 2);
}

/** Write units of a call's row and sums, which a batch shares (test/contract/call-costs.test.ts). */
function ledgerWrites(workload: Workload): number {
  const { accounts, models, channels } = workload;
  const calls = callsOfBatch(workload, 'ledger');
  const pairs = distinct(accounts * models, calls) + distinct(channels * models, calls);
  const attempts = 2 * distinct(channels * models, calls);
  return (
    callUnits.ledger +
    callUnits.ledgerIndex +
    (4 * pairs + attempts + 2 * distinct(accounts, calls) + callUnits.minute) / calls
  );
}

interface Line {
  what: string;
  list: number;
  billed: number;
}

type PriceName = keyof typeof prices;

/** @param freeLeft 0 where another line used it up */
function line(what: string, name: PriceName, quantity: number, freeLeft: number = prices[name].free): Line {
  const { usd } = prices[name];
  return { what, list: quantity * usd, billed: Math.max(0, quantity - freeLeft) * usd };
}

const merge = (what: string, lines: Line[]): Line => ({ what, ...sum(lines) });
const sum = (lines: readonly Line[]) => ({
  list: lines.reduce((total, { list }) => total + list, 0),
  billed: lines.reduce((total, { billed }) => total + billed, 0),
});

const answerGigabytes = ({ calls, chunks }: Workload): number =>
  (calls * (chunks * perCall.chunkBytes + perCall.headerBytes)) / gigabyte;
const requestGigabytes = ({ calls, requestBytes }: Workload): number =>
  (calls * (requestBytes + perCall.headerBytes)) / gigabyte;

function priceEdgeBytes(gigabytes: number): number {
  let from = 0;
  let usd = 0;
  for (const tier of edgeBytes) {
    usd += Math.max(0, Math.min(gigabytes, tier.upTo) - from) * tier.usd;
    from = tier.upTo;
  }
  return usd;
}

/** CloudFront by the byte. */
function byBytes(workload: Workload): Line {
  const gigabytes = answerGigabytes(workload);
  const answers = {
    what: '',
    list: priceEdgeBytes(gigabytes),
    billed: priceEdgeBytes(Math.max(0, gigabytes - edgeBytesFree)),
  };
  const requests = line('', 'edgeRequest', workload.calls);
  return merge('CloudFront, by the byte', [
    answers,
    requests,
    line('', 'edgeToOrigin', requestGigabytes(workload)),
  ]);
}

const planOf = (workload: Workload) =>
  plans.find(
    ({ requests, gigabytes }) => workload.calls <= requests && answerGigabytes(workload) <= gigabytes,
  );

/** CloudFront by its smallest plan. Bodies to an origin are billed as if the plan did not include them. */
function byPlan(workload: Workload): Line {
  const { usd = NaN, plan } = planOf(workload) ?? {};
  const bodies = line('', 'edgeToOrigin', requestGigabytes(workload));
  return merge(`CloudFront, plan ${plan}`, [{ what: '', list: usd, billed: usd }, bodies]);
}

function functionLines(workload: Workload): Line[] {
  const { calls, seconds, megabytes } = workload;
  const gigabyteSeconds = (calls * (seconds + perCall.addedSeconds) * megabytes) / 1024;
  return [
    merge('functions that answer', [
      line('', 'lambdaSecond', gigabyteSeconds),
      line('', 'lambdaCall', calls),
    ]),
    line('reads of secrets', 'secretRead', (calls * seconds) / perCall.secretSeconds),
  ];
}

/** At least two tasks, and one for every 100 open streams at twice the mean load. */
function serverLines(workload: Workload): Line[] {
  const open = meanOpen(workload);
  const bytes = answerGigabytes(workload) + requestGigabytes(workload);
  return [
    merge('servers', [
      line('', 'taskHour', hours * Math.max(2, Math.ceil((2 * open) / 100))),
      line('', 'balancerHour', hours),
      line('', 'balancerGigabyte', bytes),
      line('', 'metric', 1, 0),
      line('', 'alarm', 4, 0),
    ]),
  ];
}

const meanOpen = ({ calls, seconds }: Workload): number => (calls * seconds) / hours / 3600;

/** Costs that are the same for functions and servers. */
function commonLines(workload: Workload): Line[] {
  const { calls, callsPerSecond, channels } = workload;
  const runs = calls / callsOfBatch(workload, 'ledger') + calls / callsOfBatch(workload, 'alerts');
  const stored = (calls * perCall.rowBytes) / gigabyte;
  const logs = (calls * perCall.logBytes) / gigabyte;
  const busy = Math.min(1, calls / callsPerSecond / 3600 / hours);
  return [
    line('requests to upstreams', 'internet', requestGigabytes(workload)),
    merge('tables: units, a month of rows, their backup', [
      line('', 'write', calls * (perCall.accountWrites + ledgerWrites(workload))),
      line('', 'read', calls * perCall.reads),
      line('', 'stored', stored),
      line('', 'backup', stored),
    ]),
    merge('readers of the table stream', [
      line('', 'lambdaSecond', runs * 0.1 * 0.25, 0),
      line('', 'lambdaCall', runs, 0),
    ]),
    merge('log', [line('', 'log', logs), line('', 'logStored', logs * 0.2)]),
    // An idle stack uses up free metrics first.
    line('metrics in hours with traffic', 'metric', busy * (10 + 3 * channels), 10 - restMetrics),
  ];
}

// A stack without calls.

/** `OpenReservations`, `BadRows`, and the six of the mapping whose given-up records an alarm reads: at rest they are zeros. */
const restMetrics = 2 + 6;

const runsAnHour = functionNames.reduce((runs, name) => {
  const { everyMinutes } = functionDescriptions[name];
  return everyMinutes === undefined ? runs : runs + 60 / everyMinutes;
}, 0);

/** AWS bills an alarm by the metrics that it looks at. */
function countAlarms(template: Template): { alarms: number; looked: number } {
  const alarms = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([, { Properties }]) =>
    Properties['MetricName'] === undefined
      ? (Properties['Metrics'] as { MetricStat?: object }[]).filter(({ MetricStat }) => MetricStat).length
      : 1,
  );
  return { alarms: alarms.length, looked: alarms.reduce((total, each) => total + each, 0) };
}

function idleLines(options: Record<string, unknown> = {}): Line[] {
  const { template } = synthesize(options);
  const { alarms, looked } = countAlarms(template);
  const secrets = resourcesOf(template, 'AWS::SecretsManager::Secret').length;
  const runs = hours * runsAnHour;
  return [
    line(`${alarms} alarms, which look at ${looked} metrics`, 'alarm', looked),
    line(`${secrets} secrets: the origin secret and the seal key`, 'secret', secrets),
    line('two reads of tables for each scheduled run', 'read', runs * 2),
    line(`${restMetrics} metrics, six of them of the stream of \`ledger\``, 'metric', restMetrics),
    line(`uses of KMS: one for each new environment`, 'keyUse', runs / 10),
    merge(`${runsAnHour} scheduled runs an hour of 0.05 s`, [
      line('', 'lambdaSecond', runs * 0.05 * 0.25),
      line('', 'lambdaCall', runs),
    ]),
    line('dashboard of at most 50 metrics', 'dashboard', 1, 1),
  ];
}

// The blocks of the page.

const usd = (amount: number): string =>
  amount.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const table = (head: string[], rows: string[][]): string =>
  [
    '<!-- oxfmt-ignore -->',
    ...[head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`),
  ].join('\n');

const tableOf = (lines: Line[]): string =>
  table(
    ['dollars', 'list', 'billed'],
    [...lines, { ...sum(lines), what: '**all**' }].map((each) => [
      each.what,
      usd(each.list),
      usd(each.billed),
    ]),
  );

const millionLines = (megabytes: number): Line[] => {
  const workload = reference(1_000_000, megabytes);
  return [...functionLines(workload), byBytes(workload), ...commonLines(workload)];
};

/** Months by number of calls. */
const volumes = [1, 2.5, 10, 50, 100];

/** Dollars a month, by compute and by CloudFront's way of billing, without the idle stack. */
function monthsOf(millions: number) {
  const workload = reference(millions * 1_000_000);
  const small = reference(millions * 1_000_000, 128);
  const common = commonLines(workload);
  const total = (lines: Line[]): number => sum([...lines, ...common]).list;
  return {
    open: meanOpen(workload),
    functions: total([...functionLines(workload), byBytes(workload)]),
    functionsWithPlan: total([...functionLines(workload), byPlan(workload)]),
    smallWithPlan: total([...functionLines(small), byPlan(small)]),
    servers: total([...serverLines(workload), byBytes(workload)]),
    serversWithPlan: total([...serverLines(workload), byPlan(workload)]),
  };
}

function monthsTable(): string {
  const months = volumes.map(monthsOf);
  const row = (what: string, cell: (month: ReturnType<typeof monthsOf>) => string) => [
    what,
    ...months.map(cell),
  ];
  const whole = (amount: number): string => Math.round(amount).toLocaleString('en-US');
  return table(
    ['millions of calls a month', ...volumes.map(String)],
    [
      row('open at once, mean', ({ open }) => String(Math.round(open))),
      row('functions of 256 MB, by the byte', ({ functions }) => whole(functions)),
      row('functions of 256 MB, plan', ({ functionsWithPlan }) => whole(functionsWithPlan)),
      row('functions of 128 MB, plan', ({ smallWithPlan }) => whole(smallWithPlan)),
      row('servers, by the byte', ({ servers }) => whole(servers)),
      row('servers, plan', ({ serversWithPlan }) => whole(serversWithPlan)),
      row(
        'servers, plan: share of functions by the byte',
        ({ functions, serversWithPlan }) => `${Math.round((100 * serversWithPlan) / functions)} %`,
      ),
    ],
  );
}

const writesText = (): string =>
  [undefined, 1, 10, 100]
    .map((callsPerSecond) => ledgerWrites({ ...reference(1_000_000), callsPerSecond: callsPerSecond ?? 0 }))
    .map((units) => `${units.toFixed(1)} ($${usd(units * 1_000_000 * prices.write.usd)})`)
    .join(', ');

const idleOf = (options: Record<string, unknown>): string => usd(sum(idleLines(options)).billed);

/** By name. Each stands in the page after `<!-- made by test/scripts/cost-page.ts: NAME -->`, up to the next empty line. */
export const costBlocks = (): Readonly<Record<string, string>> => ({
  idle: tableOf(idleLines()),
  'idle options': `It is $${idleOf({ alarms: false })} with \`"alarms": false\` and $${idleOf({ shifting: false })} with \`"shifting": false\`.`,
  million: tableOf(millionLines(256)),
  writes: `For a lone call, and at 1, 10 and 100 calls a second, row and sums take ${writesText()} write units (in parentheses: a million calls, list).`,
  months: monthsTable(),
});

export const costBlock = (name: string): RegExp =>
  new RegExp(`(?<=^<!-- made by test/scripts/cost-page\\.ts: ${name} -->\\n\\n)[^]*?(?=\\n\\n|\\n$)`, 'm');

/** Figures that other pages and the first lines of this one quote. */
export const quotedFigures = () => ({
  idle: sum(idleLines()).billed,
  million: sum(millionLines(256)).billed,
  millionSmall: sum(millionLines(128)).billed,
  quarterFromMillions: volumes.find((each) => {
    const { functions, serversWithPlan } = monthsOf(each);
    return Math.round((100 * serversWithPlan) / functions) <= 25;
  }),
});

if (import.meta.main) {
  const [given] = process.argv.slice(2);
  if (given === undefined) {
    const page = join(import.meta.dirname, '..', '..', 'docs', 'cost.md');
    let text = readFileSync(page, 'utf8');
    for (const [name, block] of Object.entries(costBlocks()))
      text = text.replace(costBlock(name), () => block);
    writeFileSync(page, text);
  } else {
    const { calls = 1_000_000, ...others } = JSON.parse(given) as Partial<Workload>;
    const workload = { ...reference(calls), ...others };
    console.log(
      tableOf([...functionLines(workload), byBytes(workload), ...commonLines(workload), ...idleLines()]),
    );
  }
}
