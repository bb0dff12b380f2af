/** Prints payments and links. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { paymentText } from '../../../../shared/billing/payments/payment-amount.ts';
import type { Payment } from '../../../../shared/billing/payments/payment.ts';
import type { PaymentLink } from '../../../../shared/operate/payments/link-payment.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printLink(terminal: Terminal, link: PaymentLink): void {
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

export const printPayments = (terminal: Terminal, payments: Payment[]): void =>
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
