/** The commands of `version`: published versions of the configuration. `config show`, `diff` and `rollback` do the same. */
import type { Command } from 'commander';
import { planRollback, type ConfigPlan } from '../../../shared/operate/config/apply-rows.ts';
import { diffConfig } from '../../../shared/operate/config/diff-rows.ts';
import { listVersions, showVersion } from '../../../shared/operate/config/show-versions.ts';
import { versionAt } from '../../../shared/operate/config/version-at.ts';
import { usageFailure } from '../../../shared/operate/operator-failure.ts';
import { isoTime } from '../../../shared/wire/iso-time.ts';
import type { CommandContext, Run } from './command/command-context.ts';
import { listing } from './command/common-options.ts';
import { printDiff, printVersion, printVersions } from './print/config.ts';
import { configWriting, waiting, type WaitOption } from './rows/config-writing.ts';
import { parseCount, parseMoment, parseNumber } from './terminal/option-values.ts';
import { countProgress } from './terminal/progress.ts';

const notes = `
Each edit of channels, charges, plans or settings is published as a numbered version within seconds. All versions that served
within the last 7 days are kept, and at least the newest 50; of a flood of edits the newest 1,000.`;

export function addVersionCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const version = program
    .command('version')
    .description('published versions of the configuration: list, compare, roll back')
    .addHelpText('after', notes);

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
