/** Grants of a customer: made, listed, and what became of one. */
import { carryOutGrant, planGrantAmount } from '../../../../shared/operate/customers/grants.ts';
import type { CustomerView } from '../../../../shared/operate/customers/customer-view.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { html, type Markup } from '../../markup.ts';
import { grantSaid } from '../../outcomes.ts';
import { writtenTime } from '../layout/figures.ts';
import { typed } from '../layout/form.ts';
import { emptyState } from '../layout/frame.ts';
import { badge, column, head, number, table, wide } from '../layout/table.ts';
import { customerPath, formPage, proposed, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

export const appliedWaitMs = 10_000;

export function grantFormPage(routes: Routes): void {
  routes.form('/customers/:account/grant', { page: grantPage, propose: proposeGrant });
}

const grantPage = formPage(({ ports, nowMs, part, query }, tried) => ({
  title: 'Top up',
  above: [[customerPath(part('account')), part('account')]],
  fields: [
    {
      name: 'amount',
      label: 'Amount, yuan',
      input: 'decimal',
      required: true,
      placeholder: '50',
      value: query('amount'),
      help: 'At most 9 decimals. Below 0 is a correction.',
    },
    {
      name: 'reason',
      label: 'Reason',
      help: 'The customer sees it in their usage.',
      placeholder: 'paid by card',
      value: query('reason'),
    },
    {
      name: 'id',
      label: '',
      kind: 'hidden',
      // Made with the form, or by the page that led here: a form that is sent twice grants once.
      value:
        tried?.fields['id'] ||
        query('id') ||
        `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${ports.random.hex(4)}`,
    },
  ],
  cancel: customerPath(part('account')),
}));

async function proposeGrant({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const input = { account, amount: field('amount'), reason: typed(field('reason')), id: typed(field('id')) };
  const plan = await planGrantAmount(ports, input);
  const path = customerPath(account);
  return proposed(plan, { title: `Top up ${account}`, back: path, verb: 'Grant it' }, async (onProgress) => {
    onProgress('written; the relay applies it');
    const made = await carryOutGrant(ports, plan, appliedWaitMs);
    return { ...grantSaid(plan, made), next: [[path, `To ${account}`]] };
  });
}

export const grantTable = ({ grants, hasAllGrants }: CustomerView, { nowMs }: Visit): Markup =>
  html`${table(grants, {
    caption: 'Grants',
    markOf: ({ problem }) => (problem === undefined ? undefined : 'bad'),
    empty: emptyState('No grant yet', 'A balance begins with a top-up.'),
    columns: [
      head('Grant', ({ grantId }) => html`<code>${grantId}</code>`),
      number('Amount', ({ amount }) => html`${amount}<span class="unit">¥</span>`, {
        sortBy: ({ amount }) => amount,
      }),
      column('Applied', ({ applied, problem }) => {
        if (problem !== undefined) return html`${badge('not used', 'bad')} ${wide(problem)}`;
        return applied === undefined ? badge('waits', 'warning') : writtenTime(applied, nowMs);
      }),
    ],
  })}
  ${!hasAllGrants && html`<p class="soft">The newest ${grants.length}; the statement has all of a month.</p>`}`;
