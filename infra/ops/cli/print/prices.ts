/** Prints billing rules and the plans that create them. */
import type { ImportPlan } from '../../../../shared/operate/prices/import-charges.ts';
import type { NewCharge } from '../../../../shared/operate/prices/new-charges.ts';
import type { ChargeList } from '../../../../shared/operate/prices/list-charges.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

const modelsShown = 6;

export const chargeTable = (charges: NewCharge[]): string[][] => [
  ['ID', 'TYPE', 'INPUT', 'OUTPUT', 'MODELS'],
  ...charges.map((charge) => {
    const { id, type, models, output } = charge;
    const more = models.length > modelsShown ? ` and ${models.length - modelsShown} more` : '';
    return [
      String(id),
      type,
      type === 'token-billing' ? inputPrices(charge) : '-',
      type === 'non-billing' ? '-' : String(output),
      models.slice(0, modelsShown).join(' ') + more,
    ];
  }),
];

/** The price of input, with the prices of cached and written input that the rule has. */
function inputPrices({ input, cached_input, cache_write, cache_write_1h }: NewCharge): string {
  const cache = Object.entries({ cached: cached_input, write: cache_write, 'write 1h': cache_write_1h })
    .filter(([, price]) => price !== undefined)
    .map(([name, price]) => `${name} ${price}`);
  return cache.length > 0 ? `${input} (${cache.join(', ')})` : String(input);
}

export function printCharges(
  { print, printJson, printTable, remark }: Terminal,
  { charges, shadowed, problems }: ChargeList,
  { json }: JsonOption,
): void {
  if (json) printJson(charges);
  else if (charges.length === 0) print('no rules: every model is free');
  else printTable(chargeTable(charges));
  for (const { id, models } of shadowed) remark(`${id}: a rule with a lower id prices ${models.join(', ')}`);
  problems.forEach(remark);
}

export function printImportPlan(
  terminal: Terminal,
  { charges, effect, missing, suspicious }: ImportPlan,
): void {
  if (missing.length > 0) terminal.remark(`not in the list: ${missing.join(', ')}`);
  if (charges.length > 0) terminal.printTable(chargeTable(charges));
  effect.forEach(terminal.remark);
  if (suspicious !== undefined)
    terminal.warn([`more than a dollar per 1,000 tokens, is the list per token? ${suspicious} and others`]);
  if (charges.length === 0) terminal.print('nothing to write');
}
