/** Prints what a call costs, line by line. */
import { formatDecimal, formatYuan } from '../../../../shared/billing/amount.ts';
import { priceDecimals } from '../../../../shared/billing/price.ts';
import type { ChargeExplanation } from '../../../../shared/operate/prices/explain-charge.ts';
import type { ChargeList } from '../../../../shared/operate/prices/list-charges.ts';
import { priceWords } from '../../../../shared/operate/requests/price-words.ts';
import { productStep, shownProducts } from '../../../../shared/operate/requests/request-view.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** As in the table: a time is ISO 8601. */
export const withTime = ({ from, ...charge }: ChargeList['charges'][number]) => ({
  ...charge,
  ...(from !== undefined && { from: isoTime(from) }),
});

/** The sum of a call, line by line. */
export function printExplanation(
  { format, print, printJson, printTable, remark }: Terminal,
  model: string,
  { atMs, rule, price, above, products, cost, text, problems }: ChargeExplanation,
): void {
  const shown = shownProducts(products).map((product) => productStep(product));
  problems.forEach(remark);
  if (format === 'json')
    return printJson({
      model,
      at: isoTime(atMs),
      rule: rule ? withTime(rule) : null,
      above,
      sum: products.map(([kind, tokens, rate]) => ({
        kind,
        tokens,
        price: formatDecimal(rate, priceDecimals),
      })),
      total: formatYuan(cost),
      price: text,
    });
  const since = rule?.from === undefined ? '' : `, in force since ${isoTime(rule.from)}`;
  print(`${model} at ${isoTime(atMs)}${since}`);
  printTable([
    ['  price', priceWords(price)],
    ...(above > 0 ? [['  tier', `for more than ${above} input tokens`]] : []),
    ...shown.map(([what, words]) => [`  ${what}`, words]),
    ['  total', `${formatYuan(cost)} yuan, rounded once, half up, to 9 decimals`],
    ['  ledger', text],
  ]);
}
