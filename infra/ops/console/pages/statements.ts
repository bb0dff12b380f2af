/** Statements: a customer's month from its opening to its closing balance, as `statement` of the command line has it. */
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import { addFigures, noFigures, type DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { viewStatement, type Statement, type StatementDay } from '../../../../shared/operate/statement.ts';
import { figureColumns, table, tiles, type Column } from '../layout/table.ts';
import { counted, exactYuan, grouped } from '../layout/figures.ts';
import { search } from '../layout/form.ts';
import { type Page, command, emptyState, notice } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import type { Routes, Visit } from '../visit/visit.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { shellWord } from '../../../../shared/operate/plan.ts';

export function statementPages(routes: Routes): void {
  routes.page('/statements', statement);
}

async function statement(visit: Visit): Promise<Page> {
  const account = visit.query('account');
  const month = visit.query('month') || utcMonth(visit.nowMs);
  // A page does not wait: it says that sums follow, and is loaded again.
  const view = account === '' ? undefined : await viewStatement(visit.ports, { account, month, waitMs: 0 });
  return {
    title: 'Statements',
    section: 'statements',
    body: html`${search({
      action: 'statements',
      verb: 'Show',
      fields: [
        { name: 'account', label: 'Customer', value: account },
        { name: 'month', label: 'Month, UTC', value: month, placeholder: '2026-11' },
      ],
    })}
    ${
      view === undefined
        ? html`<div class="empty">
            ${emptyState('Which customer?', html`Type a name, or choose one of the <a href="customers">customers</a>.`)}
          </div>`
        : shown(view)
    }`,
  };
}

function shown(view: Statement): Markup {
  const { account, month, opening, granted, charged, closing, grants, days, sum, isRunning } = view;
  return html`<h2>
      <a href="customers/${encodeURIComponent(account)}">${account}</a>, ${month}
      ${isRunning ? html`<span class="soft">until now</span>` : nothing}
    </h2>
    ${doubts(view)}
    ${tiles([
      { name: 'Opening balance', value: exactYuan(opening), note: `${month}-01` },
      { name: '+ Granted', value: exactYuan(granted), note: counted(grants.length, 'top-up') },
      { name: '− Charged', value: exactYuan(charged), note: counted(sum.counts.calls ?? 0, 'call') },
      {
        name: isRunning ? 'Balance now' : 'Closing balance',
        value: exactYuan(closing),
        note: view.problems.length === 0 ? 'exact' : 'not sure',
      },
    ])}
    <h2>By model</h2>
    ${table({
      caption: 'The month by model',
      rows: byModel(days),
      empty: emptyState('No call in this month', 'Calls count where they began, in UTC.'),
      columns: [{ title: 'Model', isHead: true, show: ({ model }) => model }, ...columns],
    })}
    <h2>Top-ups and corrections</h2>
    ${table({
      caption: 'Top-ups and corrections of the month',
      rows: grants,
      empty: 'None in this month.',
      columns: grantColumns,
    })}
    <details>
      <summary>By day and model: ${counted(days.length, 'line')}</summary>
      ${table({
        caption: 'The month by day and model',
        rows: days,
        empty: nothing,
        columns: [
          { title: 'Day', isHead: true, show: ({ day }) => day },
          { title: 'Model', show: ({ model }) => model },
          ...columns,
        ],
      })}
    </details>
    <p class="lead">To send it to the customer, as a page and as a table:</p>
    ${command(`relay-ops statement ${shellWord(account)} --month ${month} --html ${month}.html --csv > ${month}.csv`)}`;
}

const doubts = ({ problems }: Statement): Markup =>
  problems.length === 0
    ? nothing
    : notice(
        'bad',
        html`<strong>This does not add up. Do not send it.</strong>
          <ul>
            ${problems.map((problem) => html`<li>${problem}</li>`)}
          </ul>
          <p>
            Sums follow calls within seconds: load the page again. If it stays, audit the customer, and make
            sums of older versions anew.
          </p>`,
      );

interface StatementLine {
  model: string;
  figures: DailyFigures;
}

const figures = figureColumns<StatementLine>((row) => row.figures);
const columns: Column<StatementLine & Partial<StatementDay>>[] = [
  figures.calls,
  {
    title: 'On a plan',
    isNumber: true,
    about: 'calls without a charge',
    show: (row) => grouped(row.figures.counts.plan_calls ?? 0),
  },
  figures.input,
  figures.cached,
  figures.output,
  figures.charged,
];

const byModel = (days: readonly StatementDay[]): StatementLine[] =>
  [...Map.groupBy(days, ({ model }) => model)]
    .map(([model, all]) => ({
      model,
      figures: all.reduce((sum, day) => addFigures(sum, day.figures), noFigures),
    }))
    .toSorted((a, b) => Number((b.figures.amounts.charged ?? 0n) - (a.figures.amounts.charged ?? 0n)));

const grantColumns: Column<WrittenGrant>[] = [
  { title: 'Grant', isHead: true, show: ({ grantId }) => html`<code>${grantId}</code>` },
  { title: 'Applied', show: ({ applied }) => applied ?? '' },
  { title: 'Reason', show: ({ reason }) => html`<span class="wide">${reason ?? ''}</span>` },
  { title: 'Amount', isNumber: true, show: ({ amount }) => html`${amount}<span class="unit">¥</span>` },
];
