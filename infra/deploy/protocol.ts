/**
 * Runs the steps of docs/first-deployment.md, block by block as the page shows them, and writes a transcript. Must never run against a
 * stage that is not disposable, nor write down a secret.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { maskKeys } from '../ops/markup.ts';
import { hasDistribution } from '../stack/options/front-door.ts';
import { readStageFile, resolveStage } from '../stack/options/read-options.ts';

export interface ProtocolPorts {
  /** The root of the repository. */
  folder: string;
  environment: NodeJS.ProcessEnv;
  print: (line: string) => void;
  isDeployed: (place: { stackName: string; region: string | undefined }) => Promise<boolean>;
}

/**
 * Resolves with an exit code. Throws a readable Error if it must not start.
 * @param given the typed options; without `from` it runs all steps that the transcript does not list as done
 */
export async function runProtocol(
  { stage: name, from, yes }: { stage?: string; from?: string; yes?: boolean },
  ports: ProtocolPorts,
): Promise<number> {
  const { folder, environment, print } = ports;
  if (name === undefined) throw new Error('--stage is required: do not use the default stage for trials');
  const { file: options, stackName } = resolveStage(name);
  const {
    disposable,
    region,
    frontDoor = 'cloudfront',
  } = readStageFile(folder, { file: options, stackName });
  if (disposable !== true)
    throw new Error(`${options} lacks "disposable": true, and the last step deletes stack ${stackName}`);
  const page = readFileSync(join(folder, 'docs', 'first-deployment.md'), 'utf8');
  const notes = join('first-deployment', name);
  const transcript = join(folder, notes, 'transcript.md');
  const written = existsSync(transcript) ? readFileSync(transcript, 'utf8') : '';
  const done = new Set([...written.matchAll(/^\*\*Step (\d+) done/gm)].map(([, number]) => Number(number)));
  const steps = readSteps(page).filter((step) => !step.withCloudFront || hasDistribution(frontDoor));
  const first = Number(from === 'last' ? steps.at(-1)?.number : from);
  const left = steps.filter(({ number }) => (from === undefined ? !done.has(number) : number >= first));
  if (left.length === 0)
    throw new Error(from ? `no step ${from}` : `all steps are done; to start over, move ${transcript} away`);
  if (written === '' && (await ports.isDeployed({ stackName, region })))
    throw new Error(
      `stack ${stackName} already exists and was not created by this protocol: choose an unused stage`,
    );
  for (const step of left) print(`${step.number}. ${step.name}: about ${step.minutes} minutes`);
  const minutes = left.reduce((sum, step) => sum + step.minutes, 0);
  print(`stack ${stackName}: about ${minutes} minutes. ${/^It costs .+$/m.exec(page)?.[0]}`);
  const command = `npm run first-deployment -- --stage ${name} --yes`;
  if (!yes) throw new Error(`nothing was done. To start: ${command}`);
  mkdirSync(join(folder, notes), { recursive: true, mode: 0o700 });
  const append = (text: string): void => appendFileSync(transcript, `${text}\n`, { mode: 0o600 });
  // A killed run leaves its block open.
  if ((written.match(/^````/gm)?.length ?? 0) % 2 === 1) append('````\n\nThat run ended here.');
  const run = { ...ports, environment: { ...environment, STAGE: name, RUN: notes }, options, append };
  for (const step of left) {
    const failure = await runStep(step, run);
    if (failure === undefined) continue;
    print(`step ${step.number} (${step.name}) failed: ${failure}. Its output is in ${transcript}`);
    print(`to retry it: ${command}; to skip it: ${command} --from ${step.number + 1}`);
    print(`to delete the stack: ${command} --from last`);
    return 1;
  }
  return 0;
}

/** A section `### N. Name` of the page, with a line `Expected: exit N, M minutes[, with CloudFront]. Note: ...` before its blocks. */
interface Step {
  number: number;
  name: string;
  /** Valid exit codes of the last block. All other blocks must exit with 0. */
  exits: string[];
  minutes: number;
  /** The step needs a distribution, so other front doors skip it. */
  withCloudFront: boolean;
  /** Text for the person to write down. */
  note: string;
  /** `json` holds options of the stage to write. `sh` holds commands to run until one fails. */
  blocks: { language: string; code: string }[];
}

const stepHead =
  /^(\d+)\. (.+)\n[^]*?^Expected: exit (\d+(?: or \d+)*), (\d+) minutes(, with CloudFront)?\. Note: ([^]+?)\n\n/m;

export const readSteps = (page: string): Step[] =>
  (page.match(/(?<=^### )[^]+?(?=^##|$(?![^]))/gm) ?? []).map((text) => {
    const [, number, name = '', exits = '', minutes, withCloudFront, note = ''] = stepHead.exec(text) ?? [];
    if (number === undefined) throw new Error(`docs/first-deployment.md: "Expected" is missing in ${text}`);
    const blocks = [...text.matchAll(/^```(json|sh)\n([^]*?)\n```$/gm)];
    return {
      number: Number(number),
      name,
      exits: exits.split(' or '),
      minutes: Number(minutes),
      withCloudFront: withCloudFront !== undefined,
      note: note.replaceAll('\n', ' '),
      blocks: blocks.map(([, language = '', code = '']) => ({ language, code })),
    };
  });

/** The file of the stage. */
type StepRun = ProtocolPorts & { append: (text: string) => void; options: string };

/** Resolves with the reason of a failure, or undefined if the block ended as expected. */
async function runStep({ blocks, ...step }: Step, run: StepRun): Promise<string | undefined> {
  const { append, print } = run;
  const startedMs = Date.now();
  const describeDuration = () =>
    `${((Date.now() - startedMs) / 60_000).toFixed(1)} minutes (expected ${step.minutes})`;
  print(`\n${step.number}. ${step.name}`);
  append(`\n## ${step.number}. ${step.name}\n\n${new Date().toISOString()}. To note: ${step.note}\n`);
  for (const [index, { language, code }] of blocks.entries()) {
    append(`\`\`\`\`${language}\n${code}\n\`\`\`\`\n\n\`\`\`\`text`);
    let count = 0;
    const tail: string[] = [];
    // A killed run keeps the first lines. A long block loses lines in its middle.
    const exit = await (language === 'json' ? mergeOptions : runBlock)(code, run, (line) => {
      const safe = removeSecrets(line, run.environment);
      print(safe);
      if (++count <= 150) append(safe);
      else tail.push(safe);
    });
    if (tail.length > 50) append(`... ${tail.length - 50} lines are left out ...`);
    append([...tail.slice(-50), '````\n'].join('\n'));
    const right = index === blocks.length - 1 ? step.exits : ['0'];
    if (right.includes(exit)) continue;
    const failure = `block ${index + 1} ended with ${exit}, expected ${right.join(' or ')}`;
    append(`**Step ${step.number} failed** after ${describeDuration()}: ${failure}.`);
    return failure;
  }
  append(`**Step ${step.number} done** in ${describeDuration()}.`);
  print(`done in ${describeDuration()}. Note: ${step.note}`);
  return undefined;
}

async function mergeOptions(code: string, { folder, options }: StepRun): Promise<string> {
  const file = join(folder, options);
  const [before, change] = [readFileSync(file, 'utf8'), code].map((text) => JSON.parse(text) as object);
  writeFileSync(file, `${JSON.stringify({ ...before, ...change }, null, 2)}\n`);
  return '0';
}

/** Resolves with the exit code, or the signal that ended the process. */
async function runBlock(code: string, run: StepRun, heard: (line: string) => void): Promise<string> {
  // Signals reach the whole process group, so no deployment outlives its transcript.
  const how = { cwd: run.folder, env: run.environment, detached: true };
  const child = spawn('sh', ['-ec', code], { ...how, stdio: ['ignore', 'pipe', 'pipe'] });
  const end = (signal: NodeJS.Signals): boolean => process.kill(-Number(child.pid), signal);
  process.on('SIGINT', end).on('SIGTERM', end);
  for (const input of child.stdio.slice(1, 3) as Readable[]) createInterface({ input }).on('line', heard);
  const [exit, signal] = (await once(child, 'close')) as [number | null, string | null];
  process.off('SIGINT', end).off('SIGTERM', end);
  return String(exit ?? signal);
}

/** Removes keys, values of secret variables, mail addresses and account numbers, because people share transcripts. */
function removeSecrets(line: string, environment: NodeJS.ProcessEnv): string {
  const secrets = Object.entries(environment).flatMap(([name, value = '']) =>
    /KEY|SECRET|TOKEN|PASSWORD/.test(name) && value.length >= 8 ? [value] : [],
  );
  return maskKeys(secrets.reduce((text, secret) => text.replaceAll(secret, '(secret)'), line))
    .replaceAll(/\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b/g, '(mail)')
    .replaceAll(/\b\d{12}\b/g, '(account)');
}
