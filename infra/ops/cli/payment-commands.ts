/** The commands of `payment`: references for checkouts, and payments that wait for a decision. */
import type { Command } from 'commander';
import {
  carryOutDecision,
  planAssignPayment,
  planRejectPayment,
  type DecisionPlan,
} from '../../../shared/operate/payments/decide-payment.ts';
import { linkPayment, type LinkInput } from '../../../shared/operate/payments/link-payment.ts';
import { listPayments } from '../../../shared/operate/payments/list-payments.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import type { CommandContext } from './command/command-context.ts';
import { printLink, printPayments } from './print/payments.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import { parseDecimalText, type JsonOption } from './terminal/option-values.ts';
import type { Terminal } from './terminal/terminal.ts';

const examples = `
A parked payment was paid but granted to nobody yet: \`payment list --parked\` says why. docs/payments.md shows the set-up.

Examples:
  npm run ops -- payment link acme --amount 10 --currency usd
  npm run ops -- payment list --parked
  npm run ops -- payment assign pi_3Qx acme
  npm run ops -- payment reject pi_3Qx`;

export function addPaymentCommands(program: Command, { terminal, onTables }: CommandContext): void {
  const payment = program
    .command('payment')
    .description('money in by machine: links for customers, parked payments')
    .addHelpText('after', examples);

  payment
    .command('link')
    .description('sign a reference that makes a payment at Stripe a top-up of an account')
    .argument('<account>', 'as in the table accounts')
    .requiredOption('--amount <number>', 'in the currency, such as 10 or 10.50', parseDecimalText)
    .requiredOption('--currency <code>', 'three letters, with a rate in the setting payments')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, account: string, options: Omit<LinkInput, 'account'> & JsonOption) =>
        printLink(terminal, await linkPayment(ports, { account, ...options }), options),
      ),
    );

  payment
    .command('list')
    .description('list payments, the newest first')
    .option('--parked', 'only those that wait for a decision')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, options: JsonOption & { parked?: boolean }) =>
        printPayments(terminal, await listPayments(ports, options), options),
      ),
    );

  payment
    .command('assign')
    .description('grant a parked payment to an account, exactly once')
    .argument('<payment>', 'as in payment list')
    .argument('<account>', 'as in the table accounts')
    .option('--dry-run', 'show what would be granted and write nothing')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, ...[id, account, options]: [string, string, ApproveOptions]) => {
        const plan = await planAssignPayment(ports, { id, account });
        if (await decide({ ports, terminal, plan }, options))
          terminal.print(`payment ${id} is granted to ${account}.`);
      }),
    );

  payment
    .command('reject')
    .description('grant a parked payment to nobody')
    .argument('<payment>', 'as in payment list')
    .option('--dry-run', 'show what would happen and write nothing')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, id: string, options: ApproveOptions) => {
        const plan = await planRejectPayment(ports, id);
        if (await decide({ ports, terminal, plan }, options)) terminal.print(`payment ${id} is rejected.`);
      }),
    );
}

interface Decision {
  ports: OperatorPorts;
  terminal: Terminal;
  plan: DecisionPlan;
}

/** @returns whether it was carried out */
async function decide({ ports, terminal, plan }: Decision, options: ApproveOptions): Promise<boolean> {
  plan.effect.forEach(terminal.remark);
  if (!(await approve(terminal, plan, options))) return false;
  await carryOutDecision(ports, plan);
  return true;
}
