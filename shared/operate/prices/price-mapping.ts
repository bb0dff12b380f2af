/**
 * Reads a vendor's own price list by a mapping: which column has which price, in which unit and currency. Operators enter it once, and it is
 * saved in the setting `price_lists` under the vendor's name.
 */
import { formatDecimal, parseDecimal } from '../../billing/money.ts';
import { plainValue } from '../../config/rows/read-row.ts';
import type { PriceMapping } from '../../config/setting-rows.ts';
import { asRecord } from '../../wire/json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';
import { dollarDecimals, perToken, rateNames, type PriceSource } from './price-list.ts';

/** The columns of a list. The first three are required. */
export const mappedColumns = ['model', ...rateNames];

const fieldNames: Readonly<Record<string, string>> = perToken;

/** True if the columns are not those of LiteLLM. */
export const needsMapping = (list: PriceSource): list is string[][] =>
  typeof list !== 'string' && !(list[0] ?? []).some((name) => name.toLowerCase() === perToken.input);

/** Returns the saved mapping of the vendor, or else one whose columns are all in the list. */
export async function findMapping(
  { tables }: OperatorPorts,
  [head = []]: string[][],
  vendor: string,
): Promise<(PriceMapping & { vendor: string }) | undefined> {
  const row = await tables.get('settings', 'price_lists');
  const known = asRecord(plainValue(row?.['value'])) as Record<string, PriceMapping>;
  const names = Object.keys(known).toSorted();
  const fits = (name: string): boolean =>
    Object.values(known[name]?.columns ?? {}).every((column) => head.includes(column));
  const found = [vendor, ...names].find((name) => names.includes(name) && fits(name));
  return found === undefined ? undefined : { ...(known[found] as PriceMapping), vendor: found };
}

const cacheColumn = /cache|缓存/i;
const hints: Readonly<Record<string, RegExp>> = {
  model: /model|模型|型号/i,
  input: /input|prompt|输入/i,
  output: /output|completion|输出/i,
  cached_input: /^(?!.*(?:write|写|创建))/i,
};

/** Uses the names of the columns and the currency signs of the amounts. */
export function guessMapping(list: string[][]): PriceMapping {
  const [head = []] = list;
  const columns = mappedColumns.flatMap((name) => {
    const found = head.find(
      (column) => hints[name]?.test(column) && cacheColumn.test(column) === (name === 'cached_input'),
    );
    return found === undefined ? [] : [[name, found] as const];
  });
  const isYuan = /[¥￥元]|CNY|RMB/i.test(list.slice(0, 20).flat().join(' '));
  return { columns: Object.fromEntries(columns), per: 1_000_000, currency: isYuan ? 'cny' : 'usd' };
}

/** A price per thousand tokens that is read as one per million would be 1,000 times too low. */
const unitWords = [
  [1_000_000, /百万|million|1,?000,?000|\b1?m(?:tok\w*)?\b/i],
  [1000, /千|thousand|\b1,?000\b|\b1?k(?:tok\w*)?\b/i],
] as const;
const signs = [
  ['usd', /\$|USD|美元/i],
  ['cny', /[¥￥元]|CNY|RMB/i],
] as const;

const findMention = <Said>(all: readonly (readonly [Said, RegExp])[], words: string): Said | undefined =>
  all.find(([, pattern]) => pattern.test(words))?.[0];

/** Converts a vendor's list to the columns and the unit that `readPriceList` reads. Throws a usage failure for invalid prices. */
export function mapPriceColumns(
  [head = [], ...rows]: string[][],
  { columns, per, currency }: PriceMapping,
): string[][] {
  const titles = head.map((each) => each.trim());
  const problems = mappedColumns.flatMap((name, at) => {
    const { [name]: title } = columns;
    const found = titles.filter((each) => each === title).length;
    if (title === undefined) return at < 3 ? [`set ${name}`] : [];
    return found === 1 ? [] : [found === 0 ? `no column ${title}` : `two columns are named ${title}`];
  });
  if (problems.length > 0)
    throw usageFailure(`--columns: ${problems.join(', ')}; the list has ${head.join(', ')}`);
  const names = mappedColumns.filter((name) => columns[name] !== undefined);
  const places = names.map((name) => titles.indexOf(columns[name] ?? ''));
  const seen = new Set<string>();
  const decimals = dollarDecimals - Math.round(Math.log10(per));
  return [
    names.map((name) => fieldNames[name] ?? name),
    ...rows.map((row, line) => {
      if (row.length !== head.length)
        throw usageFailure(
          `line ${line + 2}: ${row.length} cells, but the header has ${head.length}: is the line cut off?`,
        );
      return names.map((name, at) => {
        const cell = (row[places[at] ?? -1] ?? '').trim();
        if (name === 'model' && cell !== '' && seen.has(cell))
          throw usageFailure(`line ${line + 2}: ${cell} is in the list twice: leave one line of it`);
        if (name === 'model') seen.add(cell);
        if (name === 'model' || /^[-–—/]?$/.test(cell)) return name === 'model' ? cell : '';
        if (/^(免费|free)$/i.test(cell)) return '0';
        // `¥2.00`, `2元` and `2 元/百万tokens`. A comma is refused, because it could separate decimals or thousands.
        const [, number = ''] =
          /^[¥￥$]?\s*(\d+(?:\.\d+)?)(?:\s*(?:元|CNY|RMB|USD))?\s*(?:\/.*)?$/iu.exec(cell) ?? [];
        const price = parseDecimal(number, decimals);
        if (price === undefined)
          throw usageFailure(
            `line ${line + 2}, column ${columns[name]}: "${cell.slice(0, 20)}" is not a price; write ${/^\d+,(?!\d{3}$)\d+$/.test(cell) ? cell.replace(',', '.') : 'a number such as 4.5'}`,
          );
        const words = `${columns[name]} ${cell}`;
        if (
          (findMention(unitWords, words) ?? per) !== per ||
          (findMention(signs, words) ?? currency) !== currency
        )
          throw usageFailure(
            `line ${line + 2}: "${words}" is not ${currency} per ${per}: choose the unit and the currency of the list`,
          );
        return formatDecimal(price, dollarDecimals);
      });
    }),
  ];
}
