/** Requests of a customer as a table. */
import type { CloseRow, LedgerRow } from '../../../../../shared/billing/ledger-row.ts';
import { ledgerTimeMs } from '../../../../../shared/billing/ledger-row.ts';
import { grouped, milliseconds, yuan } from '../../layout/figures.ts';
import { when } from '../../layout/times.ts';
import { html, type Markup } from '../../layout/markup.ts';
import { emptyState } from '../../layout/notice.ts';
import { badge, table } from '../../layout/table.ts';
import type { Visit } from '../../visit/visit.ts';

export const requestTable = (rows: readonly LedgerRow[], { nowMs }: Visit): Markup =>
  table({
    caption: 'Requests',
    rows: rows.filter((row): row is CloseRow => row.kind !== 'grant'),
    markOf: ({ kind, end }) => (kind !== 'settled' || end === 'failed' ? 'warning' : undefined),
    empty: emptyState('No request', 'This customer has no request in the ledger: is the name right?'),
    columns: [
      {
        title: 'Request',
        isHead: true,
        show: ({ id }) => html`<a href="requests/${encodeURIComponent(id)}"><code>${id}</code></a>`,
      },
      { title: 'Began', show: (row) => when(ledgerTimeMs(row), nowMs), sortBy: (row) => ledgerTimeMs(row) },
      {
        title: 'Model',
        show: ({ model, alias }) =>
          alias === undefined ? model : html`${model} <span class="soft">by ${alias}</span>`,
      },
      { title: 'Channel', show: ({ channel }) => channel ?? '–' },
      { title: 'End', show: (row) => endBadge(row) },
      {
        title: 'Input',
        isNumber: true,
        show: ({ prompt_tokens }) => grouped(prompt_tokens ?? 0),
        sortBy: ({ prompt_tokens }) => prompt_tokens ?? 0,
      },
      {
        title: 'Output',
        isNumber: true,
        show: ({ completion_tokens }) => grouped(completion_tokens ?? 0),
        sortBy: ({ completion_tokens }) => completion_tokens ?? 0,
      },
      {
        title: 'First content',
        isNumber: true,
        show: ({ first_content_ms: first }) => (first === undefined ? '–' : milliseconds(first)),
        sortBy: ({ first_content_ms }) => first_content_ms ?? 0,
      },
      { title: 'Charged', isNumber: true, show: ({ charge }) => yuan(charge) },
    ],
  });

export function endBadge({ kind, end }: CloseRow): Markup {
  const isGood = kind === 'settled' && end !== 'failed';
  return badge(
    kind === 'settled' ? (end ?? 'settled') : kind,
    isGood ? (end === 'client_gone' ? 'calm' : 'good') : 'warning',
  );
}
