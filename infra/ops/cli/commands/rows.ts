/**
 * The commands `new`, `show`, `set` and `off` of a row of any table of the configuration, and attributes as all commands take them;
 * and `plan` and `setting`, which have nothing more.
 */
import { keyAttributes, type ConfigTable } from '../../../../shared/config/rows/read-table.ts';
import {
  planSetRow,
  planRemoveRow,
  listRows,
  showRow,
  type ShownRow,
} from '../../../../shared/operate/config/write-rows.ts';
import { Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts, RawRow } from '../../../../shared/operate/operator-ports.ts';
import { writeTypedRow, type RowField } from '../../fields/row-field.ts';
import { defineChange, defineView, type CommandDefinition, type CommandGroup } from '../command.ts';
import { defineSave, waitOption, type WaitOption } from '../config-writing.ts';
import { parseCount } from '../option-values.ts';
import type { Column } from '../terminal.ts';
import { parseJson } from '../../../../shared/wire/json.ts';
import { findNearestName } from '../../../../shared/wire/nearest-name.ts';

export interface RowGroup {
  table: ConfigTable;
  noun: string;
  keyOf: (written: string) => string | number;
  examples: Readonly<Partial<Record<'new' | 'show' | 'set' | 'off', readonly string[]>>>;
  /** Attributes without a field are written as the table has them. */
  fields?: (ports: Pick<OperatorPorts, 'target'>) => readonly RowField[];
  defaults?: RawRow;
  notes?: string;
}

/** Commands are singular: `charge list` lists the table `charges`. */
const listHint = (table: ConfigTable): string => `from \`${table.slice(0, -1)} list\``;

export const defineShow = ({ table, noun, keyOf, examples }: RowGroup): CommandDefinition =>
  defineView('show', {
    does: `show a ${noun} and who changed it last`,
    takes: { [`<${keyAttributes[table]}>`]: listHint(table) },
    ...(examples.show && { examples: examples.show }),
    run: async ({ ports, terminal }, written: string) => {
      const keyName = keyAttributes[table];
      const shown = await showRow(ports, { table, key: keyOf(written) });
      if (shown.problem !== undefined) throw new Failure(`${shown.key} is invalid: ${shown.problem}`);
      if (terminal.format === 'json') return terminal.printJson(formatRowJson(keyName, shown));
      const { key, row = {}, warning, by, at } = shown;
      terminal.printTable([
        [keyName, String(key)],
        ...Object.entries(row)
          .filter(([name]) => name !== keyName)
          .map(([name, value]) => [`  ${name}`, formatAttribute(value)]),
      ]);
      if (by !== undefined) terminal.print(`Changed by ${by}${at === undefined ? '' : ` at ${at}`}`);
      if (warning !== undefined) terminal.warn([warning]);
    },
  });

export const attributesAbout = 'NAME=VALUE; NAME= removes it; lists are a,b; other values are JSON or text';

/** The help text about the attributes of a command. */
export const formatHelp = (fields: readonly RowField[]): string =>
  ['', 'Attributes (docs/tables.md documents all of them):', ...fields.map(formatFieldHelp)].join('\n');

function formatFieldHelp({ name, label, help = '', choices = [] }: RowField): string {
  const values = choices.map(([value]) => value).filter((value) => value !== '');
  const title = label.toLowerCase().replaceAll(' ', '_') === name ? [] : [label];
  const means = [...title, ...(values.length === 0 ? [] : [values.join(', ')])].join(': ');
  return `  ${name.padEnd(22)} ${[means, help].filter((text) => text !== '').join('. ')}`;
}

const defineSaveCommand = (verb: 'new' | 'set', does: string, group: RowGroup): CommandDefinition => {
  const { table, keyOf, examples, fields = () => [], defaults: begun, notes } = group;
  const isNew = verb === 'new';
  return defineChange(verb, {
    does,
    takes: {
      [`<${keyAttributes[table]}>`]: isNew ? 'new and unused' : listHint(table),
      '<attributes...>': attributesAbout,
      ...waitOption,
    },
    examples: examples[verb] ?? [],
    ...(notes !== undefined && { notes }),
    plan: async (run, written: string, words: string[], options: WaitOption) => {
      const attributes = { ...(isNew && begun), ...parseAttributes(words, fields(run.ports)) };
      const row = { table, key: keyOf(written), attributes, isNew };
      return defineSave(run, await planSetRow(run.ports, row), options);
    },
  });
};

export const defineNew = (group: RowGroup): CommandDefinition =>
  defineSaveCommand('new', `create a ${group.noun}`, group);

export const defineSet = (group: RowGroup): CommandDefinition =>
  defineSaveCommand('set', `change a ${group.noun}`, group);

/** For tables whose rows have no switch: the row is deleted, and comes back by a rollback. */
export const defineOff = ({ table, noun, keyOf, examples }: RowGroup): CommandDefinition =>
  defineChange('off', {
    does: `delete a ${noun}; undo with \`version rollback\``,
    takes: { [`<${keyAttributes[table]}>`]: listHint(table), ...waitOption },
    examples: examples.off ?? [],
    plan: async (run, written: string, options: WaitOption) =>
      defineSave(run, await planRemoveRow(run.ports, { table, key: keyOf(written) }), options),
  });

/**
 * `rpm=60`, `budget.amount=20`, `models=a,b`, `from=`: as a form reads what is typed into its fields. A list or a map in JSON, and what has
 * no field, is meant as the table has it. An empty list of entries removes the attribute, because no schema accepts one.
 * @param row what parts of an attribute are put into
 */
export function parseAttributes(
  written: readonly string[],
  fields: readonly RowField[] = [],
  row: RawRow = {},
): RawRow {
  if (written.length === 0) throw usageFailure('specify at least one attribute, for example models=a,b');
  const texts = new Map<string, string>();
  const others: RawRow = {};
  const names = fields.map((field) => field.name);
  for (const pair of written) {
    const [, name, value] = /^([a-z][a-z0-9_.]*)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw usageFailure('write attributes as NAME=VALUE, for example models=a,b');
    if (isEmptyList(fields, name, value)) texts.set(name, '');
    else if (!/^[[{]/.test(value) && names.includes(name)) texts.set(name, value);
    else if (name.includes('.') && !names.includes(name)) throw explainUnknownField(name, names);
    else others[name] = value === '' ? undefined : parseWholeValue(name, value, names);
  }
  return { ...writeTypedRow(fields, texts, row), ...others };
}

const isEmptyList = (fields: readonly RowField[], name: string, value: string): boolean =>
  /^[[{]\s*[\]}]$/.test(value) && fields.some((field) => field.name === name && field.entries);

/** Attributes that are maps are written by their members. */
function parseWholeValue(name: string, value: string, names: readonly string[]): unknown {
  const parts = names.filter((each) => each.startsWith(`${name}.`));
  if (parts.length > 0 && !/^[[{]/.test(value))
    throw usageFailure(`${name} is set by its fields: ${parts.map((part) => `${part}=...`).join(', ')}`);
  return parseJsonOrText(value);
}

/** No attribute of a row has a point in its name. */
function explainUnknownField(name: string, names: readonly string[]): Failure {
  const nearest = findNearestName(name, names);
  const meant = nearest === undefined ? 'or write the whole attribute as JSON' : `did you mean ${nearest}?`;
  return usageFailure(`${name}: unknown attribute (${meant})`);
}

/** Text that is no JSON is meant as it stands. */
function parseJsonOrText(value: string): unknown {
  const json = parseJson(value);
  return json === undefined ? value : json;
}

const formatRowJson = (keyName: string, { key, row, problem, warning, by, at }: ShownRow): object => ({
  [keyName]: key,
  ...row,
  ...(problem !== undefined && { problem }),
  ...(warning !== undefined && { warning }),
  ...(by !== undefined && { written_by: by }),
  ...(at !== undefined && { written_at: at }),
});

const formatAttribute = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : JSON.stringify(value);

interface ListInput {
  does: string;
  attributes: readonly string[];
  empty: string;
}

function defineList(table: ConfigTable, { does, attributes, empty }: ListInput): CommandDefinition {
  const keyName = keyAttributes[table];
  const columns: Column<ShownRow>[] = [
    [keyName, keyName.toUpperCase(), ({ key }) => key],
    ...attributes.map((name): Column<ShownRow> => [
      name,
      name.toUpperCase(),
      ({ row }) => row?.[name],
      ({ row }) => (row ? formatAttribute(row[name]) : '(hidden)'),
    ]),
    ['problem', '', ({ problem }) => problem],
    ['warning', '', ({ warning }) => warning],
    ['written_by', '', ({ by }) => by],
    ['written_at', '', ({ at }) => at],
  ];
  return defineView('list', {
    does,
    lists: true,
    async run({ ports, terminal }) {
      const rows = await listRows(ports, table);
      terminal.printList(rows, { columns, empty, json: (row) => formatRowJson(keyName, row) });
      if (terminal.format !== 'text') return;
      for (const { key, problem, warning } of rows) {
        if (problem !== undefined) terminal.remark(`${key} is invalid: ${problem}`);
        if (warning !== undefined) terminal.remark(`${key}: ${warning}`);
      }
    },
  });
}

const plans: RowGroup = {
  table: 'plans',
  noun: 'plan',
  keyOf: parseCount,
  examples: {
    new: [`plan new 1 price=30 'items=[{"id": "chat", "value": 100, "models": ["gpt-4o"]}]'`],
    show: ['plan show 1'],
    set: ['plan set 1 price=30'],
    off: ['plan off 1'],
  },
};

/** Subscription levels, and what calls they cover. */
export const planCommands: CommandGroup = {
  name: 'plan',
  does: 'manage subscription plans',
  notes: `
A plan covers calls of its subscribers (\`customer set acme plan.level=1\`) while the setting subscription.enabled is true.
Its items are a list, for example '[{"id": "chat", "name": "Chat", "value": 100, "models": ["gpt-4o"]}]'. value is the
number of calls a month; -1 is unlimited.`,
  commands: [
    defineList('plans', {
      does: 'list plans and what they cover',
      attributes: ['price', 'items'],
      empty: 'No plans: all calls are paid from balances.',
    }),
    defineNew(plans),
    defineShow(plans),
    defineSet(plans),
    defineOff(plans),
  ],
};

const settings: RowGroup = {
  table: 'settings',
  noun: 'setting',
  keyOf: (written) => written,
  examples: { show: ['setting show limits'], off: ['setting off contact'] },
};

export const settingCommands: CommandGroup = {
  name: 'setting',
  does: 'manage relay-wide settings',
  notes:
    '\ndocs/tables.md documents all settings. A setting without a row has its default; `off` deletes the row.',
  commands: [
    defineList('settings', {
      does: 'list settings that differ from the default',
      attributes: ['value'],
      empty: 'No settings: all have their defaults.',
    }),
    defineShow(settings),
    defineChange('set', {
      does: 'change a setting',
      takes: {
        '<name>': 'setting name from docs/tables.md',
        '<value>': 'JSON or text',
        ...waitOption,
      },
      examples: [
        'setting set unpriced_models refuse',
        `setting set limits '{"account_rpm": 600, "account_concurrency": 50}'`,
      ],
      plan: async (run, name: string, value: string, options: WaitOption) => {
        const attributes = { value: parseJsonOrText(value) };
        const plan = await planSetRow(run.ports, { table: 'settings', key: name, attributes });
        return defineSave(run, plan, options);
      },
    }),
    defineOff(settings),
  ],
};
