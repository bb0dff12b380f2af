/** Defines the commands, help and exit codes of the operators' tool. */
import { Command, CommanderError } from 'commander';
import { addChannelCommands, addSecretCommands } from './commands/channel.ts';
import { addAccountCommands, addGrantCommands } from './commands/account.ts';
import { addChargeCommands } from './commands/charge.ts';
import { addCustomerCommands } from './commands/customer.ts';
import { addConfigCommands, addVersionCommands } from './commands/config.ts';
import { addConsoleCommand } from './commands/console.ts';
import { addCostCommand } from './commands/cost.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import { addInitCommand } from './commands/init.ts';
import { addPlanCommands, addSettingCommands } from './commands/rows.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addKeyCommands } from './commands/key.ts';
import { addPaymentCommands } from './commands/payment.ts';
import { addLedgerCommands } from './commands/ledger.ts';
import { addReportCommand } from './commands/report.ts';
import { addRequestCommands } from './commands/request.ts';
import { addResponseCommands } from './commands/response.ts';
import { addWhatIfCommand } from './commands/what-if.ts';
import { addStatementCommands } from './commands/statement.ts';
import { commandContext, type CommandContext, addCommonOptions, addTargetOptions } from './command.ts';
import { addExamples, programName } from './examples.ts';
import type { ProcessContext, Terminal } from './terminal.ts';

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
