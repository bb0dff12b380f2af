/** What every command is handed: the terminal, the environment, and the way to the tables of its target. */
import type { Command } from 'commander';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { openSession } from '../session/session.ts';
import { describeTarget, resolveTarget } from '../session/target.ts';
import type { ProcessContext } from './terminal/process-context.ts';
import { openTerminal, type Terminal } from './terminal/terminal.ts';

export interface CommandContext {
  terminal: Terminal;
  environment: NodeJS.ProcessEnv;
  /** Opens the tables that the options of a command name, and prints where they are before anything is read or written. */
  readonly open: (command: Command) => Promise<OperatorPorts>;
}

export function commandContext(context: ProcessContext): CommandContext {
  const { environment } = context;
  const terminal = openTerminal(context);
  return {
    terminal,
    environment,
    async open(command) {
      const options = command.optsWithGlobals<{ stack?: string; json?: boolean; csv?: boolean }>();
      const target = resolveTarget(options.stack, environment);
      const { ports, region } = await openSession(target, environment);
      // With --json and --csv, standard output is for a program.
      const tell = options.json || options.csv ? terminal.remark : terminal.print;
      tell(describeTarget(target, region, environment));
      return ports;
    },
  };
}
