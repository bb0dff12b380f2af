/** Puts all commands together: their order in the help, the help itself, and exit codes. */
import { Command, CommanderError } from 'commander';
import { Failure } from '../../../shared/operate/plan.ts';
import type { PolicyName } from '../../access/policies.ts';
import {
  addCommands,
  addTargetOptions,
  formatExamples,
  programName,
  type CommandDefinition,
  type CommandGroup,
} from './command.ts';
import { channelCommands, secretCommands } from './commands/channel.ts';
import { chargeCommands } from './commands/charge.ts';
import { checkCommand, configCommands, versionCommands } from './commands/config.ts';
import { consoleCommand } from './commands/console.ts';
import { customerCommands } from './commands/customer.ts';
import { doctorCommand } from './commands/doctor.ts';
import { exportCommand } from './commands/export.ts';
import { grantCommands } from './commands/grant.ts';
import { initCommand } from './commands/init.ts';
import { keyCommands } from './commands/key.ts';
import { auditCommand, ledgerCommands } from './commands/ledger.ts';
import { paymentCommands } from './commands/payment.ts';
import { reportCommand } from './commands/report.ts';
import { requestCommands } from './commands/request.ts';
import { responseCommands } from './commands/response.ts';
import { restoreCommand } from './commands/restore.ts';
import { planCommands, settingCommands } from './commands/rows.ts';
import { reconcileCommand, statementCommand } from './commands/statement.ts';
import { whatIfCommand } from './commands/what-if.ts';
import { Terminal, type ProcessContext } from './terminal.ts';

const commands: readonly (CommandGroup | CommandDefinition)[] = [
  initCommand,
  customerCommands,
  keyCommands,
  channelCommands,
  chargeCommands,
  planCommands,
  grantCommands,
  requestCommands,
  responseCommands,
  paymentCommands,
  ledgerCommands,
  auditCommand,
  restoreCommand,
  statementCommand,
  reconcileCommand,
  settingCommands,
  versionCommands,
  reportCommand,
  exportCommand,
  checkCommand,
  configCommands,
  whatIfCommand,
  secretCommands,
  consoleCommand,
  doctorCommand,
];

/** The policies with which each command runs, by its words; with an option where that needs more than the command without it. */
export const commandPolicies: Readonly<Record<string, readonly PolicyName[]>> = Object.fromEntries(
  commands.flatMap((each) =>
    'commands' in each
      ? each.commands.flatMap((one) => policiesOf(one, `${each.name} ${one.name}`))
      : policiesOf(each, each.name),
  ),
);

function policiesOf({ policies, optionPolicies = {} }: CommandDefinition, words: string) {
  const options = Object.entries(optionPolicies).map(([option, own]) => [`${words} ${option}`, own] as const);
  return [[words, policies] as const, ...options];
}

const help = `
Target (the first line of output names it):
  AWS_ENDPOINT_URL_DYNAMODB is set   the tables at that address, such as a local stack
  --stack, --stage, --profile or --region
                                     a deployed stack (default: relay), with your shell's AWS credentials
  none of these                      the local stack that \`npm start\` runs from this clone

Commands that move money, turn something off, or change channels, prices, plans or settings show their effect and ask
first. --yes skips the question and is required when there is no terminal. --dry-run shows the effect and writes nothing.
--json prints one JSON value, or {"error": {...}}; lists also take --csv.

Exit codes: 0 success; 1 failed, or something needs attention; 2 invalid command line, or --yes is missing; 3 access
denied (the message names the missing policy).`;

const programExamples = [
  'init --stack relay',
  'key new acme',
  'channel list --json',
  'grant new acme 100 --reason "paid by card"',
  'check',
  'audit',
  'key list --stage test --profile prod --region eu-west-1',
];

/** Words that people type instead of a command's name, in the singular. */
const synonyms = new Map([
  ...['account', 'user', 'balance'].map((word) => [word, 'customer'] as const),
  ...['model', 'provider', 'upstream', 'vendor'].map((word) => [word, 'channel'] as const),
  ...['credit', 'top-up', 'topup'].map((word) => [word, 'grant'] as const),
  ['price', 'charge'],
  ['usage', 'ledger'],
  ['log', 'request'],
  ['invoice', 'statement'],
]);

function suggestCommand(text: string): string {
  const [first = '', word = ''] = /^error: unknown command '([\w-]+?)s?'\n/.exec(text) ?? [];
  const command = synonyms.get(word);
  return command === undefined ? text : `${first}(Did you mean ${command}?)\n`;
}

/** @param words creates only the commands of groups that are among them. Default: all */
export function createProgram(
  process: ProcessContext,
  { terminal = new Terminal(process), words }: { terminal?: Terminal; words?: readonly string[] } = {},
): Command {
  const program = addTargetOptions(new Command(programName))
    // npx keeps options that stand before the command to itself.
    .usage('<command> [options]')
    .description('Manage the customers, keys, channels, prices and balances of a relay.')
    .showHelpAfterError('Add --help for usage.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void process.output.write(text),
      writeErr: (text) => void process.errors.write(text),
      outputError: (text, write) => write(suggestCommand(text)),
    })
    .addHelpText('after', help)
    .addHelpText('after', formatExamples(programExamples));
  for (const each of commands) addCommands(program, each, { process, terminal, words });
  return program;
}

interface ProgramEnd {
  exitCode: number;
  /** Missing when commander has printed it already. */
  remark?: string;
  message: string;
}

function endOf(error: unknown): ProgramEnd {
  if (error instanceof CommanderError)
    return { exitCode: error.exitCode === 0 ? 0 : 2, message: error.message };
  if (error instanceof Failure)
    return { exitCode: error.exitCode, remark: error.message, message: error.message };
  const bug = `unexpected error (please report it): ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  return { exitCode: 1, remark: bug, message: bug };
}

/**
 * Runs one command of the operators' tool. With --json, standard output has one value in any case: what was asked for, else
 * why there is nothing.
 * @param words the command line, without the program's name
 * @returns the exit code
 */
export async function runProgram(words: string[], process: ProcessContext): Promise<number> {
  const terminal = new Terminal(process);
  try {
    await createProgram(process, { terminal, words }).parseAsync(words, { from: 'user' });
    return 0;
  } catch (error) {
    const { exitCode, remark, message } = endOf(error);
    if (remark !== undefined) terminal.remark(remark);
    if (exitCode !== 0 && words.includes('--json') && !terminal.hasData())
      terminal.printJson({ error: { message, exit_code: exitCode } });
    return exitCode;
  }
}
