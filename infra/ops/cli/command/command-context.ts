/** The context of every command: the terminal, and access to the tables of its target. */
import type { Command } from 'commander';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { explainDenied } from '../../access/denied-access.ts';
import { openSession } from '../../session/session.ts';
import { commandName } from './command-name.ts';
import { describeTarget, resolveTarget } from '../../session/target.ts';
import type { ProcessContext } from '../terminal/process-context.ts';
import { openTerminal, type Terminal } from '../terminal/terminal.ts';

export interface CommandContext {
  terminal: Terminal;
  /**
   * Makes the action of a command: opens the tables that the options name and prints the target before
   * anything is read or written. `run` receives the parameters of commander's actions: arguments, options,
   * the command.
   */
  readonly onTables: <Words extends unknown[]>(
    run: (ports: OperatorPorts, ...words: Words) => Promise<void>,
  ) => (...words: Words) => Promise<void>;
}

export function commandContext(context: ProcessContext): CommandContext {
  const { environment } = context;
  const terminal = openTerminal(context);
  return {
    terminal,
    onTables:
      (run) =>
      async (...words) => {
        const command = words.at(-1) as Command;
        const options = command.optsWithGlobals<{ stack?: string; json?: boolean; csv?: boolean }>();
        const target = resolveTarget(options.stack, environment);
        const named = { command: commandName(command), stack: target.stack };
        const { ports, region } = await openSession(target, environment, (error, region) =>
          explainDenied(error, { ...named, region }),
        );
        // With --json and --csv, standard output contains only data.
        const tell = options.json || options.csv ? terminal.remark : terminal.print;
        tell(describeTarget(target, region, environment));
        await run(ports, ...words);
      },
  };
}
