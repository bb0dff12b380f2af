/** The commands of `payment`: references for checkouts, and payments that wait for a decision. */
import { formatYuan } from '../../../../shared/billing/money.ts';
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
import { defineChange, operators, defineView, defineWrite, type CommandGroup } from '../command.ts';
import { parseDecimalText } from '../option-values.ts';
import { formatMoney, formatWrittenMoney } from '../../../../shared/operate/plan.ts';
import type { Column } from '../terminal.ts';

export const paymentCommands: CommandGroup = {
  name: 'payment',
  does: 'online payments: create payment links, handle parked payments',
  notes:
    '\nA parked payment was paid but not credited: `payment list --parked` shows why. For setup, see docs/payments.md.',
  commands: [
    defineView('link', {
      does: 'create a signed reference that credits a Stripe payment to a customer',
      needs: {
        '--amount <number>': ['amount in the currency, such as 10 or 10.50', parseDecimalText],
        '--currency <code>': 'three-letter currency that has a rate in the setting payments',
      },
      takes: { '<account>': 'customer from `customer list`' },
      examples: ['payment link acme --amount 10 --currency usd'],
      policies: operators,
      async run({ ports, terminal }, account: string, options: Omit<LinkInput, 'account'>) {
        const link = await linkPayment(ports, { account, ...options });
        const { reference, granted, live } = link;
        const { print, remark } = terminal;
        if (terminal.format === 'json')
          return terminal.printJson({ ...link, minor: Number(link.minor), granted: formatYuan(granted) });
        const mode = live ? '' : ' in test mode';
        print(
          `Reference for a payment of ${formatPayment(link)}${mode} that credits ${formatMoney(granted)} to ${account}:`,
        );
        print(reference);
        remark(
          'For a Payment Link with exactly this price, append ?client_reference_id=<reference> to its URL.',
        );
        remark('Or create a checkout session; its URL is in the field url of the response:');
        composeCheckout(link).forEach(remark);
      },
    }),
    defineView('list', {
      does: 'list payments, newest first',
      lists: true,
      takes: { '--parked': 'only parked payments' },
      examples: ['payment list --parked'],
      async run({ ports, terminal }, options: { parked?: boolean }) {
        const { found, problems } = await listPayments(ports, options);
        terminal.printList(found, { columns, json: formatPaymentJson, empty: 'No payments.' });
        problems.forEach(terminal.remark);
      },
    }),
    defineChange('assign', {
      does: 'credit a parked payment to a customer, once',
      takes: { '<payment>': 'payment id from `payment list`', '<account>': 'customer from `customer list`' },
      examples: ['payment assign pi_3Qx acme'],
      async plan({ ports }, id: string, account: string) {
        const plan = await planAssignPayment(ports, { id, account });
        return defineWrite({
          plan,
          carryOut: () => carryOutDecision(ports, plan),
          print: ({ print }) => print(`Credited payment ${id} to ${account}.`),
          facts: () => ({ payment: id, account }),
        });
      },
    }),
    defineChange('reject', {
      does: 'reject a parked payment without crediting it',
      takes: { '<payment>': 'payment id from `payment list`' },
      examples: ['payment reject pi_3Qx'],
      async plan({ ports }, id: string) {
        const plan = await planRejectPayment(ports, id);
        return defineWrite({
          plan,
          carryOut: () => carryOutDecision(ports, plan),
          print: ({ print }) => print(`Rejected payment ${id}.`),
          facts: () => ({ payment: id }),
        });
      },
    }),
  ],
};

/** Values hold nothing that a shell would read. */
const composeCheckout = ({ reference, minor, currency, returnUrl }: PaymentLink): string[] =>
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
  [
    'bonus',
    'BONUS',
    ({ bonus }) => bonus,
    ({ bonus }) => (bonus === undefined ? '-' : formatWrittenMoney(bonus)),
  ],
  ['', 'REFUNDED', (payment) => describeReversals(payment)],
  [
    'problem',
    'WHY',
    ({ problem }) => problem,
    ({ state, problem }) => (state === 'parked' ? (problem ?? '') : ''),
  ],
  ['reversals', '', (payment) => formatPaymentJson(payment).reversals],
];

const describeReversals = ({ reversals }: Payment): string =>
  Object.values(reversals)
    .filter(({ state }) => state !== 'void')
    .map((each) => `${each.kind} ${formatPayment(each)}${each.state === 'returned' ? ' returned' : ''}`)
    .join(', ') || '-';

const formatPaymentJson = ({ paid, reversals, ...payment }: Payment) => ({
  ...payment,
  paid: paid ? formatPayment(paid) : null,
  reversals: Object.entries(reversals).map(([id, reversal]) => ({
    id,
    kind: reversal.kind,
    state: reversal.state,
    amount: formatPayment(reversal),
  })),
});
