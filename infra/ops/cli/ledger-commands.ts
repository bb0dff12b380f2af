/** The commands of `ledger`, and `audit`: what was charged, and whether it adds up. */
import { InvalidArgumentError, type Command } from 'commander';
import { auditLedger } from '../../../shared/operate/ledger/audit-ledger.ts';
import { listLedger } from '../../../shared/operate/ledger/list-ledger.ts';
import { carryOutRepairLosses, planRepairLosses } from '../../../shared/operate/ledger/repair-losses.ts';
import { selectRows, type LedgerFilter } from '../../../shared/operate/ledger/select-rows.ts';
import { groupings, totalLedger, type Grouping } from '../../../shared/operate/ledger/total-ledger.ts';
import type { CommandContext, Run } from './command/command-context.ts';
import { listing } from './command/common-options.ts';
import { printAudit, printLedger, printLedgerCsv, printRepaired, printTotals } from './print/ledger.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import { parseList, parseCount, parseNumber, parseTime } from './terminal/option-values.ts';
import { countProgress, nameProgress } from './terminal/progress.ts';
import { readTextFile } from './terminal/text-files.ts';

const notes = `
Times are ISO 8601; a date means its first moment, UTC. --from is included, --to is not. A row's time is the
moment at which its call began; a grant's, at which it was booked.`;

interface SelectOptions {
  account?: string;
  /** Epoch milliseconds. */
  from?: number;
  to?: number;
  model?: string;
}

interface AuditOptions extends ApproveOptions {
  account?: string;
  repair?: string;
  from?: string;
  rebuildDaily?: boolean;
  /** Seconds. */
  wait: number;
}

export function addLedgerCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const ledger = program
    .command('ledger')
    .description('what was charged, call by call')
    .addHelpText('after', notes);

  selecting(
    ledger.command('list').description('list the newest rows; with --csv all of them, as they are read'),
  )
    .option('--limit <n>', 'rows at most', parseCount, 50)
    .action(
      onTables(async ({ ports, terminal }, { limit, ...options }: SelectOptions & { limit: number }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        if (terminal.format === 'csv')
          return printLedgerCsv(terminal, selectRows(ports, filterOf(options), onProgress));
        return printLedger(terminal, await listLedger(ports, { ...filterOf(options), limit }, onProgress));
      }),
    );

  selecting(ledger.command('total').description('add rows up'))
    .option('--by <a,b>', 'account, model, day, or several of them', parseGroupings, ['account'])
    .action(
      onTables(async ({ ports, terminal }, { by, ...options }: SelectOptions & { by: Grouping[] }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        printTotals(terminal, await totalLedger(ports, { ...filterOf(options), by }, onProgress));
      }),
    );

  addAudit(program, context);
}

function addAudit(program: Command, { onTables }: CommandContext): void {
  listing(program.command('audit'))
    .description('add all accounts up again; exit code 1 when something does not fit')
    .option('--account <name>', 'only this account')
    .option('--from <name>', 'only this account and those that sort after it, to go on where an audit ended')
    .option('--rebuild-daily', 'correct daily sums of past days that are not those of the ledger rows')
    .option(
      '--repair <file>',
      'first write the closes of settle_lost and settle_late log lines; - reads standard input',
    )
    .option('--wait <seconds>', 'how long to wait for ledger rows that are on their way', parseNumber, 15)
    .option('--dry-run', 'show what --repair and --rebuild-daily would do and write nothing')
    .option('--yes', 'do not ask before --repair writes')
    .action(onTables(auditAndPrint));
}

async function auditAndPrint({ ports, terminal }: Run, options: AuditOptions): Promise<void> {
  const { account, from, rebuildDaily = false, repair, wait, dryRun = false } = options;
  const unrepaired = repair === undefined ? [] : await repairAndPrint({ ports, terminal }, repair, options);
  const audit = await auditLedger(
    ports,
    { account, from, rebuildDaily: rebuildDaily && !dryRun, waitMs: wait * 1000 },
    {
      rowsRead: countProgress(terminal, 'ledger rows read'),
      auditing: nameProgress(terminal, 'auditing', 'to go on later: --from'),
      waitingFor: (each) => terminal.remark(`${each}: waiting for ledger rows that may be on their way`),
    },
  );
  printAudit(terminal, { ...audit, findings: [...unrepaired, ...audit.findings] });
}

/** @returns one sentence for each close that could not be written */
async function repairAndPrint(
  { ports, terminal }: Run,
  source: string,
  options: ApproveOptions,
): Promise<string[]> {
  const lines = source === '-' ? await terminal.readInput('Paste the log lines') : await readTextFile(source);
  const plan = await planRepairLosses(ports, lines);
  plan.effect.forEach(terminal.remark);
  if (!(await approve(terminal, plan, options))) return [];
  const outcomes = await carryOutRepairLosses(ports, plan);
  printRepaired(terminal, outcomes);
  return outcomes.flatMap((each) => (each.outcome === 'not closed' ? [each.finding] : []));
}

function parseGroupings(written: string): Grouping[] {
  return parseList(written).map((name) => {
    const grouping = groupings.find((each) => each === name);
    if (grouping === undefined) throw new InvalidArgumentError(`Wanted ${groupings.join(', ')}.`);
    return grouping;
  });
}

const selecting = (command: Command): Command =>
  listing(command)
    .option('--account <name>', 'only this account')
    .option('--from <time>', 'from then on', parseTime)
    .option('--to <time>', 'until then', parseTime)
    .option('--model <name>', 'only this model');

const filterOf = ({ account, from, to, model }: SelectOptions): LedgerFilter => ({
  account,
  fromMs: from,
  toMs: to,
  model,
});
