/** Commands that change one billing rule: now, or from a time on. */
import type { Command } from 'commander';
import { planAnnouncePrice, planNewRule } from '../../../../shared/operate/prices/announce-price.ts';
import { planSetRow } from '../../../../shared/operate/config/set-row.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
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
        .description('set attributes of a rule, or make one; shows the difference, asks, writes')
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
  addOff(charge, context, charges);
}
