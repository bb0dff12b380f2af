/** Defines the commands, help and exit codes of the operators' tool. */
import { Command, CommanderError } from 'commander';
import { addChannelCommands } from './channel-commands.ts';
import { addAccountCommands } from './account-commands.ts';
import { addChargeCommands } from './charge-commands.ts';
import { addCustomerCommands } from './customers/customer-commands.ts';
import { addConfigCommands } from './config-commands.ts';
import { addConsoleCommand } from './console-command.ts';
import { addCostCommand } from './cost/cost-command.ts';
import { Failure } from '../../../shared/operate/operator-failure.ts';
import { addInitCommand } from './init/init-command.ts';
import { addGrantCommands } from './rows/grant-commands.ts';
import { addPlanCommands } from './rows/plan-commands.ts';
import { addSettingCommands } from './rows/setting-commands.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { addKeyCommands } from './keys/key-commands.ts';
import { addPaymentCommands } from './payment-commands.ts';
import { addLedgerCommands } from './ledger-commands.ts';
import { addReportCommand } from './report/report-command.ts';
import { addRequestCommands } from './requests/request-commands.ts';
import { addResponseCommands } from './response-commands.ts';
import { addWhatIfCommand } from './what-if-command.ts';
import { addSecretCommands } from './secret-commands.ts';
import { addStatementCommands } from './money/statement-commands.ts';
import { addVersionCommands } from './version-commands.ts';
import { commandContext, type CommandContext } from './command/command-context.ts';
import { addExamples, programName } from './command/command-examples.ts';
import { addCommonOptions, addTargetOptions } from './command/common-options.ts';
import type { ProcessContext } from './terminal/process-context.ts';
import type { Terminal } from './terminal/terminal.ts';

const help = `
Where it works, which the first line of every run says:
  AWS_ENDPOINT_URL_DYNAMODB is set   the tables at that address (the local stack of \`npm start\`)
  --stack, --stage, --profile or --region
                                     a deployed stack, relay unless it is named, with the AWS configuration of your shell
  none of them                       the local stack at http://127.0.0.1:8000

What moves money or switches something off shows what it is going to do and asks; --yes answers, and where nobody is there
to ask it is needed. --dry-run shows and writes nothing. --json prints one JSON value, or {"error": {...}}; lists have --csv.

Exit codes: 0 done; 1 it did not work out, or something was found that needs attention; 2 the command line is wrong, or
--yes is missing; 3 the AWS credentials do not allow it (the message names the policy that does).`;

/** In the order in which the help lists them. */
const commandGroups = [
  addInitCommand,
  addCustomerCommands,
  addKeyCommands,
  addChannelCommands,
  addChargeCommands,
  addPlanCommands,
  addAccountCommands,
  addGrantCommands,
  addResponseCommands,
  addPaymentCommands,
  addLedgerCommands,
  addStatementCommands,
  addSettingCommands,
  addVersionCommands,
  addReportCommand,
  addRequestCommands,
  addConfigCommands,
  addWhatIfCommand,
  addSecretCommands,
  addConsoleCommand,
  addDoctorCommand,
  addCostCommand,
];

export function createProgram({ output, errors }: ProcessContext, context: CommandContext): Command {
  const program = addTargetOptions(new Command(programName))
    // npx keeps options that stand before the command to itself.
    .usage('<command> [options]')
    .description("The operators' tool: keys, channels, prices, accounts and ledger of a relay.")
    .showHelpAfterError('(add --help for more)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void output.write(text),
      writeErr: (text) => void errors.write(text),
    })
    .addHelpText('after', help);
  for (const addCommands of commandGroups) addCommands(program, context);
  addCommonOptions(program);
  addExamples(program);
  return program;
}

interface Ended {
  exitCode: number;
  /** Undefined: it is on the stream for errors already. */
  remark?: string;
  message: string;
}

function endOf(error: unknown): Ended {
  if (error instanceof CommanderError)
    return { exitCode: error.exitCode === 0 ? 0 : 2, message: error.message };
  if (error instanceof Failure)
    return { exitCode: error.exitCode, remark: error.message, message: error.message };
  const bug = `a bug of this tool: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  return { exitCode: 1, remark: bug, message: bug };
}

/** With --json, standard output has one value in any case: what was asked for, else why there is nothing. */
function report({ exitCode, remark, message }: Ended, words: string[], terminal: Terminal): void {
  if (remark !== undefined) terminal.remark(remark);
  if (exitCode !== 0 && words.includes('--json') && !terminal.hasData())
    terminal.printJson({ error: { message, exit_code: exitCode } });
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
    const end = endOf(error);
    report(end, words, context.terminal);
    return end.exitCode;
  }
}
