/** The command `cost`. Needs no tables and no AWS account: it reckons from list prices. */
import { type Command, InvalidArgumentError } from 'commander';
import {
  costReport,
  reference,
  flatRatePlans,
  regions,
  type Region,
  type Workload,
  type CostLine,
  type CostReport,
  type Sum,
} from '../../../../shared/operate/cost.ts';
import { parseNumber } from '../option-values.ts';
import { type CommandContext, listing } from '../command.ts';
import { csvRows, type Terminal } from '../terminal.ts';

const notes = `
Without options: a million calls of the reference stream (10 s, 500 chunks, a request of 20 KB), ten at once. LIST is the
list price; BILLED leaves out what AWS gives to every account each month, as if the account had no other use.
docs/cost.md explains each line.`;

export function addCostCommand(program: Command, { onTerminal }: CommandContext): void {
  listing(program.command('cost'))
    .description('what a month costs on AWS, by line, for a number of calls; asks nobody')
    .option('--calls <n>', 'calls in the month', parseNumber, reference.calls)
    .option(
      '--rate <n>',
      'calls that begin in a second while there is traffic',
      parseNumber,
      reference.callsPerSecond,
    )
    .option('--seconds <n>', 'how long an answer streams', parseNumber, reference.seconds)
    .option(
      '--tokens <n>',
      'tokens of an answer: one chunk each, unless --chunks says otherwise',
      parseNumber,
    )
    .option('--chunks <n>', `events of an answer (default: --tokens, else ${reference.chunks})`, parseNumber)
    .option('--request-kilobytes <n>', 'size of a request', parseNumber, reference.requestBytes / 1000)
    .option(
      '--memory <megabytes>',
      'memory of the functions that answer',
      parseNumber,
      reference.memoryMegabytes,
    )
    .option('--region <name>', regionNames, parseRegion, reference.region)
    .option('--accounts <n>', 'equally busy accounts', parseNumber, reference.accounts)
    .option('--models <n>', 'equally busy models', parseNumber, reference.models)
    .option('--channels <n>', 'channels, each with a secret', parseNumber, reference.channels)
    .option('--failures <percent>', 'calls that fail', parseNumber, reference.failureShare * 100)
    .option('--months-kept <n>', 'months of ledger rows that are stored', parseNumber, reference.monthsKept)
    .option('--alarms <n>', 'metrics that alarms look at', parseNumber, reference.alarms)
    .option('--plan <name>', `how CloudFront is paid: ${edges.join(', ')}`, parseEdge, reference.edge)
    .option('--same-region', 'upstreams are in the same region of AWS, so requests to them cost nothing')
    .option('--web-acl', 'a web ACL with one rule')
    .addHelpText('after', notes)
    .action(
      onTerminal((terminal, options: CostOptions) => printCost(terminal, costReport(workloadOf(options)))),
    );
}

// The options of the command `cost`, and the month that they mean.

interface CostOptions {
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

const regionNames = regions.join(', ');
const edges = ['pay-as-you-go', ...Object.keys(flatRatePlans)] as Workload['edge'][];

const parseRegion = (written: string): Region => oneOf(regions, written);
const parseEdge = (written: string): Workload['edge'] => oneOf(edges, written);

function oneOf<Name extends string>(names: readonly Name[], written: string): Name {
  const name = names.find((each) => each === written);
  if (name === undefined) throw new InvalidArgumentError(`Wanted ${names.join(', ')}.`);
  return name;
}

const workloadOf = (options: CostOptions): Workload => ({
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

// Prints what a month costs.

function printCost(
  { format, print, printJson, printCsv, printTable, remark }: Terminal,
  report: CostReport,
): void {
  report.remarks.forEach(remark);
  if (format === 'json') return printJson(report);
  const { traffic, idle, sums, workload } = report;
  if (format === 'csv')
    return printCsv(csvRows(columns, [...lines('calls', traffic), ...lines('idle', idle)]));
  printTable([
    ['LINE', 'QUANTITY', 'UNIT', 'EACH', 'LIST', 'BILLED'],
    ...traffic.map(rowOf),
    sumRow('calls', sums.traffic),
    ...idle.map(rowOf),
    sumRow('without a call', sums.idle),
    sumRow('month', sums.month),
    sumRow('a million calls', sums.perMillion),
  ]);
  print(`US dollars, list prices in ${workload.region}, without tax and without the upstreams' own bill`);
}

const columns = ['part', 'what', 'quantity', 'unit', 'usd_each', 'list', 'billed'];
const lines = (part: string, all: CostLine[]): object[] =>
  all.map(({ usdEach, ...line }) => ({ part, ...line, usd_each: decimal(usdEach) }));

const rowOf = ({ what, quantity, unit, usdEach, list, billed }: CostLine): string[] => [
  what,
  shownQuantity(quantity),
  unit,
  decimal(usdEach),
  dollars(list),
  dollars(billed),
];

const sumRow = (what: string, { list, billed }: Sum): string[] => [
  `= ${what}`,
  '',
  '',
  '',
  dollars(list),
  dollars(billed),
];

const shownQuantity = (quantity: number): string =>
  quantity >= 100 ? String(Math.round(quantity)) : String(Number(quantity.toPrecision(3)));

/** Without an exponent. */
const decimal = (usd: number): string => usd.toFixed(12).replace(/\.?0+$/, '');

/** Whole cents. */
const dollars = (usd: number): string => usd.toFixed(2);
