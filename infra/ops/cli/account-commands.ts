import type { Command } from 'commander';
import { grantAmount } from '../../../shared/operate/accounts/grant-amount.ts';
import { setPlan } from '../../../shared/operate/accounts/set-plan.ts';
import { showAccount } from '../../../shared/operate/accounts/account-view.ts';
import { parseNumber } from './terminal/option-values.ts';
import type { CommandContext } from './command-context.ts';
import { openPrintingSession } from '../session/session.ts';

const examples = `
Amounts are yuan with at most 9 decimals. A negative amount is a correction. The same --id is never applied twice,
so a command with --id may be repeated.

Examples:
  npm run ops -- account show acme
  npm run ops -- account grant acme 100 --reason "invoice 4711" --id invoice-4711
  npm run ops -- account grant acme -2.5 --reason "correction of invoice 4711"
  npm run ops -- account plan acme --level 1 --since 2026-11-01 --until 2027-11-01
  npm run ops -- account plan acme --none`;

export function addAccountCommands(program: Command, _context: CommandContext): void {
  const account = program
    .command('account')
    .description('who pays: balances, top-ups and plans')
    .addHelpText('after', examples);

  account
    .command('show')
    .description('show balance, plan use, calls under way, keys and the last grants')
    .argument('<account>', 'as in the table accounts')
    .option('--json', 'print JSON')
    .action(async (name: string, _options, command: Command) =>
      showAccount(await openPrintingSession(command), name, Date.now()),
    );

  account
    .command('grant')
    .description('add to a balance, exactly once')
    .argument('<account>', 'as in the table accounts')
    .argument('<amount>', 'yuan; below 0 is a correction')
    .option('--reason <text>', 'shown to the customer in their usage')
    .option('--id <id>', 'names the grant: the same id is applied once (default: a new one)')
    .option('--new', 'make the account when there is none')
    .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15)
    .action(async (name: string, amount: string, _options, command: Command) =>
      grantAmount(await openPrintingSession(command), name, amount, command.opts(), Date.now()),
    );

  account
    .command('plan')
    .description('give an account a plan, change it, or end it; live within 30 seconds')
    .argument('<account>', 'as in the table accounts')
    .option('--level <n>', '1, 2 or 3', parseNumber)
    .option('--since <time>', 'months are counted from here (default: as it is, else today)')
    .option('--until <time>', 'covers no call from then on (default: no end)')
    .option('--none', 'take the plan away')
    .option('--new', 'make the account when there is none')
    .action(async (name: string, _options, command: Command) =>
      setPlan(await openPrintingSession(command), name, command.opts(), Date.now()),
    );
}
