/** The commands `statement` and `reconcile`: the relay's sums beside what others reckon: a customer's month, a vendor's invoice. */
import { join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { isAttributedBy, type AttributedBy } from '../../../../shared/billing/ledger-row.ts';
import { formatYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import { formatCount, deniedExitCode, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  reconcileChannel,
  reconciledColumns,
  type ReconcileInput,
} from '../../../../shared/operate/reconcile.ts';
import { describeOwnPrice } from '../../../../shared/relay/account/account-prices.ts';
import {
  noteFailures,
  statedColumns,
  statementColumns,
  listStatementRows,
  refuseMonth,
  viewStatement,
  type Statement,
} from '../../../../shared/operate/statement.ts';
import { compareCodeUnits } from '../../../../shared/wire/json.ts';
import { maskKeys } from '../../markup.ts';
import { listBalanceLines, figureColumns, nameStatement, renderStatementFile } from '../../statement-file.ts';
import { auditors, defineView, type CommandRun } from '../command.ts';
import { parseCsvLines, delimiterOf } from '../../csv.ts';
import { parseDecimalText, parseNumber } from '../option-values.ts';
import { formatTable, type Column, type Terminal } from '../terminal.ts';
import { readSheetFile, writeTextFile } from '../text-files.ts';

const ofMonth = { '--month <month>': 'month in UTC, such as 2026-10' };

interface StatementOptions {
  month: string;
  by?: AttributedBy;
  html?: string;
  marked?: boolean;
  prices?: boolean;
  all?: boolean;
  /** Seconds. */
  wait: number;
}

export const statementCommand = defineView('statement', {
  does: 'monthly statement of a customer: opening balance + grants - charges = closing balance',
  lists: true,
  needs: ofMonth,
  takes: {
    '[account]': 'customer from `customer list`',
    '--all': 'all customers with a balance, a call or a grant; --html is then a folder',
    '--by <name>': ['group calls by end_user or tag:NAME instead of day and model', parseBy],
    '--prices': "also list the customer's current own prices; needs the policy support or operator",
    '--html <file>': 'also write an HTML file, ready to send',
    '--marked': 'create it even if it does not add up, with a notice on it',
    '--wait <seconds>': ['how long to wait until the last calls are counted', parseNumber, 15],
  },
  examples: [
    'statement acme --month 2026-10 --html acme-2026-10.html',
    'statement acme --month 2026-10 --csv > acme-2026-10.csv',
    'statement acme --month 2026-10 --by tag:team',
    'statement --all --month 2026-10 --html statements',
  ],
  policies: auditors,
  async run(run, account: string | undefined, options: StatementOptions) {
    const { ports, terminal } = run;
    const { month, by, prices, html: file, marked = false, wait, all = false } = options;
    if (all === (account !== undefined)) throw usageFailure('specify either a customer or --all');
    if (account === undefined) return writeAllStatements(run, options);
    const statement = await viewStatement(ports, {
      account,
      month,
      by,
      prices,
      contact: prices,
      waitMs: wait * 1000,
    });
    if (statement.problems.length > 0 && !marked) refuse(terminal, statement);
    printStatement(terminal, statement);
    if (file === undefined) return;
    await writeTextFile(file, maskKeys(await renderStatementFile(statement)));
    terminal.remark(`Wrote ${file}.`);
  },
});

/** One after the other, so that memory stays small. One that does not add up is named, and does not stop the others. */
async function writeAllStatements({ ports, terminal }: CommandRun, options: StatementOptions): Promise<void> {
  const { month, by, prices, html: folder, marked = false, wait } = options;
  refuseMonth(month, ports.clock.now());
  const pages = await Array.fromAsync(ports.ledger.accounts());
  const accounts = [...new Set(pages.flat())].toSorted(compareCodeUnits);
  const stated: Statement[] = [];
  let left = 0;
  if (terminal.format === 'csv') terminal.printCsv(['account', ...statementColumns], []);
  for (const [at, account] of accounts.entries()) {
    terminal.count(`${at} of ${accounts.length} customers`);
    const wanted = { account, month, by, prices, contact: prices, waitMs: wait * 1000 };
    const statement = await viewStatement(ports, wanted).catch((error: unknown) => {
      if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
      terminal.remark(`${account}: ${error.message}`);
    });
    left += !statement || statement.problems.length > 0 ? 1 : 0;
    if (!statement) continue;
    const { opening, closing, days, grants, problems } = statement;
    if (opening === 0n && closing === 0n && days.length === 0 && grants.length === 0) continue;
    for (const problem of problems) terminal.remark(`${account} does not add up: ${problem}`);
    if (problems.length > 0 && !marked) continue;
    stated.push(statement);
    if (folder !== undefined)
      await writeTextFile(
        join(folder, `${encodeURIComponent(account)}-${month}.html`),
        maskKeys(await renderStatementFile(statement)),
      );
    if (terminal.format === 'csv')
      terminal.printCsvRows(
        ['account', ...statementColumns],
        listStatementRows(statement).map((row) => Object.assign({ account }, row)),
      );
  }
  if (terminal.format !== 'csv')
    terminal.printList(stated, {
      columns: statedColumns,
      empty: 'No customer had a balance, a call or a grant.',
    });
  if (left > 0)
    throw new Failure(
      `${formatCount(left, 'statement does', 'statements do')} not add up${marked ? ' and carry a notice' : '; not created'}`,
    );
}

function parseBy(written: string): AttributedBy {
  if (isAttributedBy(written)) return written;
  throw new InvalidArgumentError('Expected end_user or tag:NAME.');
}

const decimalMarks = { dot: '.', comma: ',' } as const;

interface ReconcileOptions extends Omit<ReconcileInput, 'channel' | 'text' | 'decimal'> {
  decimal?: keyof typeof decimalMarks;
}

export const reconcileCommand = defineView('reconcile', {
  does: "compare a provider's invoice with the recorded cost of a channel, by model",
  lists: true,
  needs: ofMonth,
  takes: {
    '<channel>': 'channel id from `channel list`',
    '<file>': 'the invoice as CSV (commas, semicolons or tabs), with a model and an amount in each row',
    '--rate <yuan>': ["yuan per unit of the invoice's currency", parseDecimalText, '1'],
    '--model-column <name>': ['column with the model, case-insensitive', String, 'Model'],
    '--amount-column <name>': ['column with the amount, case-insensitive', String, 'Amount'],
    '--decimal <mark>': new Option(
      '--decimal <mark>',
      'decimal separator (default: dot, if unambiguous)',
    ).choices(Object.keys(decimalMarks)),
  },
  examples: [
    'reconcile openai invoice.csv --month 2026-10 --rate 7.2',
    'reconcile openai usage.csv --month 2026-10 --model-column "Line item" --amount-column "Cost (USD)"',
  ],
  policies: auditors,
  async run({ ports, terminal }, channel: string, file: string, { decimal, ...asked }: ReconcileOptions) {
    const sheet = await readSheetFile(file);
    const delimiter = delimiterOf(sheet);
    const text = { delimiter, lines: parseCsvLines(sheet, delimiter) };
    const input = { ...asked, channel, decimal: decimal && decimalMarks[decimal], text };
    const found = await reconcileChannel(ports, input);
    terminal.print(`${found.channel}, ${found.month}, in yuan: ${found.read}`);
    terminal.printList([...found.models, found.all], { columns: reconciledColumns, empty: '' });
    if (found.totals.length > 0)
      terminal.remark(`Skipped totals of the invoice in line ${found.totals.join(', ')}.`);
    terminal.warn(found.warnings);
  },
});

/** Before anything is printed. */
function refuse({ remark }: Terminal, { account, month: of, problems }: Statement): never {
  problems.forEach(remark);
  throw new Failure(
    `the statement of ${account} for ${of} does not add up and was not created: run \`audit --account ${account}\`, or ` +
      '`audit --rebuild-daily` to correct daily totals; --marked creates it with a notice',
  );
}

function printStatement(terminal: Terminal, statement: Statement): void {
  const { account, opening, granted, charged, metered, closing, problems, isRunning } = statement;
  const lines = listStatementRows(statement);
  const json = {
    account,
    month: statement.month,
    opening: formatYuan(opening),
    granted: formatYuan(granted),
    charged: formatYuan(charged),
    metered: metered === 0n ? undefined : formatYuan(metered),
    closing: formatYuan(closing),
    running: isRunning,
    problems,
    lines,
    prices: statement.prices,
  };
  terminal.printAs(json, () => printText(terminal, statement), [statementColumns, lines]);
  for (const problem of problems) terminal.warn([`does not add up: ${problem}`]);
}

type Day = Statement['days'][number];

const buildColumns = <Row extends { figures: DailyFigures }>(): Column<Row>[] =>
  figureColumns.map(([head, , text]) => ['', head, ({ figures }) => text(figures)]);

const dayColumns: Column<Day>[] = [
  ['', '  DAY', ({ day }) => `  ${day}`],
  ['', 'MODEL', ({ model }) => model],
  ...buildColumns<Day>(),
];

const groupColumns: Column<Summed>[] = [['', '  FOR', ({ name }) => `  ${name}`], ...buildColumns<Summed>()];

function printText({ print, printFacts, printTable }: Terminal, statement: Statement): void {
  const { grants, days, summed, sum, prices = [] } = statement;
  print(`${nameStatement(statement)}, in yuan; days in UTC`);
  printFacts(listBalanceLines(statement).map(({ name, yuan }) => [name, yuan]));
  for (const { applied = '', grantId, amount, reason = '' } of grants)
    print(`  ${applied} grant ${grantId}: ${amount} ${reason}`.trimEnd());
  for (const price of prices) print(`  price of ${price.models.join(', ')}: ${describeOwnPrice(price)}`);
  if (days.length === 0) return print('  No calls.');
  printTable(summed ? formatTable(groupColumns, summed) : formatTable(dayColumns, days));
  const note = noteFailures(sum);
  if (note !== undefined) print(`  ${note}`);
}
