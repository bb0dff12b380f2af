/** Prints what a month costs. */
import type { CostLine, CostReport, Sum } from '../../../../shared/operate/cost/cost-report.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printCost(
  { print, printJson, printTable, remark }: Terminal,
  report: CostReport,
  { json }: JsonOption,
): void {
  report.remarks.forEach(remark);
  if (json) return printJson(report);
  const { traffic, idle, sums, workload } = report;
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
