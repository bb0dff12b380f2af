/** Margins of a month by model, channel or customer: charges minus upstream costs, where the cost is known. */
import { sumOfFigures, type Summed } from '../../../../shared/operate/ledger/ledger.ts';
import {
  listMargins,
  marginColumns,
  marginGroupings,
  viewMargins,
} from '../../../../shared/operate/margins.ts';
import { formatCount } from '../../../../shared/operate/plan.ts';
import { marginOf } from '../../../../shared/operate/report.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { formatCsv, selectCsvCells } from '../../csv.ts';
import { html, maskKeys, type Markup } from '../../markup.ts';
import { formatPercent, renderYuan } from '../layout/figures.ts';
import { renderActionButton } from '../layout/form.ts';
import { renderEmptyState, renderLead, renderWarnings, type Page } from '../layout/frame.ts';
import { head, number, pickFigureColumns, renderTable, renderTabs } from '../layout/table.ts';
import { buildPath, renderCustomerLink, type Routes, type Visit } from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';

export function addMarginPages(routes: Routes): void {
  routes.page('/margins', renderMargins);
  routes.file('/margins-csv', {
    nameOf: ({ field }) => `margins-${field('month')}.csv`,
    type: 'text/csv',
    isExport: true,
    async *lines({ ports, field }) {
      const month = field('month');
      const { rows, problems } = await listMargins(ports, month);
      // A file has no place for warnings, and without these rows its sums would look complete.
      const missing = problems.map((name) => ({ month, by: 'not included', name }));
      yield maskKeys(
        formatCsv([[...marginColumns], ...selectCsvCells(marginColumns, [...rows, ...missing])]),
      );
    },
  });
}

const rowsMax = 100;

async function renderMargins(visit: Visit): Promise<Page> {
  const { ports, nowMs, identity, options, query } = visit;
  const day = query('day') || undefined;
  const groupings = marginGroupings.filter((each) => day === undefined || each !== 'customer');
  const by = groupings.find((each) => each === query('by')) ?? 'model';
  const thisMonth = utcMonth(nowMs);
  const month = day?.slice(0, 7) ?? (query('month') || thisMonth);
  const { period, groups, problems } = await viewMargins(ports, { month, day }, [by]);
  const sums = groups.flatMap((group) => group.sums);
  const pathOf = (asked: Record<string, string>): string => buildPath('margins', { by, ...asked });
  const shown: Record<string, string> = day === undefined ? { month } : { day };
  const total = sumOfFigures(sums);
  const rest = sums.slice(rowsMax);
  const others = { name: formatCount(rest.length, 'other'), figures: sumOfFigures(rest) };
  const { counts, amounts } = total;
  const unknown = (counts.calls ?? 0) - (counts.bought_calls ?? 0);
  return {
    title: 'Margins',
    actions: html`${
      day === undefined
        ? html`<a class="button" href="${pathOf({ month: period.before.from.slice(0, 7) })}"
            >Previous month</a
          >`
        : html`<a class="button" href="${pathOf({ day: period.before.from })}">Previous day</a>`
    }
    ${(day ?? month) !== thisMonth && html`<a class="button" href="${pathOf({})}">This month</a>`}
    ${options.exports && renderActionButton('margins-csv', identity.formToken, `Download CSV${day === undefined ? '' : ' of the month'}`, { month })}`,
    body: html`${renderWarnings(problems)}
    ${renderTabs(
      'Group',
      groupings.map((each) => [pathOf({ by: each, ...shown }), `By ${each}`]),
      pathOf(shown),
    )}
    ${renderLead(
      html`${period.title}${period.isRunning && ', until now'} (UTC): ${renderYuan(amounts.charged ?? 0n)}
      charged.
      ${
        unknown > 0
          ? html`Cost and margin leave out ${formatPercent(unknown, counts.calls ?? 0)} of the calls: they
              failed, or no <code>cost</code> was set on their channels.`
          : 'The cost of all calls is known.'
      }`,
    )}
    ${renderTable([...sums.slice(0, rowsMax), ...(rest.length > 0 ? [others] : [])], {
      caption: `Margins by ${by}`,
      markOf: ({ figures }) => ((marginOf(figures).earned ?? 0n) < 0n ? 'bad' : undefined),
      empty: renderEmptyState('No calls in this period', 'Choose another period.'),
      columns: [
        head(by.charAt(0).toUpperCase() + by.slice(1), (row) =>
          row === others ? row.name : links[by](row.name),
        ),
        ...pickFigureColumns<Summed>(({ figures }) => figures, 'calls', 'charged'),
        number('Cost', ({ figures }) => renderYuan(marginOf(figures).bought)),
        ...pickFigureColumns<Summed>(({ figures }) => figures, 'margin'),
        number('of charges', ({ figures }) =>
          formatPercent(marginOf(figures).earned ?? 0n, figures.amounts.bought_charged ?? 0n),
        ),
      ],
    })}`,
  };
}

const links: Record<(typeof marginGroupings)[number], (name: string) => Markup> = {
  model: (name) => html`${name}`,
  channel: (name) => html`<a href="${channelPathOf(name)}">${name}</a>`,
  customer: renderCustomerLink,
};
