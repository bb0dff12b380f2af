/** How commands run: in the form that the options name, on the tables of the target, and asked before they write. */
import { type Command, Option } from 'commander';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { explainDenied, commandPolicies } from '../access/policies.ts';
import { openSession, describeTarget, resolveTarget, type TargetOptions } from '../session/session.ts';
import { type ProcessContext, openTerminal, type Terminal, type Format } from './terminal.ts';
import { parseCount } from './option-values.ts';
import { type Plan, Failure } from '../../../shared/operate/plan.ts';

/** What a command works with. */
export interface Run {
  ports: OperatorPorts;
  terminal: Terminal;
}

/** `Words`: the parameters of commander's actions: arguments, options, the command. */
type Action<Words extends unknown[]> = (...words: Words) => Promise<void>;

type Planner<Words extends unknown[], Made> = (run: Run, ...words: Words) => Promise<Writing<Made>>;

export interface CommandContext {
  /** Before the options are known: for what fails before a command runs. */
  readonly terminal: Terminal;
  /** For commands that need no tables. */
  readonly onTerminal: <Words extends unknown[]>(
    run: (terminal: Terminal, ...words: Words) => void,
  ) => Action<Words>;
  /** Opens the tables that the options name, and prints the target before anything is read or written. */
  readonly onTables: <Words extends unknown[]>(
    run: (run: Run, ...words: Words) => Promise<void>,
  ) => Action<Words>;
  /** Makes a command one that writes: adds `--dry-run` and `--yes`, and does what `plan` returns. */
  readonly writing: <Words extends unknown[], Made>(command: Command, plan: Planner<Words, Made>) => Command;
}

export function commandContext(context: ProcessContext): CommandContext {
  const terminal = openTerminal(context);
  const onTables: CommandContext['onTables'] =
    (run) =>
    async (...words) => {
      const command = words.at(-1) as Command;
      const shown = terminal.in(formatOf(command));
      const ports = await openPorts(command, shown, context.environment);
      await whileWorking(shown, commandName(command), () => run({ ports, terminal: shown }, ...words));
    };
  return {
    terminal,
    onTables,
    onTerminal:
      (run) =>
      async (...words) =>
        run(terminal.in(formatOf(words.at(-1) as Command)), ...words),
    writing: <Words extends unknown[], Made>(command: Command, plan: Planner<Words, Made>) =>
      command
        .option('--dry-run', 'show what would be done and write nothing')
        .option('--yes', 'do not ask')
        .action(
          onTables(async (run, ...words: Words) =>
            perform(run.terminal, await plan(run, ...words), command.opts<ApproveOptions>()),
          ),
        ),
  };
}

async function openPorts(
  command: Command,
  terminal: Terminal,
  environment: NodeJS.ProcessEnv,
): Promise<OperatorPorts> {
  const target = resolveTarget(targetOptionsOf(command), environment);
  const named = { command: commandName(command), stack: target.stack };
  const { ports, region } = await openSession(target, environment, (error, region) =>
    explainDenied(error, { ...named, region }),
  );
  terminal.print(describeTarget(target, region, environment));
  return ports;
}

// The options that every command has, defined here alone: what standard output holds, and where the run works.

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

function formatOf(command: Command): Format {
  const { json, csv } = command.opts<{ json?: boolean; csv?: boolean }>();
  return json ? 'json' : csv ? 'csv' : 'text';
}

function targetOptionsOf(command: Command): TargetOptions {
  const { region: named, ...options } = command.optsWithGlobals<TargetOptions>();
  return named !== undefined && command.options.includes(region) ? { ...options, region: named } : options;
}

// What every command that writes does, defined once: its plan is shown, its questions are asked, then it is carried out
// and its result printed. Must never write before the answers.

export interface Writing<Made> {
  plan: Plan<unknown>;
  /** Prints what of the plan its effect does not say, such as a table of differences. Text only. */
  preview?: (terminal: Terminal) => void;
  carryOut: () => Promise<Made>;
  /** Prints what was done, as text. */
  print?: (terminal: Terminal, made: Made) => void;
  /** What `--json` prints beside `done` and `effect`. Undefined: nothing was done. */
  facts?: (made: Made | undefined) => object;
}

/** Lets the parts of a literal agree about what is made. */
export const writes = <Made>(writing: Writing<Made>): Writing<Made> => writing;

/** Shows, asks, carries out, prints. */
async function perform<Made>(
  terminal: Terminal,
  { plan, preview, carryOut, print, facts = () => ({}) }: Writing<Made>,
  options: ApproveOptions,
): Promise<void> {
  const { effect, warnings = [] } = plan;
  preview?.(terminal);
  if (plan.refusal === undefined) effect.forEach(terminal.print);
  terminal.warn(warnings);
  const isJson = terminal.format === 'json';
  const shown = (done: boolean, made?: Made) => ({ done, effect, warnings, ...facts(made) });
  if (!(await approve(terminal, plan, options))) {
    if (isJson) terminal.printJson(shown(false));
    return;
  }
  const made = await carryOut();
  if (isJson) terminal.printJson(shown(true, made));
  else print?.(terminal, made);
}

// Names commands as the table of policies and the pages do.

/** The words of a command, with the option that was given if that needs a policy of its own. */
export function commandName(command: Command): string {
  const words: string[] = [];
  // The program itself has no parent.
  for (let each = command; each.parent; each = each.parent) words.unshift(each.name());
  const name = words.join(' ');
  const given = command.options.find(
    (option) =>
      command.getOptionValueSource(option.attributeName()) === 'cli' &&
      `${name} ${option.long}` in commandPolicies,
  );
  return given ? `${name} ${given.long}` : name;
}

/** Every command that runs something, by its words. */
export const commandNames = (program: Command): string[] =>
  program.commands.flatMap((command) =>
    command.commands.length === 0 ? [commandName(command)] : commandNames(command),
  );

// Asks a plan's questions before its writes. Writes nothing itself.

export interface ApproveOptions {
  dryRun?: boolean | undefined;
  yes?: boolean | undefined;
}

/**
 * Throws a Failure if the plan has a refusal or an answer is no.
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
    print('nothing was written: --dry-run');
    return false;
  }
  for (const question of questions) await confirm(question, { yes });
  return true;
}

// Says every 2 seconds that a command still works, as long as nothing else was printed and nobody is asked.

const everyMs = 2000;

/** @param what is worked at, such as the command's words */
export async function whileWorking<Result>(
  terminal: Terminal,
  what: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const startedMs = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    if (terminal.isSilent(everyMs)) terminal.remark(`... ${what}: ${seconds} s`);
  }, everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

// Reports the progress of long work every 2 seconds. Shorter work prints nothing.

/** @param what the things that are counted, such as `ledger rows read` */
export function countProgress(terminal: Terminal, what: string): (count: number) => void {
  let total = 0;
  let remarkedMs = performance.now();
  return (count) => {
    total += count;
    if (performance.now() - remarkedMs < everyMs) return;
    remarkedMs = performance.now();
    terminal.remark(`... ${total} ${what}`);
  };
}

/** @param what is done with what is named; `hint` comes before its name again */
export function nameProgress(terminal: Terminal, what: string, hint: string): (name: string) => void {
  let remarkedMs = performance.now();
  return (name) => {
    if (performance.now() - remarkedMs < everyMs) return;
    remarkedMs = performance.now();
    terminal.remark(`... ${what} ${name} (${hint} '${name}')`);
  };
}
