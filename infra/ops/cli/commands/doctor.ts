/** The command `doctor`: what the AWS account and region mean for the relay, and what to set. Changes nothing. */
import { examineAccount, type StageFile } from '../../../../shared/operate/doctor.ts';
import { formatCount, Failure } from '../../../../shared/operate/plan.ts';
import { selectPublishedOptions, readOutputs } from '../../../stack/options/published-options.ts';
import { readOptions, resolveStage, type Stage } from '../../../stack/options/read-options.ts';
import { findRegionProblem } from '../../../stack/options/streaming-regions.ts';
import { defineView } from '../command.ts';
import { resolveInRepository, readTextFile, readTextFileIfAny } from '../text-files.ts';
import { parseJson } from '../../../../shared/wire/json.ts';

export const doctorCommand = defineView('doctor', {
  does: 'check region, quotas, model access and options; exits 1 if something needs attention',
  lists: true,
  takes: {
    '--options <file>': 'options file of the stage (default: relay.json or relay.<stage>.json)',
  },
  notes: `
Checks the region, the deployed stack and its options, the quotas of Lambda, DynamoDB and Parameter Store, and access to
the Bedrock models that channels call. If something needs attention, the next line is the exact command or option to use.`,
  examples: ['doctor --stack relay', 'doctor --stack relay-test --json'],
  async run({ ports, terminal }, { options }: { options?: string }) {
    const file = await readStageFile(ports.target.stack, options);
    const examination = {
      account: await ports.account(),
      file,
      regionProblem: findRegionProblem,
      readOptions: readOutputs,
    };
    const { format, print } = terminal;
    const findings = await examineAccount(ports, examination);
    const text = (): void => {
      for (const { check, state, found, set } of findings) {
        print(`${state.padEnd(stateWidth)}  ${check}: ${found}`);
        if (set) print(`${' '.repeat(stateWidth)}  ${set.where}: ${set.line}`);
      }
    };
    const rows = findings.map(({ set, ...found }) => ({ ...found, ...set }));
    terminal.printAs(findings, text, [['state', 'check', 'found', 'where', 'line'], rows]);
    const count = findings.filter(({ state }) => state === 'attention').length;
    if (count > 0)
      throw new Failure(
        `${count} of ${formatCount(findings.length, 'check')} ${count === 1 ? 'needs' : 'need'} attention`,
      );
    if (format === 'text') print(`${formatCount(findings.length, 'check')}: nothing needs attention.`);
  },
});

/** @param named the file, when it has another name than the stack says */
async function readStageFile(stack: string, named: string | undefined): Promise<StageFile> {
  const stage = stageOf(stack);
  const name = named ?? stage.file;
  const [, suffix] = /^relay-(.+)$/.exec(stage.stackName) ?? [];
  const deploy = suffix === undefined ? 'npm run deploy' : `npm run deploy -- --stage ${suffix}`;
  // The tool may run in any folder; the files of stages lie in the repository.
  const text =
    named === undefined ? await readTextFileIfAny(resolveInRepository(name)) : await readTextFile(name);
  const file = { name, deploy, options: undefined };
  if (text === undefined) return file;
  const content = parseJson(text);
  if (content === undefined) return { ...file, problem: `${name} is not valid JSON` };
  try {
    const options = selectPublishedOptions(readOptions({ ...stage, file: name }, content));
    return { ...file, options };
  } catch (error) {
    return { ...file, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** A stack in somebody's own app has no options file, but its options have the same names. */
function stageOf(stack: string): Stage {
  const stage = stack.startsWith('relay-') ? stack.slice('relay-'.length) : undefined;
  try {
    return resolveStage(stage);
  } catch {
    return { stackName: stack, file: 'relay.json' };
  }
}

const stateWidth = 'does not apply'.length;
