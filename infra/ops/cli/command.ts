/**
 * Defines commands: each parses its arguments and options, then prints a view, or shows a plan, asks for confirmation, carries it
 * out and reports. A command must never write before its questions are answered.
 */
import { Command, Option } from 'commander';
import type { OperatorPorts, RowWrite } from '../../../shared/operate/operator-ports.ts';
import { formatCount, Failure, type Plan } from '../../../shared/operate/plan.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { explainDenied } from '../access/denied.ts';
import type { PolicyName } from '../../access/policies.ts';
import { openSession, describeTarget, resolveTarget, type TargetOptions } from '../session/session.ts';
import { describeWrites, formatChanges } from '../fields/describe-changes.ts';
import { parseCount } from './option-values.ts';
import type { Format, ProcessContext, Terminal } from './terminal.ts';

export interface CommandRun {
  ports: OperatorPorts;
  terminal: Terminal;
}

/** The help text of an argument, its parser, and its default. */
type Parameter =
  | string
  | readonly [about: string, parse: (written: string, earlier: never) => unknown, usual?: unknown]
  | Option;

/** One of them is enough. The first allows least: an error names it. */
export type Policies = readonly [PolicyName, ...PolicyName[]];

/** By how a word is written: `<account>` and `[key]` are arguments, `--limit <n>` is an option. */
type ParameterTable = Readonly<Record<string, Parameter>>;

export interface CommandDescription {
  does: string;
  needs?: ParameterTable;
  takes?: ParameterTable;
  notes?: string;
  /** Without the program's name; piped input comes first. Default: the command's name alone. */
  examples?: readonly string[];
  policies?: Policies;
  lists?: boolean;
  optionPolicies?: Readonly<Record<string, Policies>>;
}

/** Resolves when a command that serves has ended; output continues until then. */
type CommandEnd = Promise<void | { ended: Promise<void> }>;

/** `Words`: arguments, options and the command, as commander hands them to an action. */
interface ViewInput<Words extends unknown[]> extends CommandDescription {
  run: (run: CommandRun, ...words: Words) => CommandEnd;
}

interface ChangeInput<Words extends unknown[], Made> extends CommandDescription {
  plan: (run: CommandRun, ...words: Words) => Promise<CommandWrite<Made>>;
}

export interface CommandDefinition extends CommandDescription {
  name: string;
  policies: Policies;
  isWriting?: true;
  work: (run: CommandRun, words: never, options: ApproveOptions) => CommandEnd;
}

export interface CommandGroup {
  name: string;
  does: string;
  notes?: string;
  commands: readonly CommandDefinition[];
}

export const viewers: Policies = ['support', 'operator'];
export const auditors: Policies = ['support', 'operator', 'repair', 'restore'];
export const operators: Policies = ['operator'];

export const defineView = <Words extends unknown[]>(
  name: string,
  { run: work, ...parts }: ViewInput<Words>,
): CommandDefinition => ({
  policies: viewers,
  ...parts,
  name,
  work: (run, words: Words) => work(run, ...words),
});

export const defineChange = <Words extends unknown[], Made>(
  name: string,
  { plan, ...parts }: ChangeInput<Words, Made>,
): CommandDefinition => ({
  policies: operators,
  ...parts,
  name,
  isWriting: true,
  work: async (run, words: Words, options) => perform(run.terminal, await plan(run, ...words), options),
});

function addParameters(command: Command, { does, needs = {}, takes = {}, notes }: CommandDescription): void {
  command.description(does);
  for (const [words, taken] of Object.entries(needs))
    command.addOption(optionOf(words, taken).makeOptionMandatory());
  for (const [words, taken] of Object.entries(takes)) {
    const [about, parse, usual] =
      typeof taken === 'string' ? [taken] : taken instanceof Option ? [''] : taken;
    if (words.startsWith('-')) command.addOption(optionOf(words, taken));
    else if (parse) command.argument(words, about, parse as (written: string) => unknown, usual);
    else command.argument(words, about);
  }
  if (notes !== undefined) command.addHelpText('after', notes);
}

function optionOf(words: string, taken: Parameter): Option {
  if (taken instanceof Option) return taken;
  const [about, parse, usual] = typeof taken === 'string' ? [taken] : taken;
  const option = new Option(words, about);
  if (parse) option.argParser(parse as (written: string, earlier: unknown) => unknown);
  return usual === undefined ? option : option.default(usual);
}

/** In the clone. Elsewhere, after `npm link` there, `relay-ops` alone. */
export const programName = 'npx --no relay-ops';

interface Host {
  process: ProcessContext;
  /** For what fails before a command runs. */
  terminal: Terminal;
  /** The command line. Groups that it does not name get no commands. Absent: all groups get theirs. */
  words?: readonly string[] | undefined;
}

/** Makes commander's commands. A group's help has two examples of each of its commands. */
export function addCommands(program: Command, given: CommandGroup | CommandDefinition, hosting: Host): void {
  if (!('commands' in given)) return addCommand(program, given, hosting);
  const group = program.command(given.name).description(given.does);
  // Creating all commands takes 3 ms, longer than many commands.
  if (hosting.words?.includes(given.name) === false) return;
  if (given.notes !== undefined) group.addHelpText('after', given.notes);
  for (const each of given.commands) addCommand(group, each, hosting);
  const examples = given.commands.flatMap((each) =>
    examplesOf(each, `${given.name} ${each.name}`).slice(0, 2),
  );
  group.addHelpText('after', formatExamples(examples));
  // There are so few verbs that all are named: the nearest to `create` would be `rotate`.
  group.configureOutput({
    outputError: (text, write) =>
      write(
        text.startsWith('error: unknown command')
          ? `${text}Commands of ${given.name}: ${given.commands.map(({ name }) => name).join(', ')}\n`
          : text,
      ),
  });
}

function addCommand(parent: Command, definition: CommandDefinition, { process, terminal }: Host): void {
  const command = parent.command(definition.name);
  if (definition.lists)
    command.addOption(new Option('--csv', 'print CSV with a header row').conflicts('json'));
  addParameters(command, definition);
  if (definition.isWriting)
    command.option('--dry-run', 'show the effect and write nothing').option('--yes', 'skip confirmation');
  command.addOption(new Option('--json', 'print the result as JSON'));
  if (!command.options.some(({ long }) => long === region.long)) command.addOption(region);
  command.addHelpText('after', formatExamples(examplesOf(definition, composeCommandName(command))));
  command.action(async (...words) => {
    const shown = terminal.in(formatOf(command));
    const policy = findPolicyEntry(command, definition);
    const ports = await openPorts(command, policy, shown, process.environment);
    const work = () => definition.work({ ports, terminal: shown }, words as never, command.opts());
    const read = (): string => `, ${formatCount(ports.traffic().requests, 'request')}`;
    const end = await shown.whileWorking(policy.name, work, read);
    await end?.ended;
  });
}

const examplesOf = ({ examples }: CommandDefinition, name: string): readonly string[] => examples ?? [name];

export const formatExamples = (examples: readonly string[]): string =>
  `\nExamples:\n${examples.map((example) => `  ${formatExample(example)}`).join('\n')}`;

function formatExample(example: string): string {
  const [command = '', ...before] = example.split(' | ').toReversed();
  return [...before.toReversed(), `${programName} ${command}`].join(' | ');
}

/** The words of a command, without the program, which has no parent. */
export const composeCommandName = (command: Command): string =>
  command.parent ? `${composeCommandName(command.parent)} ${command.name()}`.trim() : '';

/** The name of a command in the table of policies: with the option that was given, where that needs a policy of its own. */
function findPolicyEntry(command: Command, { policies, optionPolicies = {} }: CommandDefinition) {
  const name = composeCommandName(command);
  const given = command.options.find(
    (option) =>
      command.getOptionValueSource(option.attributeName()) === 'cli' && (option.long ?? '') in optionPolicies,
  );
  const long = given?.long ?? '';
  return given ? { name: `${name} ${long}`, policies: optionPolicies[long] ?? policies } : { name, policies };
}

/** Opens the tables that the options name, and prints the target before anything is read or written. */
async function openPorts(
  command: Command,
  { name, policies }: { name: string; policies: Policies },
  terminal: Terminal,
  environment: NodeJS.ProcessEnv,
): Promise<OperatorPorts> {
  const target = resolveTarget(targetOptionsOf(command), environment);
  const { ports, region: at } = await openSession(target, environment, (error, where) =>
    explainDenied(error, { command: name, needed: policies[0], stack: target.stack, region: where }),
  );
  terminal.print(describeTarget(target, at, environment));
  return ports;
}

/** Some commands have another `--region`, the upstream's: there the environment or the profile names that of the relay. */
const region = new Option('--region <name>', 'AWS region of the stack (default: from the AWS configuration)');

export const addTargetOptions = (program: Command): Command =>
  program
    .option('--stack <name>', 'deployed stack (default: relay)')
    .option('--stage <name>', 'deployed stack relay-NAME, from `npm run deploy -- --stage NAME`')
    .option('--profile <name>', 'AWS profile (default: AWS_PROFILE)');

function targetOptionsOf(command: Command): TargetOptions {
  const { region: named, ...options } = command.optsWithGlobals<TargetOptions>();
  return named !== undefined && command.options.includes(region) ? { ...options, region: named } : options;
}

function formatOf(command: Command): Format {
  const { json, csv } = command.opts<{ json?: boolean; csv?: boolean }>();
  return json ? 'json' : csv ? 'csv' : 'text';
}

const rowsMax = 50;

/** For lists that a program has whole. What it leaves open, people see so many of. */
export const limitRows = (rows: string) =>
  ({
    '--limit <n>': [`maximum number of ${rows} (default: ${rowsMax}; all with --json or --csv)`, parseCount],
  }) as const;

export const limitOf = (format: Format, limit: number | undefined): number =>
  limit ?? (format === 'text' ? rowsMax : Infinity);

export interface CommandWrite<Made> {
  plan: Plan<unknown>;
  /** Prints what of the plan its effect does not say, such as a table of differences. Text only. */
  preview?: (terminal: Terminal) => unknown;
  carryOut: () => Promise<Made>;
  print?: (terminal: Terminal, made: Made) => void;
  /** Further fields that `--json` prints, if anything was done. */
  facts?: (made: Made | undefined) => object;
}

/** Lets the parts of a literal agree about what is made. */
export const defineWrite = <Made>(writing: CommandWrite<Made>): CommandWrite<Made> => writing;

export const printOutcome = (
  { print, remark }: Terminal,
  { lines, warnings }: { lines: readonly string[]; warnings: readonly string[] },
): void => {
  lines.forEach(print);
  warnings.forEach(remark);
};

/** Prints the changes of customers and keys field by field. */
export const createPreview =
  ({ target }: Pick<OperatorPorts, 'target'>, { changes }: Plan<RowWrite>) =>
  ({ print }: Terminal): void =>
    formatChanges(describeWrites(changes, target)).forEach(print);

/** Defines a command that only writes rows. Prints the message and adds `facts` to JSON. */
export const defineRows = (
  { ports }: CommandRun,
  plan: Plan<RowWrite>,
  { message, facts }: { message: string; facts: object },
): CommandWrite<RowWrite[]> => ({
  plan,
  preview: createPreview(ports, plan),
  carryOut: () => carryOutWrites(ports, plan),
  print: ({ print }) => print(message),
  facts: () => facts,
});

async function perform<Made>(
  terminal: Terminal,
  { plan, preview, carryOut, print, facts = () => ({}) }: CommandWrite<Made>,
  options: ApproveOptions,
): Promise<void> {
  const { effect, warnings = [] } = plan;
  preview?.(terminal);
  if (plan.refusal === undefined) effect.forEach(terminal.print);
  terminal.warn(warnings);
  const done = await approve(terminal, plan, options);
  const made = done ? await carryOut() : undefined;
  if (terminal.format === 'json') terminal.printJson({ done, effect, warnings, ...facts(made) });
  else if (done) print?.(terminal, made as Made);
}

export interface ApproveOptions {
  dryRun?: boolean | undefined;
  yes?: boolean | undefined;
}

/**
 * Asks a plan's questions. Throws a Failure if the plan has a refusal or an answer is no.
 * @returns false if nothing is to be written: the plan has no changes, or --dry-run is set
 */
export async function approve(
  { print, confirm }: Pick<Terminal, 'print' | 'confirm'>,
  { changes, questions, refusal }: Plan<unknown>,
  { dryRun, yes }: ApproveOptions,
): Promise<boolean> {
  if (refusal !== undefined) throw new Failure(refusal);
  if (changes.length === 0) return false;
  if (dryRun) {
    print('Dry run: nothing was written.');
    return false;
  }
  for (const question of questions) await confirm(question, { yes });
  return true;
}
