/** Shows a customer's month from its opening to its closing balance, like the command `statement`. */
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { sumOfFigures } from '../../../../shared/operate/ledger/ledger.ts';
import type { WrittenGrant } from '../../../../shared/billing/ledger-row.ts';
import {
  Failure,
  formatCount,
  formatInteger,
  formatMoney,
  formatWrittenMoney,
  quoteShellWord,
} from '../../../../shared/operate/plan.ts';
import {
  statedColumns,
  refuseMonth,
  statementColumns,
  viewStatement,
  viewStatements,
} from '../../../../shared/operate/statement.ts';
import type { Statement, StatementDay } from '../../../../shared/operate/statement.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { compareCodeUnits } from '../../../../shared/wire/json.ts';
import { formatCsv } from '../../csv.ts';
import { html, maskKeys, nothing, type Markup } from '../../markup.ts';
import { formatStatementCsv, renderStatementFile, renderStatementsFile } from '../../statement-file.ts';
import { renderClockTime, renderRowTime } from '../layout/figures.ts';
import type { Field } from '../../fields/row-field.ts';
import { addMarks, renderActionButton, renderSearch } from '../layout/form.ts';
import {
  renderCommand,
  renderDoubts,
  renderEmptyState,
  renderLead,
  renderWarnings,
  type Page,
} from '../layout/frame.ts';
import {
  column,
  pickFigureColumns,
  head,
  number,
  renderPager,
  renderTable,
  renderTiles,
  buildViewColumns,
  renderWide,
  type PageColumn,
} from '../layout/table.ts';
import { explainRefusal, renderCustomerLink, buildPath, type Routes, type Visit } from '../visit/visit.ts';

const nameFile = ({ field }: Visit): string => [field('account') || 'statements', field('month')].join('-');

export function addStatementPages(routes: Routes): void {
  routes.page('/statements', renderStatements);
  routes.file('/statement-html', {
    nameOf: (visit) => `${nameFile(visit)}.html`,
    type: 'text/html',
    async *lines({ ports, field, nowMs }) {
      const month = field('month');
      const wanted = {
        account: field('account'),
        month,
        waitMs: 0,
        contact: true,
        prices: month === utcMonth(nowMs),
      };
      yield maskKeys(await renderStatementFile(await viewStatement(ports, wanted)));
    },
  });
  routes.file('/statements-csv', {
    nameOf: (visit) => `${nameFile(visit)}.csv`,
    type: 'text/csv',
    lines: listCsv,
  });
  routes.file('/statements-html', {
    nameOf: (visit) => `${nameFile(visit)}${visit.field('from') && `-from-${visit.field('from')}`}.html`,
    type: 'text/html',
    async *lines(visit) {
      const month = visit.field('month');
      const prices = month === utcMonth(visit.nowMs);
      const wanted = { prices, from: visit.field('from'), before: visit.field('before') };
      const title = `Statements of ${month}`;
      for await (const piece of renderStatementsFile(title, selectStatements(visit, wanted)))
        yield maskKeys(piece);
    },
  });
}

async function* selectStatements(visit: Visit, wanted: Wanted): AsyncGenerator<Statement | string> {
  for await (const { account, statement } of listStatements(visit, wanted))
    yield typeof statement === 'string' ? `${account}: ${statement}` : statement;
}

interface Wanted {
  prices?: boolean;
  from?: string;
  /** Excluded. Empty: no end. */
  before?: string;
}

/** Lists statements of one customer or of all. Replaces a statement that does not add up by its problems, so that nobody sends it. */
async function* listStatements(
  { ports, field, options, identity, nowMs }: Visit,
  { prices = false, from = '', before = '' }: Wanted = {},
): AsyncGenerator<{ account: string; statement: Statement | string }> {
  const [account, month] = [field('account'), field('month')];
  refuseMonth(month, nowMs);
  if (account === '' && !options.exports) throw new Failure(explainRefusal(identity));
  const pages = account === '' ? await Array.fromAsync(ports.ledger.accounts()) : [[account]];
  const isWanted = (each: string): boolean => each >= from && (before === '' || each < before);
  for (const each of [...new Set(pages.flat())].filter(isWanted).toSorted(compareCodeUnits)) {
    const wanted = { account: each, month, prices, contact: true, waitMs: 0 };
    const statement = await viewStatement(ports, wanted).catch((error: unknown) => {
      if (account !== '' || !(error instanceof Failure)) throw error;
      return error.message;
    });
    if (typeof statement === 'string') yield { account: each, statement };
    else if (statement.problems.length > 0)
      yield { account: each, statement: `DOES NOT ADD UP: ${statement.problems.join('; ')}` };
    else if (account !== '' || hasLines(statement)) yield { account: each, statement };
  }
}

async function* listCsv(visit: Visit): AsyncGenerator<string> {
  let header = formatCsv([['account', ...statementColumns]]);
  for await (const { account, statement } of listStatements(visit)) {
    yield (
      header +
        (typeof statement === 'string' ? formatCsv([[account, statement]]) : formatStatementCsv([statement]))
    );
    header = '';
  }
  yield header;
}

const hasLines = ({ opening, closing, days, grants }: Statement): boolean =>
  opening !== 0n || closing !== 0n || days.length > 0 || grants.length > 0;

const renderForm = (fields: readonly Field[]): Markup =>
  renderSearch({ action: 'statements', verb: 'Show', fields });

async function renderStatements(visit: Visit): Promise<Page> {
  const { ports, nowMs, query } = visit;
  const account = query('account');
  const month = query('month') || utcMonth(nowMs);
  const fields = [
    { name: 'account', label: 'Customer', value: account },
    { name: 'month', label: 'Month (UTC)', value: month, placeholder: '2026-11' },
  ];
  try {
    const shown =
      account === ''
        ? await renderAll(visit, month)
        : // A page does not wait for sums; it says that they follow.
          renderStatement(await viewStatement(ports, { account, month, waitMs: 0 }), visit);
    return { title: 'Statements', actions: shown.actions, body: html`${renderForm(fields)} ${shown.body}` };
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== 2) throw error;
    // A customer without a statement is named, not the field.
    const problem = error.message.startsWith('--') ? error.message : `account: ${error.message}`;
    return { title: 'Statements', status: 422, body: renderForm(addMarks(fields, { problem })) };
  }
}

const amounts = buildViewColumns(statedColumns).slice(1);

type ShownStatements = Pick<Page, 'actions' | 'body'>;

async function renderAll(visit: Visit, month: string): Promise<ShownStatements> {
  const { ports, query, identity, options } = visit;
  const after = query('after');
  const { statements, names, count, next, problems } = await viewStatements(ports, month, after);
  const of = count === undefined ? ', unsorted; there are more' : ` of ${formatInteger(count)}, by name`;
  const downloads = options.exports && [
    renderActionButton('statements-csv', identity.formToken, 'Download all as CSV', { month }),
    names && renderHtmlButtons(names, month, identity.formToken),
  ];
  const body = html`${renderWarnings(problems)}
  ${renderTable(statements, {
    caption: `Statements of ${month}`,
    empty: renderEmptyState(`No calls or grants up to ${month}`, 'Enter a name, or another month.'),
    columns: [
      head(
        'Customer',
        ({ account }) => html`<a href="${buildPath('statements', { account, month })}">${account}</a>`,
      ),
      ...amounts.filter(
        ({ title }) => title !== 'Metered' || statements.some(({ metered }) => metered !== 0n),
      ),
    ],
  })}
  ${renderPager(`${formatCount(statements.length, 'customer')}${of}`, next && buildPath('statements', { month, after: next }))}
  ${renderLead('If a statement does not add up, the files show its problems instead.')}
  ${renderCommand(ports.target, 'statement', `--all --month ${month} --html statements --csv > ${month}.csv`)}`;
  return { actions: downloads, body };
}

/** Browsers are slow with more statements in one file. The last file has all remaining ones. */
const htmlMax = 500;

/** Cuts by name, because a customer who is added between two downloads would shift positions. */
const renderHtmlButtons = (names: readonly string[], month: string, formToken: string): Markup[] =>
  Array.from({ length: Math.max(1, Math.ceil(names.length / htmlMax)) }, (_, part) => {
    const start = part * htmlMax;
    const { [start]: from = '', [start + htmlMax]: before = '' } = names;
    const end = Math.min(start + htmlMax, names.length);
    const words = names.length <= htmlMax ? 'Download all as HTML' : `HTML ${start + 1}–${end}`;
    return renderActionButton('statements-html', formToken, words, {
      month,
      from: start === 0 ? '' : from,
      before,
    });
  });

function renderStatement(view: Statement, { ports: { target }, identity }: Visit): ShownStatements {
  const { account, month, opening, granted, charged, metered, closing, grants, days, sum, isRunning } = view;
  const downloads = [
    renderActionButton('statement-html', identity.formToken, 'Download page', { account, month }),
    renderActionButton('statements-csv', identity.formToken, 'Download CSV', { account, month }),
  ];
  const body = html`<h2>
      ${renderCustomerLink(account)}, ${month} ${isRunning && html`<span class="soft">so far</span>`}
    </h2>
    ${
      view.problems.length > 0 &&
      renderDoubts(
        view.problems,
        html`<p>
          Daily totals are updated within seconds of a call, so reload this page first. If the problem stays,
          audit the customer, and correct the daily totals that older versions wrote.
        </p>`,
      )
    }
    ${renderTiles([
      { name: 'Opening balance', value: formatMoney(opening), note: `${month}-01` },
      {
        name: '+ Top-ups and corrections',
        value: formatMoney(granted),
        note: `${grants.length} in this month`,
      },
      {
        name: '− Charged',
        value: formatMoney(charged),
        note: formatCount(sum.counts.calls ?? 0, 'call'),
      },
      ...(metered === 0n
        ? []
        : [{ name: '+ Metered', value: formatMoney(metered), note: 'not paid from the balance' }]),
      {
        name: isRunning ? 'Balance now' : 'Closing balance',
        value: formatMoney(closing),
        note: view.problems.length === 0 ? 'exact' : 'not verified',
      },
    ])}
    <h2>By model</h2>
    ${renderTable(sumByModel(days), {
      caption: 'The month by model',
      empty: renderEmptyState(
        'No calls in this month',
        'A call counts in the month in which it started (UTC).',
      ),
      columns: [head('Model', ({ model }) => model), ...columns],
    })}
    <h2>Top-ups and corrections</h2>
    ${renderTable(grants, {
      caption: 'Top-ups and corrections of the month',
      empty: 'None in this month.',
      columns: grantColumns,
    })}
    <details>
      <summary>By day and model: ${formatCount(days.length, 'line')}</summary>
      ${days.length > linesMax && renderLead(`Showing the first ${linesMax} lines; the CSV has all.`)}
      ${renderTable(days.slice(0, linesMax), {
        caption: 'The month by day and model',
        empty: nothing,
        columns: [head('Day', ({ day }) => day), column('Model', ({ model }) => model), ...columns],
      })}
    </details>
    ${renderCommand(target, `statement ${quoteShellWord(account)}`, `--month ${month} --html ${month}.html --csv > ${month}.csv`)}`;
  return { actions: downloads, body };
}

const linesMax = 150;

interface StatementLine {
  model: string;
  figures: DailyFigures;
}

const columns = pickFigureColumns<StatementLine>(
  ({ figures }) => figures,
  'calls',
  'failed',
  'plan',
  'input',
  'cached',
  'output',
  'charged',
);

const sumByModel = (days: readonly StatementDay[]): StatementLine[] =>
  [...Map.groupBy(days, ({ model }) => model)]
    .map(([model, all]) => ({
      model,
      figures: sumOfFigures(all),
    }))
    .toSorted((a, b) => Number((b.figures.amounts.charged ?? 0n) - (a.figures.amounts.charged ?? 0n)));

const grantColumns: PageColumn<WrittenGrant>[] = [
  head('Grant', ({ grantId }) => html`<code>${grantId}</code>`),
  // On paper nobody knows which day was today.
  column('Applied (UTC)', ({ applied }) => renderRowTime(applied, 0, renderClockTime)),
  column('Reason', ({ reason }) => renderWide(reason ?? '')),
  number('Amount', ({ amount }) => formatWrittenMoney(amount), { sortBy: ({ amount }) => amount }),
];
