/** Prints billing rules and the plans that create them. */
import { perMillion, type WrittenRates } from '../../../../shared/billing/price.ts';
import type { ImportPlan } from '../../../../shared/operate/prices/import-charges.ts';
import type { NewCharge } from '../../../../shared/operate/prices/new-charges.ts';
import type { ChargeList } from '../../../../shared/operate/prices/list-charges.ts';
import { withTime } from './price-sum.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';

const modelsShown = 6;

/** In yuan per million tokens. Dates stand in it only if a rule has one. */
export function chargeTable(charges: NewCharge[]): string[][] {
  const dated = charges.some(({ from }) => from !== undefined);
  const dateOf = (text: string): string[] => (dated ? [text] : []);
  return [
    ['ID', 'TYPE', ...dateOf('FROM'), 'INPUT/M', 'OUTPUT/M', 'MODELS'],
    ...charges.map((charge) => {
      const { id, type, from, models, output, tiers = [] } = charge;
      const more = models.length > modelsShown ? ` and ${models.length - modelsShown} more` : '';
      const outputs =
        type === 'times-billing'
          ? [`${output} per call`]
          : [perMillion(output), ...tiers.map((tier) => `above ${tier.above}: ${perMillion(tier.output)}`)];
      return [
        String(id),
        type,
        ...dateOf(from === undefined ? '-' : isoTime(from)),
        type === 'token-billing' ? inputPrices(charge) : '-',
        type === 'non-billing' ? '-' : outputs.join(', '),
        models.slice(0, modelsShown).join(' ') + more,
      ];
    }),
  ];
}

/** The price of input, with the prices of cached and written input that the rule has. */
function inputPrices({ tiers = [], ...base }: NewCharge): string {
  const higher = tiers.map((tier) => `, above ${tier.above}: ${rateWords(tier)}`);
  return rateWords(base) + higher.join('');
}

function rateWords({ input, cached_input, cache_write, cache_write_1h }: WrittenRates): string {
  const cache = Object.entries({ cached: cached_input, write: cache_write, 'write 1h': cache_write_1h })
    .filter(([, price]) => price !== undefined)
    .map(([name, price = 0]) => `${name} ${perMillion(price)}`);
  return cache.length > 0 ? `${perMillion(input)} (${cache.join(', ')})` : perMillion(input);
}

export function printCharges(terminal: Terminal, { charges, shadowed, problems }: ChargeList): void {
  terminal.printList({
    columns: chargeColumns,
    rows: charges.map(withTime),
    table: () => chargeTable(charges),
    empty: 'no rules: every model is free, unless the setting unpriced_models refuses it',
  });
  for (const { id, by, byId, models } of shadowed)
    terminal.remark(
      `${id}: ${byId ? 'a rule with a lower id' : `rule ${by}, with a later date,`} prices ${models.join(', ')}`,
    );
  problems.forEach(terminal.remark);
}

const chargeColumns =
  'id type from models input output cached_input cache_write cache_write_1h tiers max_output_tokens anonymous'.split(
    ' ',
  );

export function printImportPlan(terminal: Terminal, { charges, missing, suspicious }: ImportPlan): void {
  if (missing.length > 0) terminal.remark(`not in the list: ${missing.join(', ')}`);
  if (charges.length > 0) terminal.printTable(chargeTable(charges));
  if (suspicious !== undefined)
    terminal.warn([`more than a dollar per 1,000 tokens, is the list per token? ${suspicious} and others`]);
  if (charges.length === 0) terminal.print('nothing to write');
}

export const importFacts = ({ charges, missing }: ImportPlan) => ({ charges, missing });
