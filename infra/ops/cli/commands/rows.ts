/** The commands `show`, `set` and `off` of a row of any table of the configuration; and `plan` and `setting`, which have nothing more. */
import { keyAttributes, type ConfigTable } from '../../../../shared/config/rows/read-table.ts';
import {
  planSetRow,
  planRemoveRow,
  listRows,
  showRow,
  type ShownRow,
} from '../../../../shared/operate/config/write-rows.ts';
import { Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { changes, shows, type CommandDefinition, type CommandGroup } from '../command.ts';
import { configWriting, waiting, type WaitOption } from '../config-writing.ts';
import { parseCount } from '../option-values.ts';
import type { Column } from '../terminal.ts';

export interface RowGroup {
  table: ConfigTable;
  noun: string;
  keyOf: (written: string) => string | number;
  examples: Readonly<Record<'show' | 'set' | 'off', readonly string[]>>;
}

export const showCommand = ({ table, noun, keyOf, examples }: RowGroup): CommandDefinition =>
  shows('show', {
    does: `show all attributes of ${noun} as they are written, and who wrote it`,
    takes: { [`<${keyAttributes[table]}>`]: 'as `list` shows it' },
    examples: examples.show,
    run: async ({ ports, terminal }, written: string) => {
      const keyName = keyAttributes[table];
      const shown = await showRow(ports, { table, key: keyOf(written) });
      if (shown.problem !== undefined) throw new Failure(`${shown.key} is not used: ${shown.problem}`);
      if (terminal.format === 'json') return terminal.printJson(rowJson(keyName, shown));
      const { key, row = {}, warning, by, at } = shown;
      terminal.printTable([
        [keyName, String(key)],
        ...Object.entries(row)
          .filter(([name]) => name !== keyName)
          .map(([name, value]) => [`  ${name}`, attributeText(value)]),
      ]);
      if (by !== undefined) terminal.print(`written by ${by}${at === undefined ? '' : ` at ${at}`}`);
      if (warning !== undefined) terminal.warn([warning]);
    },
  });

export const attributesMean =
  'NAME=VALUE each, named as in docs/tables.md; a value is JSON or else text, models may be a,b; NAME= removes it';

export const setCommand = ({ table, noun, keyOf, examples }: RowGroup): CommandDefinition =>
  changes('set', {
    does: `set attributes of ${noun}, or make it; shows the difference, asks, writes`,
    takes: {
      [`<${keyAttributes[table]}>`]: 'as `list` shows it, or a new one',
      '<attributes...>': attributesMean,
      ...waiting,
    },
    examples: examples.set,
    plan: async (run, written: string, attributes: string[], options: WaitOption) => {
      const row = { table, key: keyOf(written), attributes: parseAttributes(attributes) };
      return configWriting(run, await planSetRow(run.ports, row), options);
    },
  });

/** For tables whose rows have no switch: the row is deleted, and comes back by a rollback. */
export const offCommand = ({ table, noun, keyOf, examples }: RowGroup, verb = 'off'): CommandDefinition =>
  changes(verb, {
    does: `delete ${noun}; \`version rollback\` brings it back`,
    takes: { [`<${keyAttributes[table]}>`]: 'as `list` shows it', ...waiting },
    examples: examples.off,
    plan: async (run, written: string, options: WaitOption) =>
      configWriting(run, await planRemoveRow(run.ports, { table, key: keyOf(written) }), options),
  });

/** Attributes whose text is a list of names. */
const lists = new Set(['models']);

/** `input=0.018`, `models=gpt-4o,gpt-4o-mini`, `from=`. */
export function parseAttributes(written: readonly string[]): RawRow {
  if (written.length === 0) throw usageFailure('give one attribute at least, such as input=0.018');
  return Object.fromEntries(
    written.map((pair) => {
      const [, name, value] = /^([a-z][a-z0-9_]*)=(.*)$/s.exec(pair) ?? [];
      if (name === undefined || value === undefined)
        throw usageFailure('an attribute is written NAME=VALUE, such as input=0.018');
      return [name, valueOf(name, value)];
    }),
  );
}

function valueOf(name: string, value: string): unknown {
  if (value === '') return undefined;
  const read = jsonOrText(value);
  return lists.has(name) && typeof read === 'string' ? read.split(',').map((item) => item.trim()) : read;
}

/** Text that is no JSON is meant as it stands. */
function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

const rowJson = (keyName: string, { key, row, problem, warning, by, at }: ShownRow): object => ({
  [keyName]: key,
  ...row,
  ...(problem !== undefined && { problem }),
  ...(warning !== undefined && { warning }),
  ...(by !== undefined && { written_by: by }),
  ...(at !== undefined && { written_at: at }),
});

const attributeText = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : JSON.stringify(value);

interface Shape {
  does: string;
  /** Attributes that are shown. */
  attributes: readonly string[];
  empty: string;
}

function listCommand(table: ConfigTable, { does, attributes, empty }: Shape): CommandDefinition {
  const keyName = keyAttributes[table];
  const columns: Column<ShownRow>[] = [
    [keyName, keyName.toUpperCase(), ({ key }) => key],
    ...attributes.map((name): Column<ShownRow> => [
      name,
      name.toUpperCase(),
      ({ row }) => row?.[name],
      ({ row }) => (row ? attributeText(row[name]) : '(not shown)'),
    ]),
    ['problem', '', ({ problem }) => problem],
    ['warning', '', ({ warning }) => warning],
    ['written_by', '', ({ by }) => by],
    ['written_at', '', ({ at }) => at],
  ];
  return shows('list', {
    does,
    lists: true,
    async run({ ports, terminal }) {
      const rows = await listRows(ports, table);
      terminal.printList(rows, { columns, empty, json: (row) => rowJson(keyName, row) });
      if (terminal.format !== 'text') return;
      for (const { key, problem, warning } of rows) {
        if (problem !== undefined) terminal.remark(`${key} is not used: ${problem}`);
        if (warning !== undefined) terminal.remark(`${key}: ${warning}`);
      }
    },
  });
}

const plans: RowGroup = {
  table: 'plans',
  noun: 'a plan',
  keyOf: parseCount,
  examples: {
    show: ['plan show 1'],
    set: ['plan set 1 price=30', `plan set 1 'items=[{"id": "chat", "value": 100, "models": ["gpt-4o"]}]'`],
    off: ['plan off 1'],
  },
};

/** Subscription levels, and what calls they cover. */
export const planCommands: CommandGroup = {
  name: 'plan',
  does: 'subscription levels: what they cost and cover',
  notes: `
A plan covers calls of the accounts that hold it (\`account plan\`), while the setting subscription.enabled is true. Its items
are a list: '[{"id": "chat", "name": "Chat", "value": 100, "models": ["gpt-4o"]}]'; value: calls a month, -1 unlimited.`,
  commands: [
    listCommand('plans', {
      does: 'list the plans and what they cover',
      attributes: ['price', 'items'],
      empty: 'no plans: calls are paid from balances',
    }),
    showCommand(plans),
    setCommand(plans),
    offCommand(plans),
  ],
};

const settings: RowGroup = {
  table: 'settings',
  noun: 'a setting',
  keyOf: (written) => written,
  examples: { show: ['setting show limits'], set: [], off: ['setting unset contact'] },
};

export const settingCommands: CommandGroup = {
  name: 'setting',
  does: 'settings of the whole relay; docs/tables.md has all of them',
  notes: '\nA setting without a row has its default. `unset` deletes the row.',
  commands: [
    listCommand('settings', {
      does: 'list the settings that have a row',
      attributes: ['value'],
      empty: 'no settings: all have their defaults',
    }),
    showCommand(settings),
    changes('set', {
      does: 'set a setting; shows the difference, asks, writes',
      takes: { '<name>': 'as in docs/tables.md', '<value>': 'JSON, or else text', ...waiting },
      examples: [
        'setting set unpriced_models refuse',
        `setting set limits '{"account_rpm": 600, "account_concurrency": 50}'`,
      ],
      plan: async (run, name: string, value: string, options: WaitOption) => {
        const attributes = { value: jsonOrText(value) };
        const plan = await planSetRow(run.ports, { table: 'settings', key: name, attributes });
        return configWriting(run, plan, options);
      },
    }),
    offCommand(settings, 'unset'),
  ],
};
