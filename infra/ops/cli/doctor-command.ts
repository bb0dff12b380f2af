/** The command `doctor`: what the AWS account and region mean for the relay, and what to set. Changes nothing. */
import type { Command } from 'commander';
import { examineAccount } from '../../../shared/operate/doctor/examine-account.ts';
import { regionProblem } from '../../stack/options/streaming-regions.ts';
import type { CommandContext } from './command/command-context.ts';
import type { StageFile } from '../../../shared/operate/doctor/stage-file.ts';
import { readTextFile, readTextFileIfAny } from './terminal/text-files.ts';
import type { JsonOption } from './terminal/option-values.ts';
import { printFindings } from './print/doctor.ts';

const examples = `
Reads the region, the deployed stack and its options, quotas of Lambda, DynamoDB and Parameter Store, and access to the
models that channels call with the functions' own role. Each line says what was found; where something needs attention,
the next line is what to write or run, word for word.

Examples:
  npm run ops -- doctor --stack relay
  npm run ops -- doctor --stack relay-test --json`;

export function addDoctorCommand(program: Command, { terminal, onTables }: CommandContext): void {
  program
    .command('doctor')
    .description(
      'look at quotas, region, model access and options; exit code 1 when something needs attention',
    )
    .option('--options <file>', 'the options of the stage (default: relay.json, or relay.<stage>.json)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(
      onTables(async (ports, { options, json }: JsonOption & { options?: string }) => {
        const { account } = ports;
        const file = await readStageFile(ports.target.stack, options);
        printFindings(terminal, await examineAccount(ports, { account, file, regionProblem }), { json });
      }),
    );
}

const defaultStack = 'relay';

/**
 * The committed options of a stage.
 * @param named the file, when it has another name than the stack says
 */
async function readStageFile(stack: string, named: string | undefined): Promise<StageFile> {
  const stage = stack.startsWith(`${defaultStack}-`) ? stack.slice(defaultStack.length + 1) : undefined;
  const name = named ?? (stage === undefined ? 'relay.json' : `relay.${stage}.json`);
  const deploy = stage === undefined ? 'npm run deploy' : `npm run deploy -- --stage ${stage}`;
  const text = named === undefined ? await readTextFileIfAny(name) : await readTextFile(name);
  if (text === undefined) return { name, deploy, options: undefined };
  const options = optionsIn(text);
  return { name, deploy, options, ...(options === undefined && { problem: 'found no JSON map of options' }) };
}

function optionsIn(text: string): StageFile['options'] {
  try {
    const options: unknown = JSON.parse(text);
    return typeof options === 'object' && options !== null && !Array.isArray(options)
      ? { ...options }
      : undefined;
  } catch {
    return undefined;
  }
}
