/** The commands of `setting`. */
import type { Command } from 'commander';
import { planSetRow } from '../../../../shared/operate/config/set-row.ts';
import { listRows } from '../../../../shared/operate/config/show-row.ts';
import type { CommandContext } from '../command/command-context.ts';
import { listing } from '../command/common-options.ts';
import { configWriting, waiting, type WaitOption } from './config-writing.ts';
import { printRows } from './print-rows.ts';
import { jsonOrText } from './row-attributes.ts';
import { addOff, addShow, type RowGroup } from './row-commands.ts';

const settings: RowGroup = { table: 'settings', noun: 'a setting', keyOf: (written) => written };

export function addSettingCommands(program: Command, context: CommandContext): void {
  const setting = program
    .command('setting')
    .description('settings of the whole relay; docs/tables.md has all of them')
    .addHelpText('after', '\nA setting without a row has its default. `unset` deletes the row.');
  listing(setting.command('list').description('list the settings that have a row')).action(
    context.onTables(async ({ ports, terminal }) =>
      printRows(terminal, await listRows(ports, 'settings'), {
        keyName: 'name',
        columns: ['value'],
        empty: 'no settings: all have their defaults',
      }),
    ),
  );
  addShow(setting, context, settings);
  context.writing(
    waiting(
      setting
        .command('set')
        .description('set a setting; shows the difference, asks, writes')
        .argument('<name>', 'as in docs/tables.md')
        .argument('<value>', 'JSON, or else text'),
    ),
    async (run, ...[name, value, options]: [string, string, WaitOption]) => {
      const attributes = { value: jsonOrText(value) };
      const plan = await planSetRow(run.ports, { table: 'settings', key: name, attributes });
      return configWriting(run, plan, options);
    },
  );
  addOff(setting, context, { ...settings, verb: 'unset' });
}
