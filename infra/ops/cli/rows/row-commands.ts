/** Adds `show`, `set` and `off` to groups of tables whose rows are the configuration. */
import type { Command } from 'commander';
import { planSetRow, planRemoveRow } from '../../../../shared/operate/config/set-row.ts';
import { showRow } from '../../../../shared/operate/config/show-row.ts';
import { keyAttributes } from '../../../../shared/config/config-rows.ts';
import type { ConfigTable } from '../../../../shared/config/validation-result.ts';
import type { CommandContext } from '../command/command-context.ts';
import { configWriting, waiting, type WaitOption } from './config-writing.ts';
import { printRow } from './print-rows.ts';
import { attributesMean, parseAttributes } from './row-attributes.ts';

export interface RowGroup {
  table: ConfigTable;
  /** Such as `a rule`. */
  noun: string;
  /** Reads the key that is typed. */
  keyOf: (written: string) => string | number;
}

export function addShow(
  group: Command,
  { onTables }: CommandContext,
  { table, noun, keyOf }: RowGroup,
): void {
  const keyName = keyAttributes[table];
  group
    .command('show')
    .description(`show all attributes of ${noun} as they are written, and who wrote it`)
    .argument(`<${keyName}>`, 'as `list` shows it')
    .action(
      onTables(async ({ ports, terminal }, written: string) =>
        printRow(terminal, keyName, await showRow(ports, { table, key: keyOf(written) })),
      ),
    );
}

export function addSet(group: Command, { writing }: CommandContext, { table, noun, keyOf }: RowGroup): void {
  writing(
    waiting(
      group
        .command('set')
        .description(`set attributes of ${noun}, or make it; shows the difference, asks, writes`)
        .argument(`<${keyAttributes[table]}>`, 'as `list` shows it, or a new one')
        .argument('<attributes...>', attributesMean),
    ),
    async (run, ...[written, attributes, options]: [string, string[], WaitOption]) => {
      const row = { table, key: keyOf(written), attributes: parseAttributes(attributes) };
      return configWriting(run, await planSetRow(run.ports, row), options);
    },
  );
}

/** For tables whose rows have no switch: the row is deleted, and comes back by a rollback. */
export function addOff(
  group: Command,
  { writing }: CommandContext,
  { table, noun, keyOf, verb = 'off' }: RowGroup & { verb?: string },
): void {
  writing(
    waiting(
      group
        .command(verb)
        .description(`delete ${noun}; \`version rollback\` brings it back`)
        .argument(`<${keyAttributes[table]}>`, 'as `list` shows it'),
    ),
    async (run, written: string, options: WaitOption) =>
      configWriting(run, await planRemoveRow(run.ports, { table, key: keyOf(written) }), options),
  );
}
