/** Deploys a stage with the options of its file, after a comparison with those that the deployed stack publishes. */
import { parseArgs } from 'node:util';
import type { StageOptions } from '../stack/options/option-table.ts';
import { selectPublishedOptions } from '../stack/options/published-options.ts';
import { readStageFile, resolveStage, type Stage } from '../stack/options/read-options.ts';
import { compareOptions, liftProtection, openAddress, readDeployed } from './deployed-options.ts';
import { findZoneProblem } from './server-zones.ts';

interface DeployPorts {
  /** The folder with the files of stages. */
  folder: string;
  environment: NodeJS.ProcessEnv;
  print: (line: string) => void;
  /** Runs `cdk` with these arguments. Resolves with its exit code. */
  cdk: (args: readonly string[]) => Promise<number>;
}

/** Resolves with an exit code. Throws a readable Error. */
export async function deployStage(args: readonly string[], ports: DeployPorts): Promise<number> {
  const { forCdk, profile, region, stage: name, acceptedDrops } = readDeployArguments(args);
  const { print, environment } = ports;
  const stage = resolveStage(name);
  const { file, stackName } = stage;
  const wanted = readStageFile(ports.folder, stage);
  const place = { stackName, region: wanted.region ?? region, profile };
  const deployed = await readDeployed(place, environment);
  const names = Object.keys(selectPublishedOptions(wanted));
  print(`${file}: ${names.length === 0 ? 'no options' : `options ${names.join(', ')}`}`);
  const stack = `stack ${stackName} in ${deployed.region}`;
  if (deployed.state === 'absent') {
    print(`${stack} does not exist yet, so there are no deployed options to compare`);
    if (deployed.isProtected) {
      print(
        'Its first deployment failed. Removing its termination protection, so that CDK can delete the remains',
      );
      await liftProtection(place, environment);
    }
  } else {
    const { differences, refused, broken } = compareOptions(deployed.options, wanted, acceptedDrops);
    print(`${stack} ${differences.length === 0 ? 'has the same options' : 'will change:'}`);
    for (const line of differences) print(`  ${line}`);
    if (refused.length > 0) {
      print(`stopped: this deployment would remove ${refused.join(', ')}`);
      const accepting = refused.map((option) => `--accept-drop ${option}`).join(' ');
      print(`Add ${refused.length === 1 ? 'it' : 'them'} to ${file}, or re-run with ${accepting}`);
    }
    for (const line of broken) print(`stopped: ${line}`);
    if (refused.length + broken.length > 0) return 1;
  }
  const zones = await findZoneProblem(wanted, deployed, () => openAddress(place, environment));
  if (zones !== undefined) {
    print(`stopped: ${zones}`);
    print(`Change ${file}, then deploy again`);
    return 1;
  }
  const context = name === undefined ? [] : ['--context', `stage=${name}`];
  const all = hasEdge(wanted) && !choosesStacks(stage, forCdk) ? ['--all'] : [];
  return ports.cdk(['deploy', ...context, ...all, ...forCdk]);
}

/** CDK must be told which stacks to deploy if there are edge stacks. */
const hasEdge = ({ webAcl, edgeAlarms }: StageOptions): boolean => webAcl === true || Boolean(edgeAlarms);

/** CDK refuses `--all` together with names or patterns of stacks. */
const choosesStacks = ({ stackName }: Stage, forCdk: readonly string[]): boolean =>
  forCdk.some(
    (arg) =>
      arg === '--all' ||
      arg === stackName ||
      arg.startsWith(`${stackName}-edge-`) ||
      /^[^-].*[*?]|^[*?]/.test(arg),
  );

const string = { type: 'string', multiple: true } as const;
const known = {
  stage: string,
  'accept-drop': string,
  profile: string,
  region: string,
  context: { ...string, short: 'c' },
};

/** `profile` and `region` are CDK's own, so they stay in `forCdk`. Throws a readable Error for invalid arguments. */
function readDeployArguments(args: readonly string[]) {
  const { values, tokens } = parseArgs({ args: [...args], options: known, strict: false, tokens: true });
  const named = tokens.flatMap((token) => (token.kind === 'option' && token.name in known ? [token] : []));
  const valueless = named.find(({ value }) => value === undefined || value.startsWith('-'));
  if (valueless) throw new Error(`${valueless.rawName} requires a value`);
  const valuesOf = (name: keyof typeof known): string[] => (values[name] ?? []).map(String);
  const [stage, ...others] = valuesOf('stage');
  if (others.length > 0) throw new Error('use --stage only once');
  if (valuesOf('context').some((each) => /^=?stage=/.test(each)))
    throw new Error('use --stage instead of -c stage=...');
  const own = new Set(
    named.flatMap(({ name, index, inlineValue }) => {
      if (name !== 'stage' && name !== 'accept-drop') return [];
      return inlineValue ? [index] : [index, index + 1];
    }),
  );
  return {
    stage,
    acceptedDrops: valuesOf('accept-drop'),
    profile: valuesOf('profile').at(-1),
    region: valuesOf('region').at(-1),
    forCdk: args.filter((_, index) => !own.has(index)),
  };
}
