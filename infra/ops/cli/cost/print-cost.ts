/** Prints what a month costs. */
import type { CostLine, CostReport, Sum } from '../../../../shared/operate/cost/cost-report.ts';
import { csvRows } from '../terminal/csv.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printCost(
  { format, print, printJson, printCsv, printTable, remark }: Terminal,
  report: CostReport,
): void {
  report.remarks.forEach(remark);
  if (format === 'json') return printJson(report);
  const { traffic, idle, sums, workload } = report;
  if (format === 'csv')
    return printCsv(csvRows(columns, [...lines('calls', traffic), ...lines('idle', idle)]));
  printTable([
    ['LINE', 'QUANTITY', 'UNIT', 'EACH', 'LIST', 'BILLED'],
    ...traffic.map(rowOf),
    sumRow('calls', sums.traffic),
    ...idle.map(rowOf),
    sumRow('without a call', sums.idle),
    sumRow('month', sums.month),
    sumRow('a million calls', sums.perMillion),
  ]);
  print(`US dollars, list prices in ${workload.region}, without tax and without the upstreams' own bill`);
}

const columns = ['part', 'what', 'quantity', 'unit', 'usd_each', 'list', 'billed'];
const lines = (part: string, all: CostLine[]): object[] =>
  all.map(({ usdEach, ...line }) => ({ part, ...line, usd_each: decimal(usdEach) }));

const rowOf = ({ what, quantity, unit, usdEach, list, billed }: CostLine): string[] => [
  what,
  shownQuantity(quantity),
  unit,
  decimal(usdEach),
  dollars(list),
  dollars(billed),
];

const sumRow = (what: string, { list, billed }: Sum): string[] => [
  `= ${what}`,
  '',
  '',
  '',
  dollars(list),
  dollars(billed),
];

const shownQuantity = (quantity: number): string =>
  quantity >= 100 ? String(Math.round(quantity)) : String(Number(quantity.toPrecision(3)));

/** Without an exponent. */
const decimal = (usd: number): string => usd.toFixed(12).replace(/\.?0+$/, '');

/** Whole cents. */
const dollars = (usd: number): string => usd.toFixed(2);
