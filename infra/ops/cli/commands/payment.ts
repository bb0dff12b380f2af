/** The commands of `payment`: references for checkouts, and payments that wait for a decision. */
import { formatYuan } from '../../../../shared/billing/price.ts';
import { formatPayment, type Payment } from '../../../../shared/billing/payments.ts';
import {
  carryOutDecision,
  planAssignPayment,
  planRejectPayment,
  linkPayment,
  listPayments,
  type LinkInput,
  type PaymentLink,
} from '../../../../shared/operate/payments.ts';
import { changes, operating, shows, writes, type CommandGroup } from '../command.ts';
import { parseDecimalText } from '../option-values.ts';
import type { Column } from '../terminal.ts';

export const paymentCommands: CommandGroup = {
  name: 'payment',
  does: 'money in by machine: links for customers, parked payments',
  notes:
    '\nA parked payment was paid but granted to nobody yet: `payment list --parked` says why. docs/payments.md shows the set-up.',
  commands: [
    shows('link', {
      does: 'sign a reference that makes a payment at Stripe a top-up of an account',
      needs: {
        '--amount <number>': ['in the currency, such as 10 or 10.50', parseDecimalText],
        '--currency <code>': 'three letters, with a rate in the setting payments',
      },
      takes: { '<account>': 'as in the table accounts' },
      examples: ['payment link acme --amount 10 --currency usd'],
      policies: operating,
      async run({ ports, terminal }, account: string, options: Omit<LinkInput, 'account'>) {
        const link = await linkPayment(ports, { account, ...options });
        const { reference, granted, live } = link;
        const { print, remark } = terminal;
        if (terminal.format === 'json')
          return terminal.printJson({ ...link, minor: Number(link.minor), granted: formatYuan(granted) });
        const mode = live ? '' : ' in test mode';
        print(
          `reference for a payment of ${formatPayment(link)}${mode}, for which account ${account} is granted ${formatYuan(granted)} yuan:`,
        );
        print(reference);
        remark(
          'For a Payment Link with exactly this price, append ?client_reference_id=<reference> to its address.',
        );
        remark('Or make a checkout, whose address is in the field url of the answer:');
        checkoutCommand(link).forEach(remark);
      },
    }),
    shows('list', {
      does: 'list payments, the newest first',
      lists: true,
      takes: { '--parked': 'only those that wait for a decision' },
      examples: ['payment list --parked'],
      run: async ({ ports, terminal }, options: { parked?: boolean }) =>
        terminal.printList(await listPayments(ports, options), {
          columns,
          json: paymentJson,
          empty: 'no payments',
        }),
    }),
    changes('assign', {
      does: 'grant a parked payment to an account, exactly once',
      takes: { '<payment>': 'as in payment list', '<account>': 'as in the table accounts' },
      examples: ['payment assign pi_3Qx acme'],
      async plan({ ports }, id: string, account: string) {
        const plan = await planAssignPayment(ports, { id, account });
        return writes({
          plan,
          carryOut: () => carryOutDecision(ports, plan),
          print: ({ print }) => print(`payment ${id} is granted to ${account}.`),
          facts: () => ({ payment: id, account }),
        });
      },
    }),
    changes('reject', {
      does: 'grant a parked payment to nobody',
      takes: { '<payment>': 'as in payment list' },
      examples: ['payment reject pi_3Qx'],
      async plan({ ports }, id: string) {
        const plan = await planRejectPayment(ports, id);
        return writes({
          plan,
          carryOut: () => carryOutDecision(ports, plan),
          print: ({ print }) => print(`payment ${id} is rejected.`),
          facts: () => ({ payment: id }),
        });
      },
    }),
  ],
};

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

const columns: Column<Payment>[] = [
  ['id', 'PAYMENT', ({ id }) => id],
  ['at', 'AT', ({ at }) => at],
  ['paid', 'PAID', ({ paid }) => (paid ? formatPayment(paid) : null)],
  [
    'state',
    'STATE',
    ({ state }) => state,
    ({ live, state }) => (live === false ? `${state}, test mode` : state),
  ],
  ['account', 'ACCOUNT', ({ account }) => account],
  ['live', '', ({ live }) => live],
  ['rate', '', ({ rate }) => rate],
  ['', 'REFUNDED', (payment) => reversalsText(payment)],
  [
    'problem',
    'WHY',
    ({ problem }) => problem,
    ({ state, problem }) => (state === 'parked' ? (problem ?? '') : ''),
  ],
  ['reversals', '', (payment) => paymentJson(payment).reversals],
];

const reversalsText = ({ reversals }: Payment): string =>
  Object.values(reversals)
    .filter(({ state }) => state !== 'void')
    .map((each) => `${each.kind} ${formatPayment(each)}${each.state === 'returned' ? ' returned' : ''}`)
    .join(', ') || '-';

const paymentJson = ({ paid, reversals, ...payment }: Payment) => ({
  ...payment,
  paid: paid ? formatPayment(paid) : null,
  reversals: Object.entries(reversals).map(([id, reversal]) => ({
    id,
    kind: reversal.kind,
    state: reversal.state,
    amount: formatPayment(reversal),
  })),
});
