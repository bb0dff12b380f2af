/** Defines the commands, help and exit codes of the operators' tool. */
import { Command, CommanderError } from 'commander';
import { addChannelCommands } from './channel-commands.ts';
import { addAccountCommands } from './account-commands.ts';
import { addChargeCommands } from './charge-commands.ts';
import { addConfigCommands } from './config-commands.ts';
import { addCostCommand } from './cost/cost-command.ts';
import { Failure } from '../../../shared/operate/operator-failure.ts';
import { addInitCommand } from './init-command.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { addKeyCommands } from './key-commands.ts';
import { addPaymentCommands } from './payment-commands.ts';
import { addLedgerCommands } from './ledger-commands.ts';
import { addResponseCommands } from './response-commands.ts';
import { addSecretCommands } from './secret-commands.ts';
import { commandContext, type CommandContext } from './command/command-context.ts';
import type { ProcessContext } from './terminal/process-context.ts';
import type { Terminal } from './terminal/terminal.ts';

const help = `
Where it works, which the first line of every run says:
  AWS_ENDPOINT_URL_DYNAMODB is set   the tables at that address (the local stack of \`npm start\`)
  --stack NAME                       the deployed stack NAME, with the AWS profile and region of your shell
  neither                            the local stack at http://127.0.0.1:8000

Exit codes: 0 done, 1 it did not work out, 2 the command line is wrong, 3 the AWS credentials do not allow it (the
message names the policy that does).

Examples:
  npm run ops -- init --stack relay
  npm run ops -- key create --account acme
  npm run ops -- channel list
  npm run ops -- account grant acme 100 --reason "paid by card"
  npm run ops -- check
  npm run ops -- audit
  AWS_PROFILE=prod npm run ops -- key list --stack relay`;

/** In the order in which the help lists them. */
const commandGroups = [
  addInitCommand,
  addKeyCommands,
  addChannelCommands,
  addChargeCommands,
  addAccountCommands,
  addResponseCommands,
  addPaymentCommands,
  addLedgerCommands,
  addConfigCommands,
  addSecretCommands,
  addDoctorCommand,
  addCostCommand,
];

export function createProgram({ output, errors }: ProcessContext, context: CommandContext): Command {
  const program = new Command('npm run ops --')
    .description("The operators' tool: keys, channels, prices, accounts and ledger of a relay.")
    .option('--stack <name>', 'prefix of the table names; without a local endpoint, the deployed stack')
    .showHelpAfterError('(add --help for more)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void output.write(text),
      writeErr: (text) => void errors.write(text),
    })
    .addHelpText('after', help);
  for (const addCommands of commandGroups) addCommands(program, context);
  return program;
}

function exitCodeOf(error: unknown, { remark }: Terminal): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Failure) {
    remark(error.message);
    return error.exitCode;
  }
  remark(`a bug of this tool: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return 1;
}

/**
 * Runs one command of the operators' tool.
 * @param words the command line, without the program's name
 * @returns the exit code
 */
export async function runProgram(words: string[], process: ProcessContext): Promise<number> {
  const context = commandContext(process);
  try {
    await createProgram(process, context).parseAsync(words, { from: 'user' });
    return 0;
  } catch (error) {
    return exitCodeOf(error, context.terminal);
  }
}
