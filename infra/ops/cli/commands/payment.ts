/** The commands of `payment`: references for checkouts, and payments that wait for a decision. */
import type { Command } from 'commander';
import {
  carryOutDecision,
  planAssignPayment,
  planRejectPayment,
  linkPayment,
  type LinkInput,
  listPayments,
  type PaymentLink,
} from '../../../../shared/operate/payments.ts';
import { type CommandContext, writes, listing } from '../command.ts';
import { parseDecimalText } from '../option-values.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { paymentText, type Payment } from '../../../../shared/billing/payments.ts';
import type { Terminal } from '../terminal.ts';

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

// Prints payments and links.

function printLink(terminal: Terminal, link: PaymentLink): void {
  const { account, reference, granted, live } = link;
  if (terminal.format === 'json')
    return terminal.printJson({ ...link, minor: Number(link.minor), granted: formatYuan(granted) });
  const mode = live ? '' : ' in test mode';
  terminal.print(
    `reference for a payment of ${paymentText(link)}${mode}, for which account ${account} is granted ${formatYuan(granted)} yuan:`,
  );
  terminal.print(reference);
  terminal.remark(
    'For a Payment Link with exactly this price, append ?client_reference_id=<reference> to its address.',
  );
  terminal.remark('Or make a checkout, whose address is in the field url of the answer:');
  checkoutCommand(link).forEach(terminal.remark);
}

/** Values hold nothing that a shell would read. */
const checkoutCommand = ({ reference, minor, currency, returnUrl }: PaymentLink): string[] =>
  [
    'curl https://api.stripe.com/v1/checkout/sessions -u "$STRIPE_SECRET_KEY:"',
    `-d mode=payment -d success_url=${returnUrl}`,
    `-d client_reference_id=${reference}`,
    `-d "line_items[0][quantity]=1" -d "line_items[0][price_data][currency]=${currency}"`,
    `-d "line_items[0][price_data][unit_amount]=${minor}"`,
    '-d "line_items[0][price_data][product_data][name]=Balance"',
  ].map((line, at, lines) => `  ${line}${at < lines.length - 1 ? ' \\' : ''}`);

const printPayments = (terminal: Terminal, payments: Payment[]): void =>
  terminal.printList({
    columns: ['id', 'at', 'paid', 'state', 'account', 'live', 'rate', 'problem', 'reversals'],
    rows: payments.map(paymentJson),
    table: () => [
      ['PAYMENT', 'AT', 'PAID', 'STATE', 'ACCOUNT', 'REFUNDED', 'WHY'],
      ...payments.map((payment) => [
        payment.id,
        payment.at,
        payment.paid ? paymentText(payment.paid) : '-',
        payment.live === false ? `${payment.state}, test mode` : payment.state,
        payment.account ?? '-',
        reversalsText(payment),
        payment.state === 'parked' ? (payment.problem ?? '') : '',
      ]),
    ],
    empty: 'no payments',
  });

const reversalsText = ({ reversals }: Payment): string =>
  Object.values(reversals)
    .filter(({ state }) => state !== 'void')
    .map((each) => `${each.kind} ${paymentText(each)}${each.state === 'returned' ? ' returned' : ''}`)
    .join(', ') || '-';

const paymentJson = ({ paid, reversals, ...payment }: Payment) => ({
  ...payment,
  paid: paid ? paymentText(paid) : null,
  reversals: Object.entries(reversals).map(([id, reversal]) => ({
    id,
    kind: reversal.kind,
    state: reversal.state,
    amount: paymentText(reversal),
  })),
});
