/** Commands that change one billing rule: now, or from a time on. */
import type { Command } from 'commander';
import {
  planAnnouncePrice,
  planNewRule,
  planReprice,
} from '../../../../shared/operate/prices/announce-price.ts';
import { planSetRow } from '../../../../shared/operate/config/set-row.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import { parsePrice, parsePricePair, type PricePair } from '../terminal/option-values.ts';
import type { CommandContext } from '../command/command-context.ts';
import { configWriting, waiting, type WaitOption } from './config-writing.ts';
import { attributesMean, parseAttributes } from './row-attributes.ts';
import { addOff, addShow, type RowGroup } from './row-commands.ts';

const charges: RowGroup = {
  table: 'charges',
  noun: 'a rule',
  keyOf(written) {
    if (/^-?\d+$/.test(written)) return Number(written);
    throw usageFailure(`${written} is no id of a rule: see \`charge list\``);
  },
};

export function addChargeEdits(charge: Command, context: CommandContext): void {
  addShow(charge, context, charges);
  context.writing(
    waiting(
      charge
        .command('set')
        .description('set attributes of a rule, or make one, as the table has them: prices per 1,000 tokens')
        .argument('<id>', 'as `charge list` shows it; new: the next free one')
        .argument('<attributes...>', attributesMean)
        .option('--from <time>', 'let a rule of its own begin then, and leave this one until then'),
    ),
    async (run, ...[written, attributes, options]: [string, string[], WaitOption & { from?: string }]) => {
      const { ports } = run;
      const { from } = options;
      const values = parseAttributes(attributes);
      if (from !== undefined && written !== 'new') {
        const id = Number(charges.keyOf(written));
        const { plan } = await planAnnouncePrice(ports, { id, from, attributes: values });
        return configWriting(run, plan, options);
      }
      const all = { ...values, ...(from !== undefined && { from }) };
      if (written === 'new') return configWriting(run, (await planNewRule(ports, all)).plan, options);
      const key = charges.keyOf(written);
      return configWriting(run, await planSetRow(ports, { table: 'charges', key, attributes: all }), options);
    },
  );
  context.writing(
    waiting(
      charge
        .command('price')
        .description('give one model another price; of a rule with other models it gets one of its own')
        .argument('<model>', 'public name')
        .argument('<in/out>', 'yuan per million tokens of input and output, such as 18/72', parsePricePair)
        .option('--cached <yuan>', 'per million tokens of input read from the cache', parsePrice)
        .option('--from <time>', 'when it begins (default: at once)'),
    ),
    async (
      run,
      ...[model, pair, options]: [string, PricePair, WaitOption & { from?: string; cached?: number }]
    ) => {
      const { from, cached } = options;
      const attributes = { ...pair, ...(cached !== undefined && { cached_input: cached }) };
      return configWriting(run, await planReprice(run.ports, { model, attributes, from }), options);
    },
  );
  addOff(charge, context, charges);
}
