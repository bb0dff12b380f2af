/** The commands of `account`: balances, top-ups, refunds and plans. */
import type { Command } from 'commander';
import {
  carryOutGrant,
  planGrantAmount,
  type GrantInput,
} from '../../../shared/operate/accounts/grant-amount.ts';
import { planRefundCharge, type RefundInput } from '../../../shared/operate/accounts/refund-charge.ts';
import { planSetPlan, type SetPlanInput } from '../../../shared/operate/accounts/set-plan.ts';
import { viewCustomer } from '../../../shared/operate/customers/customer-view.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import type { CommandContext } from './command/command-context.ts';
import { writes } from './command/writing.ts';
import { addAccountResponses } from './response-commands.ts';
import { printCustomer } from './customers/print-customer.ts';
import { grantFacts, planFacts, printGrant, printPlanSet } from './print/accounts.ts';
import { parseNumber } from './terminal/option-values.ts';

export function addAccountCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const account = program
    .command('account')
    .description('who pays: balances, top-ups, refunds and plans')
    .addHelpText(
      'after',
      '\nAmounts are yuan with at most 9 decimals. A negative amount is a correction. The same --id is never applied twice,\nso a command with --id may be repeated.',
    );

  account
    .command('show')
    .description('show balance, plan use, calls under way, keys, the last grants and 30 days of use')
    .argument('<account>', 'as in the table accounts')
    .action(
      onTables(async ({ ports, terminal }, name: string) =>
        printCustomer(terminal, await viewCustomer(ports, name)),
      ),
    );

  addAccountResponses(account, context);
  addGrants(account, context);

  context.writing(
    account
      .command('plan')
      .description('give an account a plan, change it, or end it; live within 30 seconds')
      .argument('<account>', 'as in the table accounts')
      .option('--level <n>', '1, 2 or 3', parseNumber)
      .option('--since <time>', 'months are counted from here (default: as it is, else today)')
      .option('--until <time>', 'covers no call from then on (default: no end)')
      .option('--none', 'take the plan away')
      .option('--new', 'make the account when there is none'),
    async ({ ports }, account: string, options: Omit<SetPlanInput, 'account'>) => {
      const plan = await planSetPlan(ports, { account, ...options });
      return writes({
        plan,
        carryOut: () => carryOutWrites(ports, plan),
        print: (terminal) => printPlanSet(terminal, plan),
        facts: () => planFacts(plan),
      });
    },
  );
}

/** `wait`: seconds. */
type GrantOptions = Omit<GrantInput, 'account' | 'amount'> & { wait: number };

/** `wait`: seconds. */
type RefundOptions = Omit<RefundInput, 'id'> & { wait: number };

function addGrants(account: Command, { writing }: CommandContext): void {
  writing(
    account
      .command('grant')
      .description('add to a balance, exactly once')
      .argument('<account>', 'as in the table accounts')
      .argument('<amount>', 'yuan; below 0 is a correction')
      .option('--reason <text>', 'shown to the customer in their usage')
      .option('--id <id>', 'names the grant: the same id is applied once (default: a new one)')
      .option('--new', 'make the account when there is none')
      .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15),
    async ({ ports }, ...[account, amount, { wait, ...options }]: [string, string, GrantOptions]) => {
      const plan = await planGrantAmount(ports, { account, amount, ...options });
      return writes({
        plan,
        carryOut: () => carryOutGrant(ports, plan, wait * 1000),
        print: (terminal, made) => printGrant(terminal, plan, made),
        facts: (made) => grantFacts(plan, made),
      });
    },
  );

  writing(
    account
      .command('refund')
      .description('refund the charge of a call, whole or in part; never more than was charged')
      .argument('<id>', 'of the ledger row: the header x-request-id, or the id of an answer')
      .option('--amount <yuan>', 'only this much (default: all that was not refunded yet)')
      .option('--reason <text>', 'shown to the customer in their usage')
      .option('--part <number>', 'which part of the refund this is: safe to repeat', parseNumber)
      .option('--wait <seconds>', 'how long to wait until it is applied', parseNumber, 15),
    async ({ ports }, id: string, { wait, ...options }: RefundOptions) => {
      const plan = await planRefundCharge(ports, { id, ...options });
      return writes({
        plan,
        carryOut: () => carryOutGrant(ports, plan, wait * 1000),
        print: (terminal, made) => printGrant(terminal, plan, made),
        facts: (made) => grantFacts(plan, made),
      });
    },
  );
}
