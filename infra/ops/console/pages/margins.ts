/** Margins of a month by model, channel or customer: charges minus upstream costs, where the cost is known. */
import { compareLargestFirst } from '../../../../shared/billing/money.ts';
import {
  compareCharges,
  readAllRows,
  sumBy,
  sumOfFigures,
  type Summed,
} from '../../../../shared/operate/ledger/ledger.ts';
import type { AccountMonth, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { marginOf, reportPeriod } from '../../../../shared/operate/report.ts';
import { html, type Markup } from '../../markup.ts';
import { formatPercent, renderYuan } from '../layout/figures.ts';
import { renderEmptyState, renderLead, renderWarnings, type Page } from '../layout/frame.ts';
import { head, number, pickFigureColumns, renderTable, renderTabs } from '../layout/table.ts';
import { buildPath, renderCustomerLink, type Routes, type Visit } from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';

export function addMarginPages(routes: Routes): void {
  routes.page('/margins', renderMargins);
}

const groupings = ['model', 'channel', 'customer'] as const;
type Grouping = (typeof groupings)[number];
const rowsMax = 200;

async function renderMargins(visit: Visit): Promise<Page> {
  const by = groupings.find((each) => each === visit.query('by')) ?? 'model';
  const thisMonth = new Date(visit.nowMs).toISOString().slice(0, 7);
  const month = visit.query('month') || thisMonth;
  const { period, sums, problems } = await readMargins(visit, by, month);
  const pathOf = (asked: object): string => buildPath('margins', { by, month, ...asked });
  const total = sumOfFigures(sums);
  const { counts, amounts } = total;
  const unknown = (counts.calls ?? 0) - (counts.bought_calls ?? 0);
  return {
    title: 'Margins',
    actions: html`<a class="button" href="${pathOf({ month: period.before.from.slice(0, 7) })}"
      >Previous month</a
    >`,
    body: html`${renderWarnings(problems)}
    ${renderTabs(
      'Group',
      groupings.map((each) => [pathOf({ by: each }), `By ${each}`]),
      pathOf({}),
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
    ${renderTable(sums.slice(0, rowsMax), {
      caption: `Margins by ${by}`,
      markOf: ({ figures }) => ((marginOf(figures).earned ?? 0n) < 0n ? 'bad' : undefined),
      empty: renderEmptyState('No calls in this month', 'Choose another month.'),
      columns: [
        head(by.charAt(0).toUpperCase() + by.slice(1), ({ name }) => links[by](name)),
        ...pickFigureColumns<Summed>(({ figures }) => figures, 'calls', 'charged'),
        number('Cost', ({ figures }) => renderYuan(marginOf(figures).bought)),
        ...pickFigureColumns<Summed>(({ figures }) => figures, 'margin'),
        number('of charges', ({ figures }) =>
          formatPercent(marginOf(figures).earned ?? 0n, figures.amounts.bought_charged ?? 0n),
        ),
      ],
    })}
    ${sums.length > rowsMax && html`<p>The first ${rowsMax} of ${sums.length}, with the largest losses.</p>`}`,
  };
}

const links: Record<Grouping, (name: string) => Markup> = {
  model: (name) => html`${name}`,
  channel: (name) => html`<a href="${channelPathOf(name)}">${name}</a>`,
  customer: renderCustomerLink,
};

/** Sorts by the largest loss, because operators look for losses, and then by charges. */
async function readMargins({ ports: { ledger }, nowMs }: Visit, by: Grouping, month: string) {
  const period = reportPeriod(nowMs, { month });
  const { rows, problems } = await (by === 'customer'
    ? readAllRows(ledger.monthAccounts(month))
    : readAllRows(ledger.served(period)));
  const nameOf = (row: AccountMonth | ServedDay): string | undefined =>
    'account' in row ? row.account : by === 'channel' ? row.channel : row.model;
  const sums = sumBy<AccountMonth | ServedDay>(rows, nameOf);
  return {
    period,
    sums: sums.toSorted((a, b) => compareLargestFirst(lossOf(a), lossOf(b)) || compareCharges(a, b)),
    problems,
  };
}

function lossOf({ figures }: Summed): bigint {
  const { earned = 0n } = marginOf(figures);
  return earned < 0n ? -earned : 0n;
}
