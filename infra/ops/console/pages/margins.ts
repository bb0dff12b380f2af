/** Margins of a month or a week by model, channel or customer: charges minus upstream costs, where the cost is known. */
import { compareLargestFirst } from '../../../../shared/billing/money.ts';
import {
  compareCharges,
  readAllRows,
  sumBy,
  sumOfFigures,
  type Summed,
} from '../../../../shared/operate/ledger/ledger.ts';
import type { AccountMonth, DayRange, ServedDay } from '../../../../shared/operate/operator-ports.ts';
import { formatCount } from '../../../../shared/operate/plan.ts';
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
const rowsMax = 100;

async function renderMargins(visit: Visit): Promise<Page> {
  const by = groupings.find((each) => each === visit.query('by')) ?? 'model';
  const [month, week] = [visit.query('month'), visit.query('week')];
  const thisMonth = new Date(visit.nowMs).toISOString().slice(0, 7);
  // By default a week, because a week's sums of 300 models are 2 MB. Customers have only monthly sums.
  const isMonth = by === 'customer' || month !== '';
  const period = reportPeriod(
    visit.nowMs,
    isMonth ? { month: month || thisMonth } : { week: week || undefined },
  );
  const { sums, problems } = await readMargins(visit, by, period);
  const { from } = period.before;
  const pathOf = (asked: Record<string, string>): string => buildPath('margins', { by, ...asked });
  const total = sumOfFigures(sums);
  const rest = sums.slice(rowsMax);
  const others = { name: formatCount(rest.length, 'other'), figures: sumOfFigures(rest) };
  const { counts, amounts } = total;
  const unknown = (counts.calls ?? 0) - (counts.bought_calls ?? 0);
  return {
    title: 'Margins',
    actions: isMonth
      ? html`<a class="button" href="${pathOf({ month: from.slice(0, 7) })}">Previous month</a>`
      : html`<a class="button" href="${pathOf({ week: from })}">Previous week</a>
          <a class="button" href="${pathOf({ month: thisMonth })}">This month</a>`,
    body: html`${renderWarnings(problems)}
    ${renderTabs(
      'Group',
      groupings.map((each) => [pathOf({ by: each, month }), `By ${each}`]),
      pathOf({ month }),
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

const links: Record<Grouping, (name: string) => Markup> = {
  model: (name) => html`${name}`,
  channel: (name) => html`<a href="${channelPathOf(name)}">${name}</a>`,
  customer: renderCustomerLink,
};

/** Sorts by the largest loss, because operators look for losses, and then by charges. */
async function readMargins({ ports: { ledger } }: Visit, by: Grouping, period: DayRange) {
  const { rows, problems } = await (by === 'customer'
    ? readAllRows(ledger.monthAccounts(period.from.slice(0, 7)))
    : readAllRows(ledger.served(period)));
  const nameOf = (row: AccountMonth | ServedDay): string | undefined =>
    'account' in row ? row.account : by === 'channel' ? row.channel : row.model;
  const sums = sumBy<AccountMonth | ServedDay>(rows, nameOf);
  return {
    sums: sums.toSorted((a, b) => compareLargestFirst(lossOf(a), lossOf(b)) || compareCharges(a, b)),
    problems,
  };
}

function lossOf({ figures }: Summed): bigint {
  const { earned = 0n } = marginOf(figures);
  return earned < 0n ? -earned : 0n;
}
