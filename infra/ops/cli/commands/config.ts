/** The commands of `check`, `config` and `version`: the rows that operators edit, compared, checked, written, and their published versions. */
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
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
import { changes, shows, type CommandGroup, type CommandRun } from '../command.ts';
import {
  configWriting,
  printDifferences,
  problemWords,
  waiting,
  type WaitOption,
} from '../config-writing.ts';
import { parseCount, parseNumber, parsePast, type Moment } from '../option-values.ts';
import { textTable, type Column, type Terminal } from '../terminal.ts';
import { readTextFile, writeTextFile } from '../text-files.ts';
import { chargeTable } from './charge.ts';

const notes = `
The tables channels, charges, plans and settings are the configuration. Each edit of them is published as a numbered
version within seconds; \`version --help\` says how long they are kept. A file is {"channels": [...], "charges": [...], "plans": [...],
"settings": [...]}, as \`config export\` writes it; tables that it does not name are left alone.`;

export const checkCommand = shows('check', {
  does: 'say which rows have problems or warnings; exit code 1 when a row has a problem',
  lists: true,
  takes: {
    '--file <file>': 'the rows of this JSON file, put over those of the tables: before an edit',
    '--alone': 'the rows of the file alone; reads no table',
  },
  notes,
  examples: ['check', 'check --file rows.json'],
  async run({ ports, terminal }, { file, alone = false }: { file?: string; alone?: boolean }) {
    if (alone && file === undefined) throw usageFailure('--alone goes with --file');
    const checked =
      file === undefined
        ? await checkTables(ports)
        : await checkFile(ports, { name: file, text: await readTextFile(file) }, { alone });
    const { format, print } = terminal;
    const { rows, problems, warnings } = checked;
    const found = [...problems, ...warnings];
    const text = (): void => {
      for (const each of problems) print(`problem  ${nameOf(each)}: ${each.problem}`);
      for (const each of warnings) print(`warning  ${nameOf(each)}: ${each.warning}`);
    };
    terminal.printAs(checked, text, [['table', 'key', 'problem', 'warning'], found]);
    const summary = `${formatCount(rows, 'row')}, ${problems.length} with a problem, ${warnings.length} with a warning`;
    if (problems.length > 0) throw new Failure(summary);
    if (format === 'text') print(`${summary}.`);
  },
});

export const configCommands: CommandGroup = {
  name: 'config',
  does: 'the configuration as a whole, in a file',
  notes,
  commands: [
    shows('export', {
      does: 'write the four tables to one JSON file, for version control',
      takes: {
        '<file>': 'the file, which is written over',
        '--skip-bad': 'leave rows with a problem out',
      },
      examples: ['config export rows.json'],
      async run({ ports, terminal }, path: string, options: { skipBad?: boolean }) {
        const { text, rows, problems } = await exportRows(ports);
        problems.map(problemWords).forEach(terminal.remark);
        if (problems.length > 0 && !options.skipBad)
          throw new Failure('nothing was exported: mend these rows, or leave them out with --skip-bad');
        await writeTextFile(path, text);
        terminal.printAs({ file: path, rows }, () =>
          terminal.print(`${formatCount(rows, 'row is', 'rows are')} in ${path}.`),
        );
      },
    }),
    changes('apply', {
      does: 'make the tables hold the rows of a file; writes only what differs',
      takes: {
        '<file>': 'JSON, as `config export` writes it',
        '--prune': 'delete rows that the file does not have, of the tables that it names',
        ...waiting,
      },
      examples: ['config apply rows.json --dry-run'],
      async plan(run, path: string, options: WaitOption & { prune?: boolean }) {
        const file = { name: path, text: await readTextFile(path) };
        return configWriting(
          run,
          planRows(run.ports, await editByFile(run.ports, file, options.prune)),
          options,
        );
      },
    }),
  ],
};

export const versionCommands: CommandGroup = {
  name: 'version',
  does: 'published versions of the configuration: list, compare, roll back',
  notes: `
Each edit of channels, charges, plans or settings is published as a numbered version within seconds. All versions that served
within the last 7 days are kept, and at least the newest 50; of a flood of edits the newest 1,000.`,
  commands: [
    shows('list', {
      does: 'list the published versions, newest first',
      lists: true,
      takes: { '--limit <n>': ['versions at most', parseCount, 10] },
      examples: ['version list', 'version list --limit 100 --csv'],
      async run({ ports, terminal }, { limit }: { limit: number }) {
        const { served, versions, kept, edited } = await listVersions(ports, limit);
        const empty = 'nothing was published yet: the relay serves no model';
        terminal.printList(versions, { columns: versionColumns, empty });
        if (served !== undefined) terminal.print(`version ${served} is served.`);
        if (kept > versions.length) terminal.remark(`${kept} versions are kept: see --limit`);
        if (edited)
          terminal.remark(
            'The tables hold edits that are not published: within seconds they are, see `version diff`.',
          );
      },
    }),
    shows('show', {
      does: 'show what a version serves',
      takes: { '<version>': ['as `version list` lists them', parseNumber] },
      examples: ['version show 11'],
      run: async ({ ports, terminal }, number: number) =>
        printVersion(terminal, await showVersion(ports, number)),
    }),
    shows('diff', {
      does: 'what changed: from version A to B, from A to the newest, from the newest to the tables',
      lists: true,
      takes: {
        '[A]': ['number of a version', parseNumber],
        '[B]': ['number of a version (default: the newest)', parseNumber],
      },
      examples: ['version diff 11 12', 'version diff'],
      async run({ ports, terminal }, a: number | undefined, b: number | undefined) {
        const { from, to, differences } = await diffConfig(ports, { from: a, to: b });
        const attributes = differences.flatMap(({ attributes: all, ...row }) =>
          all.map(({ name, ...values }) => Object.assign({ attribute: name }, row, values)),
        );
        const text = (): void => {
          terminal.print(`from ${from} to ${to}:`);
          printDifferences(terminal, differences);
          if (differences.length === 0) terminal.print('no difference.');
        };
        const names = ['table', 'key', 'change', 'attribute', 'before', 'after'];
        terminal.printAs(differences, text, [names, attributes]);
      },
    }),
    changes('rollback', {
      does: 'write the rows of an earlier version back to the tables',
      takes: {
        '[version]': ['as `version list` lists them', parseNumber],
        '--to <time>': ['the version that served then', parsePast],
        ...waiting,
      },
      examples: ['version rollback 11 --dry-run', 'version rollback --to "yesterday 14:00"'],
      plan: async (run, number: number | undefined, options: WaitOption & { to?: Moment }) =>
        configWriting(run, await planBack(run, number, options.to?.(run.ports.clock.now())), options),
    }),
  ],
};

async function planBack(
  { ports, terminal }: CommandRun,
  number: number | undefined,
  to: number | undefined,
): Promise<ConfigPlan> {
  if ((number === undefined) === (to === undefined)) throw usageFailure('give either a version or --to');
  if (to === undefined) return planRollback(ports, number ?? 0);
  const { version, publishedAt } = await findVersionAt(ports, to);
  terminal.print(`version ${version}, published ${isoTime(publishedAt * 1000)}, served at ${isoTime(to)}`);
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
  print(`version ${version}, published ${isoTime(publishedAt * 1000)}`);
  print(`models: ${models.join(' ') || 'none'}`);
  const tables = [
    textTable(channelColumns, channels),
    chargeTable(charges),
    textTable(planColumns, plans),
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
