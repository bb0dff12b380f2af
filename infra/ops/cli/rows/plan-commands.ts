/** The commands of `plan`: subscription levels, and what calls they cover. */
import type { Command } from 'commander';
import { listRows } from '../../../../shared/operate/config/show-row.ts';
import type { CommandContext } from '../command/command-context.ts';
import { listing } from '../command/common-options.ts';
import { parseCount } from '../terminal/option-values.ts';
import { printRows } from './print-rows.ts';
import { addOff, addSet, addShow, type RowGroup } from './row-commands.ts';

const plans: RowGroup = { table: 'plans', noun: 'a plan', keyOf: parseCount };

const notes = `
A plan covers calls of the accounts that hold it (\`account plan\`), while the setting subscription.enabled is true. Its items
are a list: '[{"id": "chat", "name": "Chat", "value": 100, "models": ["gpt-4o"]}]'; value: calls a month, -1 unlimited.`;

export function addPlanCommands(program: Command, context: CommandContext): void {
  const plan = program
    .command('plan')
    .description('subscription levels: what they cost and cover')
    .addHelpText('after', notes);
  listing(plan.command('list').description('list the plans and what they cover')).action(
    context.onTables(async ({ ports, terminal }) =>
      printRows(terminal, await listRows(ports, 'plans'), {
        keyName: 'level',
        columns: ['price', 'items'],
        empty: 'no plans: calls are paid from balances',
      }),
    ),
  );
  addShow(plan, context, plans);
  addSet(plan, context, plans);
  addOff(plan, context, plans);
}
