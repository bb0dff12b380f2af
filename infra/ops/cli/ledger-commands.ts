/** The commands of `ledger`, `request` and `audit`: what was charged, and whether it adds up. */
import { InvalidArgumentError, type Command } from 'commander';
import { auditLedger } from '../../../shared/operate/ledger/audit-ledger.ts';
import { listLedger } from '../../../shared/operate/ledger/list-ledger.ts';
import { carryOutRepairLosses, planRepairLosses } from '../../../shared/operate/ledger/repair-losses.ts';
import { selectRows, type LedgerFilter } from '../../../shared/operate/ledger/select-rows.ts';
import { groupings, totalLedger, type Grouping } from '../../../shared/operate/ledger/total-ledger.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { findRequest } from '../../../shared/operate/requests/find-request.ts';
import type { CommandContext } from './command/command-context.ts';
import {
  printAudit,
  printLedger,
  printLedgerCsv,
  printRepaired,
  printTotals,
  type LedgerFormat,
} from './print/ledger.ts';
import { printRequest } from './print/requests.ts';
import { parseList, parseNumber, parseTime, type JsonOption } from './terminal/option-values.ts';
import { countProgress, nameProgress } from './terminal/progress.ts';
import type { Terminal } from './terminal/terminal.ts';
import { readTextFile } from './terminal/text-files.ts';

const examples = `
Times are ISO 8601; a date means its first moment, UTC. --from is included, --to is not. A row's time is the
moment at which its call began; a grant's, at which it was booked.

Examples:
  npm run ops -- ledger list --account acme --limit 20
  npm run ops -- ledger list --account acme --from 2026-11-01 --to 2026-12-01 --csv > november.csv
  npm run ops -- ledger total --by account --from 2026-11-01 --to 2026-12-01
  npm run ops -- ledger total --account acme --by model,day`;

interface SelectOptions extends LedgerFormat {
  account?: string;
  /** Epoch milliseconds. */
  from?: number;
  to?: number;
  model?: string;
}

interface AuditOptions extends JsonOption {
  account?: string;
  repair?: string;
  from?: string;
  rebuildDaily?: boolean;
  /** Seconds. */
  wait: number;
}

export function addLedgerCommands(program: Command, { terminal, onTables }: CommandContext): void {
  const ledger = program
    .command('ledger')
    .description('what was charged, call by call')
    .addHelpText('after', examples);

  selecting(
    ledger.command('list').description('list the newest rows; with --csv all of them, as they are read'),
  )
    .option('--limit <n>', 'rows at most', parseNumber, 50)
    .action(
      onTables(async (ports, { limit, ...options }: SelectOptions & { limit: number }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        if (options.csv) return printLedgerCsv(terminal, selectRows(ports, filterOf(options), onProgress));
        const list = await listLedger(ports, { ...filterOf(options), limit }, onProgress);
        return printLedger(terminal, list, options);
      }),
    );

  selecting(ledger.command('total').description('add rows up'))
    .option('--by <a,b>', 'account, model, day, or several of them', parseGroupings, ['account'])
    .action(
      onTables(async (ports, { by, ...options }: SelectOptions & { by: Grouping[] }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        printTotals(terminal, await totalLedger(ports, { ...filterOf(options), by }, onProgress), options);
      }),
    );

  program
    .command('request')
    .description('show the ledger row of a request, and step by step how its price came about')
    .argument('<id>', 'the header x-request-id, or the id of an answer (chatcmpl-...)')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, id: string, options: JsonOption) =>
        printRequest(terminal, await findRequest(ports, id), options),
      ),
    );

  program
    .command('audit')
    .description('add all accounts up again; exit code 1 when something does not fit')
    .option('--account <name>', 'only this account')
    .option('--from <name>', 'only this account and those that sort after it, to go on where an audit ended')
    .option('--rebuild-daily', 'correct daily sums of past days that are not those of the ledger rows')
    .option(
      '--repair <file>',
      'first write the closes of settle_lost and settle_late log lines; - reads standard input',
    )
    .option('--wait <seconds>', 'how long to wait for ledger rows that are on their way', parseNumber, 15)
    .option('--json', 'print JSON')
    .action(onTables((ports, options: AuditOptions) => auditAndPrint(ports, terminal, options)));
}

async function auditAndPrint(ports: OperatorPorts, terminal: Terminal, options: AuditOptions): Promise<void> {
  const { account, from, rebuildDaily, repair, wait } = options;
  const unrepaired = repair === undefined ? [] : await repairAndPrint(ports, terminal, repair);
  const audit = await auditLedger(
    ports,
    { account, from, rebuildDaily, waitMs: wait * 1000 },
    {
      rowsRead: countProgress(terminal, 'ledger rows read'),
      auditing: nameProgress(terminal, 'auditing', 'to go on later: --from'),
      waitingFor: (each) => terminal.remark(`${each}: waiting for ledger rows that may be on their way`),
    },
  );
  printAudit(terminal, { ...audit, findings: [...unrepaired, ...audit.findings] }, options);
}

/** @returns one sentence for each close that could not be written */
async function repairAndPrint(ports: OperatorPorts, terminal: Terminal, source: string): Promise<string[]> {
  const lines = source === '-' ? await terminal.readInput('Paste the log lines') : await readTextFile(source);
  const outcomes = await carryOutRepairLosses(ports, await planRepairLosses(ports, lines));
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
  command
    .option('--account <name>', 'only this account')
    .option('--from <time>', 'from then on', parseTime)
    .option('--to <time>', 'until then', parseTime)
    .option('--model <name>', 'only this model')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON');

const filterOf = ({ account, from, to, model }: SelectOptions): LedgerFilter => ({
  account,
  fromMs: from,
  toMs: to,
  model,
});
