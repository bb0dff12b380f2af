/** The commands of `check`, `config` and `version`: the rows that operators edit, compared, checked, written, and their published versions. */
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
import { addGroupWarnings } from '../../../../shared/operate/config/group-warnings.ts';
import { planRollback, planRows, type ConfigPlan } from '../../../../shared/operate/config/write-rows.ts';
import {
  checkFile,
  checkTables,
  diffConfig,
  exportRows,
} from '../../../../shared/operate/config/check-rows.ts';
import { editByFile, nameOf } from '../../../../shared/operate/config/row-changes.ts';
import {
  listVersions,
  showVersion,
  findVersionAt,
  type ListedVersions,
  type ShownVersion,
} from '../../../../shared/operate/config/versions.ts';
import { formatCount, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { defineChange, defineView, type CommandGroup, type CommandRun } from '../command.ts';
import { defineSave, describeProblem, waitOption, type WaitOption } from '../config-writing.ts';
import { parseCount, parseNumber, parsePast, type Moment } from '../option-values.ts';
import { formatTable, type Column, type Terminal } from '../terminal.ts';
import { readTextFile, writeTextFile } from '../text-files.ts';
import { describeChanges, formatChanges } from '../../fields/describe-changes.ts';
import { formatChargeTable } from './charge.ts';

const notes = `
The configuration is the tables channels, charges, plans and settings. Every edit is published as a numbered version
within seconds. A file is {"channels": [...], "charges": [...], "plans": [...], "settings": [...]}, as written by
\`config export\`; tables missing from the file are left unchanged.`;

export const checkCommand = defineView('check', {
  does: 'validate all rows; exits 1 if a row is invalid',
  lists: true,
  takes: {
    '--file <file>': 'validate the tables with the rows of this JSON file applied',
    '--alone': 'validate only the file; read no tables',
  },
  notes,
  examples: ['check', 'check --file rows.json'],
  async run({ ports, terminal }, { file, alone = false }: { file?: string; alone?: boolean }) {
    if (alone && file === undefined) throw usageFailure('--alone requires --file');
    const checked =
      file === undefined
        ? await checkTables(ports)
        : await checkFile(ports, { name: file, text: await readTextFile(file) }, { alone });
    const { format, print } = terminal;
    const { rows, problems, warnings } = checked;
    const found = [...problems, ...warnings];
    const text = (): void => {
      for (const each of problems) print(`error    ${nameOf(each)}: ${each.problem}`);
      for (const each of warnings) print(`warning  ${nameOf(each)}: ${each.warning}`);
    };
    terminal.printAs(checked, text, [['table', 'key', 'problem', 'warning'], found]);
    const summary = `${formatCount(rows, 'row')} checked: ${formatCount(problems.length, 'error')}, ${formatCount(warnings.length, 'warning')}`;
    if (problems.length > 0) throw new Failure(summary);
    if (format === 'text') print(`${summary}.`);
  },
});

export const configCommands: CommandGroup = {
  name: 'config',
  does: 'export and apply the whole configuration as a file',
  notes,
  commands: [
    defineView('export', {
      does: 'export the configuration to a JSON file, for version control',
      takes: {
        '<file>': 'output file; overwritten if it exists',
        '--skip-bad': 'leave out invalid rows',
      },
      examples: ['config export rows.json'],
      async run({ ports, terminal }, path: string, options: { skipBad?: boolean }) {
        const { text, rows, problems } = await exportRows(ports);
        problems.map(describeProblem).forEach(terminal.remark);
        if (problems.length > 0 && !options.skipBad)
          throw new Failure('nothing was exported: fix these rows, or leave them out with --skip-bad');
        await writeTextFile(path, text);
        terminal.printAs({ file: path, rows }, () =>
          terminal.print(`Exported ${formatCount(rows, 'row')} to ${path}.`),
        );
      },
    }),
    defineChange('apply', {
      does: 'apply the rows of a file to the tables; rows not in the file are left unchanged',
      takes: {
        '<file>': 'JSON file from `config export`',
        '--prune': 'also delete rows that are missing from the file, in the tables it contains',
        ...waitOption,
      },
      examples: ['config apply rows.json --dry-run'],
      async plan(run, path: string, options: WaitOption & { prune?: boolean }) {
        const file = { name: path, text: await readTextFile(path) };
        return defineSave(
          run,
          await addGroupWarnings(
            run.ports,
            planRows(run.ports, await editByFile(run.ports, file, options.prune)),
          ),
          options,
        );
      },
    }),
  ],
};

export const versionCommands: CommandGroup = {
  name: 'version',
  does: 'list, compare and roll back published versions of the configuration',
  notes: `
Every edit of channels, charges, plans or settings is published as a numbered version within seconds. The relay keeps
versions for 7 days after their last use, at least the newest 50 and at most the newest 1,000.`,
  commands: [
    defineView('list', {
      does: 'list published versions, newest first',
      lists: true,
      takes: { '--limit <n>': ['maximum number of versions', parseCount, 10] },
      examples: ['version list', 'version list --limit 100 --csv'],
      async run({ ports, terminal }, { limit }: { limit: number }) {
        const { served, versions, kept, edited } = await listVersions(ports, limit);
        const empty = 'No version has been published yet: the relay serves no models.';
        terminal.printList(versions, { columns: versionColumns, empty });
        if (served !== undefined) terminal.print(`Current version: ${served}`);
        if (kept > versions.length)
          terminal.remark(`${kept} versions are available: use --limit to see more`);
        if (edited) terminal.remark('The tables have unpublished edits: see `version diff`.');
      },
    }),
    defineView('show', {
      does: 'show the channels, prices, plans and settings of a version',
      takes: { '<version>': ['version number from `version list`', parseNumber] },
      examples: ['version show 11'],
      run: async ({ ports, terminal }, number: number) =>
        printVersion(terminal, await showVersion(ports, number)),
    }),
    defineView('diff', {
      does: 'compare two versions; without B, A with the newest; without both, the newest with the tables',
      lists: true,
      takes: {
        '[A]': ['version number', parseNumber],
        '[B]': ['version number (default: the newest)', parseNumber],
      },
      examples: ['version diff 11 12', 'version diff'],
      async run({ ports, terminal }, a: number | undefined, b: number | undefined) {
        const { from, to, differences, edit } = await diffConfig(ports, { from: a, to: b });
        const attributes = differences.flatMap(({ attributes: all, ...row }) =>
          all.map(({ name, ...values }) => Object.assign({ attribute: name }, row, values)),
        );
        const text = (): void => {
          terminal.print(`Changes from ${from} to ${to}:`);
          formatChanges(describeChanges(differences, ports.target, edit)).forEach(terminal.print);
          if (differences.length === 0) terminal.print('No differences.');
        };
        const names = ['table', 'key', 'change', 'attribute', 'before', 'after'];
        terminal.printAs(differences, text, [names, attributes]);
      },
    }),
    defineChange('rollback', {
      does: 'restore the rows of an earlier version',
      takes: {
        '[version]': ['version number from `version list`', parseNumber],
        '--to <time>': ['the version in use at this time', parsePast],
        ...waitOption,
      },
      examples: ['version rollback 11 --dry-run', 'version rollback --to "yesterday 14:00"'],
      plan: async (run, number: number | undefined, options: WaitOption & { to?: Moment }) =>
        defineSave(run, await planBack(run, number, options.to?.(run.ports.clock.now())), options),
    }),
  ],
};

async function planBack(
  { ports, terminal }: CommandRun,
  number: number | undefined,
  to: number | undefined,
): Promise<ConfigPlan> {
  if ((number === undefined) === (to === undefined)) throw usageFailure('specify either a version or --to');
  if (to === undefined) return planRollback(ports, number ?? 0);
  const { version, publishedAt } = await findVersionAt(ports, to);
  terminal.print(
    `Version ${version}, published ${isoTime(publishedAt * 1000)}, was in use at ${isoTime(to)}.`,
  );
  return planRollback(ports, version);
}

const versionColumns: Column<ListedVersions['versions'][number]>[] = [
  ['version', 'VERSION', ({ version }) => version],
  [
    'published_at',
    'PUBLISHED',
    ({ publishedAt }) => publishedAt,
    ({ publishedAt }) => isoTime(publishedAt * 1000),
  ],
  ['', 'CHANNELS', ({ rows }) => rows.channels],
  ['', 'CHARGES', ({ rows }) => rows.charges],
  ['', 'PLANS', ({ rows }) => rows.plans],
  ['', 'SETTINGS', ({ rows }) => rows.settings],
  ['by', 'BY', ({ by = [] }) => by],
  ['changed', 'CHANGED', ({ changed = [] }) => changed],
  ['format', '', ({ format }) => format],
  ['digest', '', ({ digest }) => digest],
  ['rows', '', ({ rows }) => rows],
];

function printVersion(
  { format, print, printJson, printTable }: Terminal,
  { snapshot, settings }: ShownVersion,
): void {
  if (format === 'json') return printJson(snapshot);
  const { version, publishedAt, channels, charges, plans, models } = snapshot;
  print(`Version ${version}, published ${isoTime(publishedAt * 1000)}`);
  print(`Models: ${models.join(' ') || 'none'}`);
  const tables = [
    formatTable(channelColumns, channels),
    formatChargeTable(charges),
    formatTable(planColumns, plans),
    [['SETTING', 'VALUE'], ...settings.map(({ name, value }) => [name, JSON.stringify(value)])],
  ];
  for (const table of tables) {
    print('');
    printTable(table);
  }
}

const planColumns: Column<Snapshot['plans'][number]>[] = [
  ['', 'PLAN', ({ level }) => level],
  ['', 'PRICE', ({ price }) => price],
  [
    '',
    'ENTRIES',
    ({ items }) => items.map(({ id, value }) => `${id} ${value < 0 ? 'unlimited' : value}`).join(', '),
  ],
];

const channelColumns: Column<Snapshot['channels'][number]>[] = [
  ['', 'CHANNEL', ({ id }) => id],
  ['', 'TYPE', ({ type }) => type],
  ['', 'PRIORITY', ({ priority }) => priority],
  ['', 'WEIGHT', ({ weight }) => weight],
  ['', 'ENDPOINT', ({ endpoint }) => endpoint],
  ['', 'SECRET', ({ secret }) => [secret ?? []].flat()],
  ['', 'MODELS', ({ models }) => models],
];
