/** The commands `check` and `config`: the rows that operators edit, and their published versions. */
import type { Command } from 'commander';
import { planApply, planRollback, type ConfigPlan } from '../../../shared/operate/config/apply-rows.ts';
import { checkFile, checkTables } from '../../../shared/operate/config/check-rows.ts';
import { diffConfig } from '../../../shared/operate/config/diff-rows.ts';
import { exportRows } from '../../../shared/operate/config/export-rows.ts';
import { listVersions, showVersion } from '../../../shared/operate/config/show-versions.ts';
import { awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import { Failure, usageFailure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { approve, type ApproveOptions } from './terminal/approve.ts';
import type { CommandContext } from './command/command-context.ts';
import {
  printChecked,
  printConfigPlan,
  printDiff,
  printPublished,
  printVersion,
  printVersions,
  problemWords,
} from './print/config.ts';
import { parseNumber, type JsonOption } from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';
import type { Terminal } from './terminal/terminal.ts';
import { readTextFile, writeTextFile } from './terminal/text-files.ts';

const examples = `
The tables channels, charges, plans and settings are the configuration. Each edit of them is published as a numbered
version within seconds; the last 50 are kept. A file is {"channels": [...], "charges": [...], "plans": [...],
"settings": [...]}, as \`config export\` writes it; tables that it does not name are left alone.

Examples:
  npm run ops -- check
  npm run ops -- check --file rows.json
  npm run ops -- config show
  npm run ops -- config diff 11 12
  npm run ops -- config export rows.json
  npm run ops -- config apply rows.json --dry-run
  npm run ops -- config rollback 11`;

export function addConfigCommands(program: Command, { terminal, onTables }: CommandContext): void {
  program
    .command('check')
    .description('say which rows have problems or warnings; exit code 1 when a row has a problem')
    .option('--file <file>', 'the rows of this JSON file, put over those of the tables: before an edit')
    .option('--alone', 'the rows of the file alone; reads no table')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(onTables((ports, options: CheckOptions) => check(terminal, ports, options)));

  const config = program
    .command('config')
    .description('the configuration as a whole: versions, differences, files, rollback')
    .addHelpText('after', examples);

  config
    .command('show')
    .description('list the published versions, or show what one of them serves')
    .option('--version <n>', 'what this version serves', parseNumber)
    .option('--limit <n>', 'versions at most', parseNumber, 10)
    .option('--json', 'print JSON')
    .action(onTables((ports, options: ShowOptions) => show(terminal, ports, options)));

  config
    .command('diff')
    .description(
      'show what changed: from version A to B, from A to the newest, or from the newest to the tables',
    )
    .argument('[A]', 'number of a version', parseNumber)
    .argument('[B]', 'number of a version (default: the newest)', parseNumber)
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, ...[from, to, options]: [number | undefined, number | undefined, JsonOption]) =>
        printDiff(terminal, await diffConfig(ports, { from, to }), options),
      ),
    );

  config
    .command('export')
    .description('write the four tables to one JSON file, for version control')
    .argument('<file>', 'the file, which is written over')
    .option('--skip-bad', 'leave rows with a problem out')
    .action(
      onTables(async (ports, path: string, options: { skipBad?: boolean }) => {
        const { text, rows, problems } = await exportRows(ports);
        problems.map(problemWords).forEach(terminal.remark);
        if (problems.length > 0 && !options.skipBad)
          throw new Failure('nothing was exported: mend these rows, or leave them out with --skip-bad');
        await writeTextFile(path, text);
        terminal.print(`${rows} rows are in ${path}.`);
      }),
    );

  writing(
    config.command('apply').description('make the tables hold the rows of a file; writes only what differs'),
  )
    .argument('<file>', 'JSON, as `config export` writes it')
    .option('--prune', 'delete rows that the file does not have, of the tables that it names')
    .action(
      onTables(async (ports, path: string, options: WriteOptions & { prune?: boolean }) => {
        const file = { name: path, text: await readTextFile(path) };
        await write(terminal, ports, { plan: await planApply(ports, file, options), options });
      }),
    );

  writing(config.command('rollback').description('write the rows of an earlier version back to the tables'))
    .argument('<version>', 'as `config show` lists them', parseNumber)
    .action(
      onTables(async (ports, version: number, options: WriteOptions) =>
        write(terminal, ports, { plan: await planRollback(ports, version), options }),
      ),
    );
}

interface CheckOptions extends JsonOption {
  file?: string;
  alone?: boolean;
}

async function check(terminal: Terminal, ports: OperatorPorts, options: CheckOptions): Promise<void> {
  const { file, alone = false } = options;
  if (alone && file === undefined) throw usageFailure('--alone goes with --file');
  const checked =
    file === undefined
      ? await checkTables(ports, countProgress(terminal, 'rows of customers read'))
      : await checkFile(ports, { name: file, text: await readTextFile(file) }, { alone });
  printChecked(terminal, checked, options);
}

interface ShowOptions extends JsonOption {
  version?: number;
  /** Number of versions to list. */
  limit: number;
}

async function show(terminal: Terminal, ports: OperatorPorts, options: ShowOptions): Promise<void> {
  const { version, limit } = options;
  if (version !== undefined) return printVersion(terminal, await showVersion(ports, version), options);
  const onProgress = countProgress(terminal, 'versions read');
  printVersions(terminal, await listVersions(ports, limit, onProgress), options);
}

interface WriteOptions extends ApproveOptions {
  /** Seconds. */
  wait: number;
}

async function write(
  terminal: Terminal,
  ports: OperatorPorts,
  { plan, options }: { plan: ConfigPlan; options: WriteOptions },
): Promise<void> {
  printConfigPlan(terminal, plan);
  if (!(await approve(terminal, plan, options))) return;
  const written = await carryOutWrites(ports, plan, countProgress(terminal, 'rows written'));
  terminal.print(`${written.length} rows are written.`);
  printPublished(terminal, await awaitPublished(ports, options.wait));
}

const writing = (command: Command): Command =>
  command
    .option('--dry-run', 'show the difference and write nothing')
    .option('--wait <seconds>', 'how long to wait until it is published', parseNumber, 30)
    .option('--yes', 'do not ask');
