/** Formats a customer's month as an HTML page to send, and as CSV. The command line writes these files, the console offers them. */
import { formatYuan } from '../../shared/billing/money.ts';
import type { DailyFigures } from '../../shared/billing/daily-figures.ts';
import type { Summed } from '../../shared/operate/ledger/ledger.ts';
import { describeOwnPrice } from '../../shared/relay/account/account-prices.ts';
import { formatMoney, formatWrittenMoney } from '../../shared/operate/plan.ts';
import {
  noteFailures,
  formatFigures,
  listStatementRows,
  statementColumns,
  type Statement,
} from '../../shared/operate/statement.ts';
import { renderDoubts } from './console/layout/frame.ts';
import { column, head, number, renderTable, renderWide } from './console/layout/table.ts';
import { formatCsv, selectCsvCells } from './csv.ts';
import { fileOf } from './html-file.ts';
import { html, nothing, raw, type Markup } from './markup.ts';

export const formatStatementCsv = (statements: readonly Statement[]): string =>
  formatCsv(
    selectCsvCells(
      ['account', ...statementColumns],
      statements.flatMap((statement) =>
        listStatementRows(statement).map((row) => Object.assign({ account: statement.account }, row)),
      ),
    ),
  );

type Day = Statement['days'][number];

const pickFigure =
  (name: Exclude<keyof ReturnType<typeof formatFigures>, 'amount'>) =>
  (figures: DailyFigures): string =>
    String(formatFigures(figures)[name]);

/** Columns of figures: the head on the terminal, the title in the file, and the text of a cell. */
export const figureColumns: readonly (readonly [
  head: string,
  title: string,
  text: (of: DailyFigures, formatAmount?: (amount: bigint) => string) => string,
])[] = [
  ['CALLS', 'Calls', pickFigure('calls')],
  ['FAILED', 'Failed', pickFigure('failed_calls')],
  ['ON A PLAN', 'On a plan', pickFigure('plan_calls')],
  ['INPUT', 'Input', pickFigure('prompt_tokens')],
  ['', 'Cached input', pickFigure('cached_tokens')],
  ['OUTPUT', 'Output', pickFigure('completion_tokens')],
  ['CHARGED', 'Charged', ({ amounts }, formatAmount = formatYuan) => formatAmount(amounts.charged ?? 0n)],
];

/** The lines before the last one add up to it. */
export const listBalanceLines = ({ opening, granted, charged, metered, closing, month }: Statement) => [
  { name: 'opening', title: `Opening balance, ${month}-01`, yuan: formatYuan(opening) },
  { name: '+ granted', title: '+ top-ups and corrections', yuan: formatYuan(granted) },
  { name: '- charged', title: '- calls', yuan: formatYuan(charged) },
  ...(metered === 0n
    ? []
    : [{ name: '+ metered', title: '+ calls not paid from the balance', yuan: formatYuan(metered) }]),
  { name: 'closing', title: 'Closing balance', yuan: formatYuan(closing) },
];

export const nameStatement = ({ account, month, isRunning }: Statement): string =>
  `${account}, ${month}${isRunning ? ' (until now)' : ''}`;

const buildFigures = <Row extends { figures: DailyFigures }>() =>
  figureColumns.map(([, name, text]) => number<Row>(name, ({ figures }) => text(figures, formatMoney)));

/** Renders the page that the customer gets. */
export const renderStatementFile = (statement: Statement): Promise<string> =>
  fileOf(titleOf(statement), renderStatement(statement));

/** Renders a file of many statements piece by piece, so that only one is in memory. Each begins on a page of its own. */
export async function* renderStatementsFile(
  title: string,
  statements: AsyncIterable<Statement | string>,
): AsyncGenerator<string> {
  const slot = '<!-- statements -->';
  const [start = '', end = ''] = (await fileOf(title, raw(slot))).split(slot);
  let before = start;
  for await (const each of statements) {
    const words = typeof each === 'string' ? renderDoubts([each]) : renderStatement(each);
    yield before + String(await html`<section class="statement">${words}</section>`);
    before = '';
  }
  yield before + end;
}

const titleOf = (statement: Statement): string => `Statement of ${nameStatement(statement)}`;

function renderStatement(statement: Statement): Markup {
  const { grants, days, summed, sum, problems, prices = [], contact } = statement;
  return html`<h1>${titleOf(statement)}</h1>
    ${contact.length > 0 && html`<p>${contact.join(', ')}</p>`}
    ${problems.length > 0 && renderDoubts(problems)}
    <h2>Balance</h2>
    ${renderTable(listBalanceLines(statement), {
      caption: 'Balance',
      empty: nothing,
      columns: [head('', (line) => line.title), number('Amount', ({ yuan }) => formatWrittenMoney(yuan))],
    })}
    <h2>Top-ups and corrections</h2>
    ${renderTable(grants, {
      caption: 'Top-ups and corrections',
      empty: 'None in this month.',
      columns: [
        head('Time (UTC)', ({ applied = '' }) => applied.slice(0, 16).replace('T', ' ')),
        column('Name', ({ grantId }) => grantId),
        column('Reason', ({ reason = '' }) => renderWide(reason)),
        number('Amount', ({ amount }) => formatWrittenMoney(amount)),
      ],
    })}
    ${
      prices.length > 0 &&
      html`<h2>Own prices</h2>
        ${renderTable(prices, {
          caption: 'Own prices',
          empty: nothing,
          columns: [
            head('Models', ({ models }) => models.join(', ')),
            column('Price', (price) => renderWide(describeOwnPrice(price))),
          ],
        })}`
    }
    ${
      summed &&
      html`<h2>Calls by end user or tag</h2>
        ${renderTable([...summed, { name: 'All', figures: sum }], {
          caption: 'Calls by end user or tag',
          empty: nothing,
          columns: [head('For', ({ name }) => name), ...buildFigures<Summed>()],
        })}`
    }
    <h2>Calls by day (UTC) and model</h2>
    ${renderTable([...days, { day: 'All', model: '', figures: sum }], {
      caption: 'Calls by day (UTC) and model',
      empty: nothing,
      columns: [head('Day', ({ day }) => day), column('Model', ({ model }) => model), ...buildFigures<Day>()],
    })}
    ${noteFailures(sum) ?? nothing}`;
}
