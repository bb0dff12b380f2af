/** The commands `check` and `config`: the rows that operators edit, and their published versions. */
import type { Command } from 'commander';
import { planApply, planRollback, type ConfigPlan } from '../../../../shared/operate/config/write-rows.ts';
import {
  checkFile,
  checkTables,
  diffConfig,
  exportRows,
} from '../../../../shared/operate/config/check-rows.ts';
import { listVersions, showVersion, versionAt } from '../../../../shared/operate/config/versions.ts';
import { Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import { type CommandContext, type Run, listing, countProgress } from '../command.ts';
import {
  configWriting,
  waiting,
  type WaitOption,
  printChecked,
  printDiff,
  printVersion,
  printVersions,
  problemWords,
} from '../print-config.ts';
import { parseCount, parseNumber, parseMoment } from '../option-values.ts';
import { readTextFile, writeTextFile } from '../text-files.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';

const notes = `
The tables channels, charges, plans and settings are the configuration. Each edit of them is published as a numbered
version within seconds; \`version --help\` says how long they are kept. A file is {"channels": [...], "charges": [...], "plans": [...],
"settings": [...]}, as \`config export\` writes it; tables that it does not name are left alone.`;

export function addConfigCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  listing(
    program
      .command('check')
      .description('say which rows have problems or warnings; exit code 1 when a row has a problem'),
  )
    .option('--file <file>', 'the rows of this JSON file, put over those of the tables: before an edit')
    .option('--alone', 'the rows of the file alone; reads no table')
    .addHelpText('after', notes)
    .action(onTables(check));

  const config = program
    .command('config')
    .description('the configuration as a whole: versions, differences, files, rollback')
    .addHelpText('after', notes);

  listing(config.command('show').description('list the published versions, or show what one of them serves'))
    .option('--version <n>', 'what this version serves', parseNumber)
    .option('--limit <n>', 'versions at most', parseCount, 10)
    .action(onTables(show));

  listing(
    config
      .command('diff')
      .description(
        'show what changed: from version A to B, from A to the newest, or from the newest to the tables',
      ),
  )
    .argument('[A]', 'number of a version', parseNumber)
    .argument('[B]', 'number of a version (default: the newest)', parseNumber)
    .action(
      onTables(async ({ ports, terminal }, from: number | undefined, to: number | undefined) =>
        printDiff(terminal, await diffConfig(ports, { from, to })),
      ),
    );

  config
    .command('export')
    .description('write the four tables to one JSON file, for version control')
    .argument('<file>', 'the file, which is written over')
    .option('--skip-bad', 'leave rows with a problem out')
    .action(onTables(exportFile));

  addWriting(config, context);
}

interface CheckOptions {
  file?: string;
  alone?: boolean;
}

async function check({ ports, terminal }: Run, { file, alone = false }: CheckOptions): Promise<void> {
  if (alone && file === undefined) throw usageFailure('--alone goes with --file');
  const checked =
    file === undefined
      ? await checkTables(ports, countProgress(terminal, 'rows of customers read'))
      : await checkFile(ports, { name: file, text: await readTextFile(file) }, { alone });
  printChecked(terminal, checked);
}

interface ShowOptions {
  version?: number;
  /** Number of versions to list. */
  limit: number;
}

async function show({ ports, terminal }: Run, { version, limit }: ShowOptions): Promise<void> {
  if (version !== undefined && terminal.format === 'csv')
    throw usageFailure('--csv lists versions: what one of them serves is printed with --json');
  if (version !== undefined) return printVersion(terminal, await showVersion(ports, version));
  const onProgress = countProgress(terminal, 'versions read');
  printVersions(terminal, await listVersions(ports, limit, onProgress));
}

async function exportFile({ ports, terminal }: Run, path: string, options: { skipBad?: boolean }) {
  const { text, rows, problems } = await exportRows(ports);
  problems.map(problemWords).forEach(terminal.remark);
  if (problems.length > 0 && !options.skipBad)
    throw new Failure('nothing was exported: mend these rows, or leave them out with --skip-bad');
  await writeTextFile(path, text);
  if (terminal.format === 'json') terminal.printJson({ file: path, rows });
  else terminal.print(`${rows} rows are in ${path}.`);
}

function addWriting(config: Command, { writing }: CommandContext): void {
  writing(
    waiting(
      config
        .command('apply')
        .description('make the tables hold the rows of a file; writes only what differs')
        .argument('<file>', 'JSON, as `config export` writes it')
        .option('--prune', 'delete rows that the file does not have, of the tables that it names'),
    ),
    async (run, path: string, options: WaitOption & { prune?: boolean }) => {
      const file = { name: path, text: await readTextFile(path) };
      return configWriting(run, await planApply(run.ports, file, options), options);
    },
  );

  writing(
    waiting(
      config
        .command('rollback')
        .description('write the rows of an earlier version back to the tables')
        .argument('<version>', 'as `config show` lists them', parseNumber),
    ),
    async (run, version: number, options: WaitOption) =>
      configWriting(run, await planRollback(run.ports, version), options),
  );
}

// The commands of `version`: published versions of the configuration. `config show`, `diff` and `rollback` do the same.

const versionCommandsNotes = `
Each edit of channels, charges, plans or settings is published as a numbered version within seconds. All versions that served
within the last 7 days are kept, and at least the newest 50; of a flood of edits the newest 1,000.`;

export function addVersionCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const version = program
    .command('version')
    .description('published versions of the configuration: list, compare, roll back')
    .addHelpText('after', versionCommandsNotes);

  listing(version.command('list').description('list the published versions, newest first'))
    .option('--limit <n>', 'versions at most', parseCount, 10)
    .action(
      onTables(async ({ ports, terminal }, { limit }: { limit: number }) =>
        printVersions(terminal, await listVersions(ports, limit, countProgress(terminal, 'versions read'))),
      ),
    );

  version
    .command('show')
    .description('show what a version serves')
    .argument('<version>', 'as `version list` lists them', parseNumber)
    .action(
      onTables(async ({ ports, terminal }, number: number) =>
        printVersion(terminal, await showVersion(ports, number)),
      ),
    );

  listing(
    version
      .command('diff')
      .description('what changed: from version A to B, from A to the newest, from the newest to the tables'),
  )
    .argument('[A]', 'number of a version', parseNumber)
    .argument('[B]', 'number of a version (default: the newest)', parseNumber)
    .action(
      onTables(async ({ ports, terminal }, from: number | undefined, to: number | undefined) =>
        printDiff(terminal, await diffConfig(ports, { from, to })),
      ),
    );

  context.writing(
    waiting(
      version
        .command('rollback')
        .description('write the rows of an earlier version back to the tables')
        .argument('[version]', 'as `version list` lists them', parseNumber)
        .option(
          '--to <time>',
          'the version that served then; without a zone: the time of this machine',
          parseMoment,
        ),
    ),
    async (run, number: number | undefined, options: RollbackOptions) =>
      configWriting(run, await rollback(run, number, options), options),
  );
}

type RollbackOptions = WaitOption & { to?: number };

async function rollback(
  { ports, terminal }: Run,
  number: number | undefined,
  { to }: RollbackOptions,
): Promise<ConfigPlan> {
  if ((number === undefined) === (to === undefined)) throw usageFailure('give either a version or --to');
  if (to === undefined) return planRollback(ports, number ?? 0);
  const { version, publishedAt } = await versionAt(ports, to);
  terminal.print(`version ${version}, published ${isoTime(publishedAt * 1000)}, served at ${isoTime(to)}`);
  return planRollback(ports, version);
}
