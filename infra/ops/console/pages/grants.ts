/** The top-up of a customer, by the plan of `account grant`. */
import {
  carryOutGrant,
  planGrantAmount,
  type GrantMade,
  type GrantPlan,
} from '../../../../shared/operate/customers/grants.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { type Field, type Tried, typed } from '../layout/form.ts';
import { type Page, emptyState } from '../layout/frame.ts';
import { ofPlan, type Proposal, type Routes, type Visit, customerPath, formPage } from '../visit/visit.ts';
import type { CustomerView } from '../../../../shared/operate/customers/customer-view.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import { badge, table } from '../layout/table.ts';
import { writtenTime } from '../layout/figures.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';

const appliedWaitMs = 10_000;

export function grantFormPage(routes: Routes): void {
  routes.form('/customers/:account/grant', { page: grantPage, propose: proposeGrant });
}

/** The id is made with the form, or by the page that led here: a form that is sent twice grants once. */
const grantFields = ({ ports, nowMs, query }: Visit, tried: Tried | undefined): Field[] => [
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
    value:
      tried?.fields['id'] ||
      query('id') ||
      `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${ports.random.hex(4)}`,
  },
];

const grantPage = async (visit: Visit, tried?: Tried): Promise<Page> =>
  formPage(visit, tried, {
    title: 'Top up',
    account: visit.part('account'),
    fields: grantFields(visit, tried),
    verb: 'Go on',
  });

async function proposeGrant({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const input = { account, amount: field('amount'), reason: typed(field('reason')), id: typed(field('id')) };
  const plan = await planGrantAmount(ports, input);
  const path = customerPath(account);
  return {
    ...ofPlan(plan, { title: `Top up ${account}`, back: path, verb: 'Grant it' }),
    async carryOut(onProgress) {
      onProgress('written; the relay applies it');
      return {
        lines: grantLines(plan, await carryOutGrant(ports, plan, appliedWaitMs)),
        next: [[path, `To ${account}`]],
      };
    },
  };
}

// The newest grants of a customer.

export const grantTable = ({ grants, hasAllGrants }: CustomerView, { nowMs }: Visit): Markup =>
  html`${table({
    caption: 'Grants',
    rows: grants,
    markOf: ({ problem }) => (problem === undefined ? undefined : 'bad'),
    empty: emptyState('No grant yet', 'A balance begins with a top-up.'),
    columns: [
      { title: 'Grant', isHead: true, show: ({ grantId }) => html`<code>${grantId}</code>` },
      {
        title: 'Amount',
        isNumber: true,
        show: ({ amount }) => html`${amount}<span class="unit">¥</span>`,
        sortBy: ({ amount }) => amount,
      },
      {
        title: 'Applied',
        show: ({ applied, problem }) =>
          problem === undefined
            ? applied === undefined
              ? badge('waits', 'warning')
              : writtenTime(applied, nowMs)
            : html`${badge('not used', 'bad')} <span class="wide">${problem}</span>`,
      },
    ],
  })}
  ${hasAllGrants ? nothing : html`<p class="soft">The newest ${grants.length}; the statement has all of a month.</p>`}`;

// What became of a grant or a refund, in sentences.

export function grantLines(
  { grantId, amount }: Pick<GrantPlan, 'grantId' | 'amount'>,
  { made, isApplied, available }: GrantMade,
): string[] {
  const isMade = made.some(({ table }) => table === 'grants');
  const now = available === undefined ? '' : `: ${formatYuan(available)} yuan are available now`;
  return [
    isMade
      ? `Grant ${grantId} of ${formatYuan(amount)} yuan is written.`
      : `Grant ${grantId} was written before; nothing is written again.`,
    isApplied ? `It is applied${now}.` : 'It is not applied yet. It will be within minutes.',
  ];
}
