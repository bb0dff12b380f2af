/** The commands of `account`: balances, top-ups, refunds and plans. */
import type { Command } from 'commander';
import { viewAccount } from '../../../shared/operate/accounts/account-view.ts';
import {
  awaitApplied,
  carryOutGrantAmount,
  planGrantAmount,
  type GrantInput,
} from '../../../shared/operate/accounts/grant-amount.ts';
import { planRefundCharge, type RefundInput } from '../../../shared/operate/accounts/refund-charge.ts';
import { planSetPlan, type SetPlanInput } from '../../../shared/operate/accounts/set-plan.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import type { CommandContext } from './command/command-context.ts';
import { addAccountResponses } from './response-commands.ts';
import { printAccount, printApplied, printGrant, printNewAccount, printPlanSet } from './print/accounts.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import { parseNumber, type JsonOption } from './terminal/option-values.ts';

const examples = `
Amounts are yuan with at most 9 decimals. A negative amount is a correction. The same --id is never applied twice,
so a command with --id may be repeated.

Examples:
  npm run ops -- account show acme
  npm run ops -- account grant acme 100 --reason "invoice 4711" --id invoice-4711
  npm run ops -- account grant acme -2.5 --reason "correction of invoice 4711"
  npm run ops -- account refund 01jd3k5m7n9p1r3t5v7x9z1b3d --amount 0.5 --reason "answer was cut"
  npm run ops -- account plan acme --level 1 --since 2026-11-01 --until 2027-11-01
  npm run ops -- account plan acme --none`;

export function addAccountCommands(program: Command, context: CommandContext): void {
  const { terminal, onTables } = context;
  const account = program
    .command('account')
    .description('who pays: balances, top-ups, refunds and plans')
    .addHelpText('after', examples);

  account
    .command('show')
    .description('show balance, plan use, calls under way, keys and the last grants')
    .argument('<account>', 'as in the table accounts')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, name: string, options: JsonOption) =>
        printAccount(terminal, await viewAccount(ports, name), options),
      ),
    );

  addAccountResponses(account, context);

  account
    .command('grant')
    .description('add to a balance, exactly once')
    .argument('<account>', 'as in the table accounts')
    .argument('<amount>', 'yuan; below 0 is a correction')
    .option('--reason <text>', 'shown to the customer in their usage')
    .option('--id <id>', 'names the grant: the same id is applied once (default: a new one)')
    .option('--new', 'make the account when there is none')
    .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15)
    .action(
      onTables(async (ports, ...[account, amount, options]: [string, string, GrantOptions]) => {
        const plan = await planGrantAmount(ports, { account, amount, ...options });
        printGrant(terminal, plan, await carryOutGrantAmount(ports, plan));
        printApplied(terminal, plan, await awaitApplied(ports, plan, options.wait * 1000));
      }),
    );

  account
    .command('refund')
    .description('refund the charge of a call, whole or in part; never more than was charged')
    .argument('<id>', 'of the ledger row: the header x-request-id, or the id of an answer')
    .option('--amount <yuan>', 'only this much (default: all that was not refunded yet)')
    .option('--reason <text>', 'shown to the customer in their usage')
    .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15)
    .option('--dry-run', 'show what would be refunded and write nothing')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, id: string, options: RefundOptions) => {
        const plan = await planRefundCharge(ports, { id, ...options });
        plan.effect.forEach(terminal.remark);
        if (!(await approve(terminal, plan, options))) return;
        printGrant(terminal, plan, await carryOutWrites(ports, plan));
        printApplied(terminal, plan, await awaitApplied(ports, plan, options.wait * 1000));
      }),
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
    .action(
      onTables(async (ports, account: string, options: Omit<SetPlanInput, 'account'>) => {
        const plan = await planSetPlan(ports, { account, ...options });
        printNewAccount(terminal, await carryOutWrites(ports, plan));
        printPlanSet(terminal, plan);
        terminal.warn(plan.warnings);
      }),
    );
}

/** `wait`: seconds. */
type GrantOptions = Omit<GrantInput, 'account' | 'amount'> & { wait: number };

/** `wait`: seconds. */
type RefundOptions = Omit<RefundInput, 'id'> & ApproveOptions & { wait: number };
