/** Shows a customer's month from its opening to its closing balance, like the command `statement`. */
import { addFigures, noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import type { Target } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, formatInteger, quoteShellWord } from '../../../../shared/operate/plan.ts';
import { statedColumns, viewStatement, viewStatements } from '../../../../shared/operate/statement.ts';
import type { Statement, StatementDay } from '../../../../shared/operate/statement.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { clockTime, exactYuan, withYuanSign, writtenTime } from '../layout/figures.ts';
import { search } from '../layout/form.ts';
import { command, doubts, emptyState, lead, warnings, type Page } from '../layout/frame.ts';
import {
  column,
  figureColumns,
  head,
  number,
  pager,
  table,
  tiles,
  viewColumns,
  wide,
  type PageColumn,
} from '../layout/table.ts';
import { customerLink, pathWith, type Routes, type Visit } from '../visit/visit.ts';

export function statementPages(routes: Routes): void {
  routes.page('/statements', statement);
}

async function statement(visit: Visit): Promise<Page> {
  const { ports, nowMs, query } = visit;
  const account = query('account');
  const month = query('month') || utcMonth(nowMs);
  return {
    title: 'Statements',
    body: html`${search({
      action: 'statements',
      verb: 'Show',
      fields: [
        { name: 'account', label: 'Customer', value: account },
        { name: 'month', label: 'Month (UTC)', value: month, placeholder: '2026-11' },
      ],
    })}
    ${
      account === ''
        ? await everybody(visit, month)
        : // A page does not wait for sums; it says that they follow.
          shown(await viewStatement(ports, { account, month, waitMs: 0 }), ports.target)
    }`,
  };
}

const amounts = viewColumns(statedColumns).slice(1);

async function everybody({ ports, query }: Visit, month: string): Promise<Markup> {
  const after = query('after');
  const { statements, count, next, problems } = await viewStatements(ports, month, after);
  const of = count === undefined ? ', unsorted; there are more' : ` of ${formatInteger(count)}, by name`;
  return html`${warnings(problems)}
  ${table(statements, {
    caption: `Statements of ${month}`,
    empty: emptyState(`No calls or grants up to ${month}`, 'Enter a name, or another month.'),
    columns: [
      head(
        'Customer',
        ({ account }) => html`<a href="${pathWith('statements', { account, month })}">${account}</a>`,
      ),
      ...amounts.filter(
        ({ title }) => title !== 'Metered' || statements.some(({ metered }) => metered !== 0n),
      ),
    ],
  })}
  ${pager(`${formatCount(statements.length, 'customer')}${of}`, next && pathWith('statements', { month, after: next }))}
  ${lead('Each statement says whether it adds up. To create all statements, as pages and one CSV:')}
  ${command(ports.target, 'statement', `--all --month ${month} --html statements --csv > ${month}.csv`)}`;
}

function shown(view: Statement, target: Target): Markup {
  const { account, month, opening, granted, charged, metered, closing, grants, days, sum, isRunning } = view;
  return html`<h2>
      ${customerLink(account)}, ${month} ${isRunning && html`<span class="soft">so far</span>`}
    </h2>
    ${
      view.problems.length > 0 &&
      doubts(
        view.problems,
        html`<p>
          Sums follow calls within seconds, so reload this page. If the problem stays, audit the customer, and
          recompute the sums that older versions wrote.
        </p>`,
      )
    }
    ${tiles([
      { name: 'Opening balance', value: exactYuan(opening), note: `${month}-01` },
      { name: '+ Granted', value: exactYuan(granted), note: formatCount(grants.length, 'top-up') },
      { name: '− Charged', value: exactYuan(charged), note: formatCount(sum.counts.calls ?? 0, 'call') },
      ...(metered === 0n
        ? []
        : [{ name: '+ Metered', value: exactYuan(metered), note: 'not paid from the balance' }]),
      {
        name: isRunning ? 'Balance now' : 'Closing balance',
        value: exactYuan(closing),
        note: view.problems.length === 0 ? 'exact' : 'not verified',
      },
    ])}
    <h2>By model</h2>
    ${table(byModel(days), {
      caption: 'The month by model',
      empty: emptyState('No calls in this month', 'A call counts in the month in which it started (UTC).'),
      columns: [head('Model', ({ model }) => model), ...columns],
    })}
    <h2>Top-ups and corrections</h2>
    ${table(grants, {
      caption: 'Top-ups and corrections of the month',
      empty: 'None in this month.',
      columns: grantColumns,
    })}
    <details>
      <summary>By day and model: ${formatCount(days.length, 'line')}</summary>
      ${days.length > linesMax && lead(`Showing the first ${linesMax} lines; the CSV has all.`)}
      ${table(days.slice(0, linesMax), {
        caption: 'The month by day and model',
        empty: nothing,
        columns: [head('Day', ({ day }) => day), column('Model', ({ model }) => model), ...columns],
      })}
    </details>
    ${lead('To send it to the customer, as a page and as CSV:')}
    ${command(target, `statement ${quoteShellWord(account)}`, `--month ${month} --html ${month}.html --csv > ${month}.csv`)}`;
}

const linesMax = 150;

interface StatementLine {
  model: string;
  figures: DailyFigures;
}

const columns = figureColumns<StatementLine>(
  ({ figures }) => figures,
  'calls',
  'failed',
  'plan',
  'input',
  'cached',
  'output',
  'charged',
);

const byModel = (days: readonly StatementDay[]): StatementLine[] =>
  [...Map.groupBy(days, ({ model }) => model)]
    .map(([model, all]) => ({
      model,
      figures: all.reduce((sum, day) => addFigures(sum, day.figures), noFigures),
    }))
    .toSorted((a, b) => Number((b.figures.amounts.charged ?? 0n) - (a.figures.amounts.charged ?? 0n)));

const grantColumns: PageColumn<WrittenGrant>[] = [
  head('Grant', ({ grantId }) => html`<code>${grantId}</code>`),
  // On paper nobody knows which day was today.
  column('Applied (UTC)', ({ applied }) => writtenTime(applied, 0, clockTime)),
  column('Reason', ({ reason }) => wide(reason ?? '')),
  number('Amount', ({ amount }) => withYuanSign(amount), { sortBy: ({ amount }) => amount }),
];
