/** How commands run: in the form that the options name, on the tables of the target, and asked before they write. */
import type { Command } from 'commander';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { explainDenied } from '../../access/denied-access.ts';
import { openSession } from '../../session/session.ts';
import { describeTarget, resolveTarget } from '../../session/target.ts';
import type { ApproveOptions } from '../terminal/approve.ts';
import type { ProcessContext } from '../terminal/process-context.ts';
import { openTerminal, type Terminal } from '../terminal/terminal.ts';
import { whileWorking } from '../terminal/working.ts';
import { commandName } from './command-name.ts';
import { formatOf, targetOptionsOf } from './common-options.ts';
import { perform, type Writing } from './writing.ts';

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
