/** Adds `show`, `set` and `off` to groups of tables whose rows are the configuration. */
import type { Command } from 'commander';
import {
  planSetRow,
  planRemoveRow,
  showRow,
  type ShownRow,
  listRows,
} from '../../../../shared/operate/config/write-rows.ts';
import { keyAttributes, type ConfigTable } from '../../../../shared/config/rows/read-table.ts';
import { type CommandContext, listing } from '../command.ts';
import { configWriting, waiting, type WaitOption } from '../print-config.ts';
import { attributesMean, parseAttributes, parseCount, jsonOrText } from '../option-values.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import type { Terminal } from '../terminal.ts';

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

// Prints rows of the configuration as they are written, and what is known against them.

interface Shape {
  /** The key attribute. */
  keyName: string;
  /** Attributes that lists show. */
  columns: readonly string[];
  empty: string;
}

const textOf = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : JSON.stringify(value);

const rowJson = (keyName: string, { key, row, problem, warning, by, at }: ShownRow): object => ({
  [keyName]: key,
  ...row,
  ...(problem !== undefined && { problem }),
  ...(warning !== undefined && { warning }),
  ...(by !== undefined && { written_by: by }),
  ...(at !== undefined && { written_at: at }),
});

function printRows(terminal: Terminal, rows: ShownRow[], { keyName, columns, empty }: Shape): void {
  terminal.printList({
    columns: [keyName, ...columns, 'problem', 'warning', 'written_by', 'written_at'],
    rows: rows.map((each) => rowJson(keyName, each)),
    table: () => [
      [keyName, ...columns].map((name) => name.toUpperCase()),
      ...rows.map(({ key, row }) => [
        String(key),
        ...columns.map((name) => (row ? textOf(row[name]) : '(not shown)')),
      ]),
    ],
    empty,
  });
  if (terminal.format !== 'text') return;
  for (const { key, problem, warning } of rows) {
    if (problem !== undefined) terminal.remark(`${key} is not used: ${problem}`);
    if (warning !== undefined) terminal.remark(`${key}: ${warning}`);
  }
}

/** Throws a Failure for a row that is not used: none of its values is shown, as one may be a secret. */
function printRow(terminal: Terminal, keyName: string, shown: ShownRow): void {
  if (shown.problem !== undefined) throw new Failure(`${shown.key} is not used: ${shown.problem}`);
  if (terminal.format === 'json') return terminal.printJson(rowJson(keyName, shown));
  const { key, row = {}, warning, by, at } = shown;
  terminal.printTable([
    [keyName, String(key)],
    ...Object.entries(row)
      .filter(([name]) => name !== keyName)
      .map(([name, value]) => [`  ${name}`, textOf(value)]),
  ]);
  if (by !== undefined) terminal.print(`written by ${by}${at === undefined ? '' : ` at ${at}`}`);
  if (warning !== undefined) terminal.warn([warning]);
}

// The commands of `plan`: subscription levels, and what calls they cover.

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

// The commands of `setting`.

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
