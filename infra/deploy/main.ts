/**
 * `npm run deploy -- --stage S [--accept-drop NAME] [arguments of cdk deploy]`: deploys a stage with the options of its
 * file, after a comparison with those that the deployed stack publishes. An option is never dropped unnoticed.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { publishedOptions } from '../stack/options/published-options.ts';
import { readStageFile } from '../stack/options/stage-file.ts';
import { stageNamed } from '../stack/options/stage.ts';
import { compareOptions } from './compare-options.ts';
import { readDeployArguments, type DeployArguments } from './deploy-arguments.ts';
import { readDeployed, type Deployed } from './deployed-options.ts';

const projectFolder = join(import.meta.dirname, '..', '..');

/** Stands for all options of a stack that does not publish them. */
const unpublished = 'unpublished';

const print = (line: string): void => {
  console.error(line);
};

try {
  const given = readDeployArguments(process.argv.slice(2));
  process.exitCode = (await mayDeploy(given)) ? await deploy(given) : 1;
} catch (error) {
  print((error as Error).message);
  process.exitCode = 1;
}

async function mayDeploy({ stage, acceptedDrops, profile, region }: DeployArguments): Promise<boolean> {
  const { stackName, file } = stageNamed(stage);
  const options = readStageFile(projectFolder, { stackName, file });
  const place = { stackName, region: options.region ?? region, profile };
  const deployed = await readDeployed(place, process.env);
  const wanted = publishedOptions(options);
  const refusal = compare(deployed, { stackName, file, wanted, acceptedDrops });
  if (refusal !== undefined) print(refusal);
  return refusal === undefined;
}

interface Wanted {
  stackName: string;
  file: string;
  wanted: Record<string, unknown>;
  acceptedDrops: readonly string[];
}

/** Says what is compared with what. Returns why it may not be deployed. */
function compare(deployed: Deployed, { stackName, file, wanted, acceptedDrops }: Wanted): string | undefined {
  const place = `stack ${stackName} in ${deployed.region}`;
  const names = Object.keys(wanted);
  print(`${file}: ${names.length === 0 ? 'no options' : `options ${names.join(', ')}`}`);
  if (deployed.state === 'absent') {
    print(`${place}: does not exist yet, so there is nothing to compare with`);
    return undefined;
  }
  if (deployed.state === unpublished) {
    if (acceptedDrops.includes(unpublished)) return undefined;
    return [
      `${place}: was deployed by a version that does not publish its options, so nothing can be compared.`,
      `Write the options that it has (the -c of its deployment, the context of cdk.json) into ${file},`,
      `then repeat this command once with --accept-drop ${unpublished}`,
    ].join('\n');
  }
  const { lines, refused } = compareOptions(deployed.options, wanted, acceptedDrops);
  print(
    `${place}: ${lines.length === 0 ? 'has the same options' : 'compared with the options of the file:'}`,
  );
  for (const line of lines) print(`  ${line}`);
  if (refused.length === 0) return undefined;
  return [
    `refused: this deployment would drop ${refused.join(', ')}.`,
    `Write ${refused.length === 1 ? 'it' : 'them'} into ${file}, or add ${refused.map((name) => `--accept-drop ${name}`).join(' ')}`,
  ].join('\n');
}

/** Resolves with CDK's exit code. */
async function deploy({ stage, forCdk }: DeployArguments): Promise<number> {
  const context = stage === undefined ? [] : ['--context', `stage=${stage}`];
  const child = spawn('cdk', ['deploy', ...context, ...forCdk], { cwd: projectFolder, stdio: 'inherit' });
  // A terminal sends SIGINT to the child too; CDK then decides.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => resolve(code ?? 1));
  });
}
