import type { Command } from 'commander';
import { checkRows } from '../../../shared/operate/config/check-rows.ts';
import { applyFile, rollBack } from '../../../shared/operate/config/apply-rows.ts';
import { diffConfig } from '../../../shared/operate/config/diff-rows.ts';
import { exportConfig } from '../../../shared/operate/config/export-rows.ts';
import { showConfig } from '../../../shared/operate/config/show-versions.ts';
import { parseNumber } from './terminal/option-values.ts';
import type { CommandContext } from './command-context.ts';
import { openPrintingSession } from '../session/session.ts';

const examples = `
The tables channels, charges, plans and settings are the configuration. Each edit of them is published as a numbered
version within seconds; the last 50 are kept. A file is {"channels": [...], "charges": [...], "plans": [...],
"settings": [...]}, as \`config export\` writes it; tables that it does not name are left alone.

Examples:
  npm run ops -- check
  npm run ops -- check --file rows.json
  npm run ops -- config show
  npm run ops -- config diff 11 12
  npm run ops -- config export relay.json
  npm run ops -- config apply relay.json --dry-run
  npm run ops -- config rollback 11`;

export function addConfigCommands(program: Command, _context: CommandContext): void {
  program
    .command('check')
    .description('say which rows have problems or warnings; exit code 1 when a row has a problem')
    .option('--file <file>', 'the rows of this JSON file, put over those of the tables: before an edit')
    .option('--alone', 'the rows of the file alone; reads no table')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (_options, command: Command) =>
      checkRows(await openPrintingSession(command), command.opts()),
    );

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
    .action(async (_options, command: Command) =>
      showConfig(await openPrintingSession(command), command.opts()),
    );

  config
    .command('diff')
    .description(
      'show what changed: from version A to B, from A to the newest, or from the newest to the tables',
    )
    .argument('[A]', 'number of a version', parseNumber)
    .argument('[B]', 'number of a version (default: the newest)', parseNumber)
    .option('--json', 'print JSON')
    .action(async (from: number | undefined, to: number | undefined, _options, command: Command) =>
      diffConfig(await openPrintingSession(command), from, to),
    );

  config
    .command('export')
    .description('write the four tables to one JSON file, for version control')
    .argument('<file>', 'the file, which is written over')
    .option('--skip-bad', 'leave rows with a problem out')
    .action(async (file: string, _options, command: Command) =>
      exportConfig(await openPrintingSession(command), file, command.opts()),
    );

  writing(
    config.command('apply').description('make the tables hold the rows of a file; writes only what differs'),
  )
    .argument('<file>', 'JSON, as `config export` writes it')
    .option('--prune', 'delete rows that the file does not have, of the tables that it names')
    .action(async (file: string, _options, command: Command) =>
      applyFile(await openPrintingSession(command), file, command.opts()),
    );

  writing(config.command('rollback').description('write the rows of an earlier version back to the tables'))
    .argument('<version>', 'as `config show` lists them', parseNumber)
    .action(async (version: number, _options, command: Command) =>
      rollBack(await openPrintingSession(command), version, command.opts()),
    );
}

const writing = (command: Command): Command =>
  command
    .option('--dry-run', 'show the difference and write nothing')
    .option('--wait <seconds>', 'how long to wait until it is published', parseNumber, 30)
    .option('--yes', 'do not ask');
