/** The newest grants of a customer. */
import type { CustomerView } from '../../../../../shared/operate/customers/customer-view.ts';
import { html, nothing, type Markup } from '../../layout/markup.ts';
import { emptyState } from '../../layout/notice.ts';
import { badge, table } from '../../layout/table.ts';
import { writtenTime } from '../../layout/times.ts';
import type { Visit } from '../../visit/visit.ts';

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
