/** A printable statement of a month, from the opening to the closing balance, with the seller's name and address. */
import { formatCount } from '../../../shared/relay/page/english.ts';
import type { AccountStatement } from '../../../shared/wire/public-api.ts';
import {
  createButton,
  byId,
  findSelect,
  formatDay,
  createNode,
  createFiguresRow,
  createDefinitions,
} from './elements.ts';
import { t } from './language.ts';
import { formatCsv, download } from './ledger.ts';
import { reportProgress, type RelayClient } from './relay-client.ts';

const monthsShown = 24;

interface Line {
  what: string;
  used?: NonNullable<AccountStatement['models']>[number] | undefined;
  amount: number;
}

export function showStatements(client: RelayClient): void {
  const months = findSelect('month');
  const draw = (): void => months.replaceChildren(...listMonths().map(createOption));
  const show = (): Promise<boolean> =>
    reportProgress('statement-state', async () => {
      const path = `/v1/account/statement?month=${months.value}`;
      byId('paper').replaceChildren(...createPaper(await client.json<AccountStatement>(path)));
      return '';
    });
  draw();
  byId('paper').replaceChildren();
  const here = { signal: client.ended };
  byId('show-statement').addEventListener('click', () => void show(), here);
  byId('language').addEventListener('click', () => (draw(), byId('paper').replaceChildren()), here);
}

/** Newest first, in UTC. */
function listMonths(): string[] {
  const now = new Date();
  return Array.from({ length: monthsShown }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  );
}

const createOption = (value: string): HTMLElement => createNode('option', { value }, [formatMonth(value)]);
const formatMonth = (month: string): string =>
  new Date(month).toLocaleDateString(t().locale, { year: 'numeric', month: 'long', timeZone: 'UTC' });

function createPaper(statement: AccountStatement): HTMLElement[] {
  const { account, month, seller, final } = statement;
  const lines = listLines(statement);
  const facts = createDefinitions([
    [t().seller, seller && `${seller.name}\n${seller.address}`],
    [t().customer, account],
    [t().month, `${month} (UTC)`],
    [t().state, final ? t().final : t().notFinal],
  ]);
  const [head, ...names] = [t().what, t().calls, t().failedCalls, t().tokensIn, t().tokensOut, t().amount];
  const heads = [head, ...names].map((text) => createNode('th', { scope: 'col' }, [text]));
  const table = createNode('table', { className: 'numbers' }, [
    createNode('thead', {}, [createNode('tr', {}, heads)]),
    createNode('tbody', {}, lines.map(createLineRow(names, decimalsOf(lines)))),
  ]);
  return [
    createNode('h3', {}, [t().statementOf(formatMonth(month))]),
    createNode('dl', { className: 'facts' }, facts),
    createNode('div', { className: 'wide', tabIndex: 0, role: 'region', ariaLabel: t().statement }, [table]),
    createNode('p', { className: 'bar' }, [
      createButton(t().print, () => print()),
      createButton(t().download, () => download(csvOf(lines), `statement-${month}.csv`)),
    ]),
  ];
}

/** The amounts before the last one add up to it. */
function listLines(statement: AccountStatement): Line[] {
  const { opening, grants, models, charged, metered, closing } = statement;
  return [
    { what: t().openingBalance, amount: opening },
    ...grants.map(({ created, reason, amount }) => ({
      what: t().toppedUp(formatDay(created), reason),
      amount,
    })),
    ...(models?.map((used) => ({ what: used.model, used, amount: -used.charge })) ?? [
      { what: t().allCalls, amount: -charged },
    ]),
    ...(metered === 0 ? [] : [{ what: t().metered, amount: metered }]),
    { what: t().closingBalance, amount: closing },
  ];
}

const figuresOf = ({ used }: Line): (number | undefined)[] => [
  used?.calls,
  used?.failed_calls,
  used?.prompt_tokens,
  used?.completion_tokens,
];

/** All amounts get the same number of decimals, so that they align and add up as shown. */
const decimalsOf = (lines: readonly Line[]): number =>
  Math.max(2, ...lines.map(({ amount }) => amount.toFixed(9).replace(/0+$/, '').split('.')[1]?.length ?? 0));

const createLineRow = (names: readonly string[], decimals: number) => (line: Line) => {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const figures = figuresOf(line).map((figure) => (figure === undefined ? '' : formatCount(figure)));
  // `|| 0` turns -0 into 0.
  return createFiguresRow([line.what], names, [
    ...figures,
    (line.amount || 0).toLocaleString('en-US', digits),
  ]);
};

const csvOf = (lines: readonly Line[]): string =>
  formatCsv(
    ['what', 'calls', 'failed_calls', 'prompt_tokens', 'completion_tokens', 'amount'],
    lines.map((line) => [line.what, ...figuresOf(line), line.amount || 0]),
  );
