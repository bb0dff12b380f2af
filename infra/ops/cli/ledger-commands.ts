import type { Command } from 'commander';
import { auditBooks } from '../../../shared/operate/ledger/audit-ledger.ts';
import { listLedger } from '../../../shared/operate/ledger/list-ledger.ts';
import { totalLedger } from '../../../shared/operate/ledger/total-ledger.ts';
import { parseGroupings, parseNumber, parseTime } from './terminal/option-values.ts';
import { showRequest } from '../../../shared/operate/requests/request-view.ts';
import type { CommandContext } from './command-context.ts';
import { openPrintingSession } from '../session/session.ts';

const examples = `
Times are ISO 8601; a date means its first moment, UTC. --from is included, --to is not. A row's time is the
moment at which its call began; a grant's, at which it was booked.

Examples:
  npm run ops -- ledger list --account acme --limit 20
  npm run ops -- ledger list --account acme --from 2026-11-01 --to 2026-12-01 --csv > november.csv
  npm run ops -- ledger total --by account --from 2026-11-01 --to 2026-12-01
  npm run ops -- ledger total --account acme --by model,day`;

export function addLedgerCommands(program: Command, _context: CommandContext): void {
  const ledger = program
    .command('ledger')
    .description('what was charged, call by call')
    .addHelpText('after', examples);

  selecting(
    ledger.command('list').description('list the newest rows; with --csv all of them, as they are read'),
  )
    .option('--limit <n>', 'rows at most', parseNumber, 50)
    .action(async (_options, command: Command) =>
      listLedger(await openPrintingSession(command), command.opts()),
    );

  selecting(ledger.command('total').description('add rows up'))
    .option('--by <a,b>', 'account, model, day, or several of them', parseGroupings, ['account'])
    .action(async (_options, command: Command) =>
      totalLedger(await openPrintingSession(command), command.opts()),
    );

  program
    .command('request')
    .description('show the ledger row of a request, and step by step how its price came about')
    .argument('<id>', 'the header x-request-id, or the id of an answer (chatcmpl-...)')
    .option('--json', 'print JSON')
    .action(async (id: string, _options, command: Command) =>
      showRequest(await openPrintingSession(command), id),
    );

  program
    .command('audit')
    .description('add all accounts up again; exit code 1 when something does not fit')
    .option('--account <name>', 'only this account')
    .option('--repair <file>', 'first write the closes of settle_lost log lines; - reads standard input')
    .option('--wait <seconds>', 'how long to wait for ledger rows that are on their way', parseNumber, 15)
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) =>
      auditBooks(await openPrintingSession(command), command.opts(), Date.now()),
    );
}

const selecting = (command: Command): Command =>
  command
    .option('--account <name>', 'only this account')
    .option('--from <time>', 'from then on', parseTime)
    .option('--to <time>', 'until then', parseTime)
    .option('--model <name>', 'only this model')
    .option('--csv', 'print CSV')
    .option('--json', 'print JSON');
