/** The commands of `payment`: references for checkouts, and payments that wait for a decision. */
import type { Command } from 'commander';
import {
  carryOutDecision,
  planAssignPayment,
  planRejectPayment,
} from '../../../shared/operate/payments/decide-payment.ts';
import { linkPayment, type LinkInput } from '../../../shared/operate/payments/link-payment.ts';
import { listPayments } from '../../../shared/operate/payments/list-payments.ts';
import type { CommandContext } from './command/command-context.ts';
import { writes } from './command/writing.ts';
import { listing } from './command/common-options.ts';
import { printLink, printPayments } from './print/payments.ts';
import { parseDecimalText } from './terminal/option-values.ts';

export function addPaymentCommands(program: Command, { onTables, writing }: CommandContext): void {
  const payment = program
    .command('payment')
    .description('money in by machine: links for customers, parked payments')
    .addHelpText(
      'after',
      '\nA parked payment was paid but granted to nobody yet: `payment list --parked` says why. docs/payments.md shows the set-up.',
    );

  payment
    .command('link')
    .description('sign a reference that makes a payment at Stripe a top-up of an account')
    .argument('<account>', 'as in the table accounts')
    .requiredOption('--amount <number>', 'in the currency, such as 10 or 10.50', parseDecimalText)
    .requiredOption('--currency <code>', 'three letters, with a rate in the setting payments')
    .action(
      onTables(async ({ ports, terminal }, account: string, options: Omit<LinkInput, 'account'>) =>
        printLink(terminal, await linkPayment(ports, { account, ...options })),
      ),
    );

  listing(payment.command('list').description('list payments, the newest first'))
    .option('--parked', 'only those that wait for a decision')
    .action(
      onTables(async ({ ports, terminal }, options: { parked?: boolean }) =>
        printPayments(terminal, await listPayments(ports, options)),
      ),
    );

  writing(
    payment
      .command('assign')
      .description('grant a parked payment to an account, exactly once')
      .argument('<payment>', 'as in payment list')
      .argument('<account>', 'as in the table accounts'),
    async ({ ports }, id: string, account: string) => {
      const plan = await planAssignPayment(ports, { id, account });
      return writes({
        plan,
        carryOut: () => carryOutDecision(ports, plan),
        print: ({ print }) => print(`payment ${id} is granted to ${account}.`),
        facts: () => ({ payment: id, account }),
      });
    },
  );

  writing(
    payment
      .command('reject')
      .description('grant a parked payment to nobody')
      .argument('<payment>', 'as in payment list'),
    async ({ ports }, id: string) => {
      const plan = await planRejectPayment(ports, id);
      return writes({
        plan,
        carryOut: () => carryOutDecision(ports, plan),
        print: ({ print }) => print(`payment ${id} is rejected.`),
        facts: () => ({ payment: id }),
      });
    },
  );
}
