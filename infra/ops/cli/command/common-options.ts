/** The options that every command has, defined here alone: what standard output holds, and where the run works. */
import { Option, type Command } from 'commander';
import type { TargetOptions } from '../../session/target.ts';
import { parseCount } from '../terminal/option-values.ts';
import type { Format } from '../terminal/terminal.ts';

/** Some commands have another `--region`, the upstream's: there the environment or the profile names that of the relay. */
const region = new Option(
  '--region <name>',
  'AWS region of the deployed stack (default: by the AWS configuration)',
);

export const addTargetOptions = (program: Command): Command =>
  program
    .option('--stack <name>', 'the deployed stack of this name (default: relay)')
    .option('--stage <name>', 'the deployed stack relay-NAME, as `npm run deploy -- --stage NAME` made it')
    .option('--profile <name>', 'profile of the AWS configuration (default: AWS_PROFILE)');

/** Gives every command that runs something `--json`, and `--region` unless it has one. */
export function addCommonOptions(program: Command): void {
  for (const command of program.commands) {
    if (command.commands.length > 0) addCommonOptions(command);
    else {
      command.addOption(new Option('--json', 'print one JSON value, and nothing else, on standard output'));
      if (!command.options.some(({ long }) => long === region.long)) command.addOption(region);
    }
  }
}

/** For commands whose result is a list. */
export const listing = (command: Command): Command =>
  command.addOption(new Option('--csv', 'print CSV with a header').conflicts('json'));

/** For lists that a program has whole. What it leaves open, people see so many of. */
export const limiting = (command: Command, rows: string): Command =>
  command.option(
    '--limit <n>',
    `${rows} at most (default: ${shownMax}; with --json or --csv all)`,
    parseCount,
  );

export const limitOf = (format: Format, limit: number | undefined): number =>
  limit ?? (format === 'text' ? shownMax : Infinity);

const shownMax = 50;

export function formatOf(command: Command): Format {
  const { json, csv } = command.opts<{ json?: boolean; csv?: boolean }>();
  return json ? 'json' : csv ? 'csv' : 'text';
}

export function targetOptionsOf(command: Command): TargetOptions {
  const { region: named, ...options } = command.optsWithGlobals<TargetOptions>();
  return named !== undefined && command.options.includes(region) ? { ...options, region: named } : options;
}
