/** The command `cost`. Needs no tables and no AWS account: it reckons from list prices. */
import type { Command } from 'commander';
import { costReport } from '../../../../shared/operate/cost/cost-report.ts';
import { reference } from '../../../../shared/operate/cost/workload.ts';
import { parseNumber } from '../terminal/option-values.ts';
import type { CommandContext } from '../command/command-context.ts';
import { listing } from '../command/common-options.ts';
import { edges, parseEdge, parseRegion, regionNames, workloadOf, type CostOptions } from './cost-options.ts';
import { printCost } from './print-cost.ts';

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
