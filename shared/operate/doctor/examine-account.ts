/**
 * Looks at the AWS account and region of a deployed relay: what bounds it, and what the next deployment has to say.
 * Changes nothing.
 */
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { AwsAccount, DeployedStack } from '../aws-account.ts';
import { assessConcurrency } from './concurrency.ts';
import { attention, doesNotApply, findingsOf, ok, type Finding } from './finding.ts';
import { assessRoleModels } from './role-models.ts';
import { compareOptions, type Options, type StageFile } from './stage-file.ts';
import { isParameter, assessParameters, assessTables } from './stores.ts';

export interface Examination {
  account: AwsAccount;
  file: StageFile;
  /** The options that the outputs of a stack hold. Undefined: they hold none. */
  readOptions: (outputs: ReadonlyMap<string, string>) => Options | undefined;
  /** Why a relay cannot run in a region; undefined: it can. */
  regionProblem: (region: string) => string | undefined;
}

type Ports = Pick<OperatorPorts, 'tables' | 'target'>;

/** In the order of the checks. */
export async function examineAccount(ports: Ports, examination: Examination): Promise<Finding[]> {
  if (ports.target.local) return localFindings;
  const { account, file, regionProblem, readOptions } = examination;
  const region = await account.region();
  const stack = await readStack(account);
  const channels = await readChannels(ports);
  const deployed = stack.found && readOptions(stack.found.outputs);
  const looked = await Promise.all([
    findingsOf('concurrency', async () =>
      assessConcurrency({
        region,
        concurrency: await account.concurrency(),
        file,
        deployed: deployed && { option: deployed['reservedConcurrency'] },
      }),
    ),
    findingsOf('tables', async () => assessTables(await account.tableLimits(), region)),
    findingsOf('secrets', () => lookAtSecrets(account, channels, region)),
    assessRoleModels({
      account,
      channels,
      number: accountIn(stack.found),
      file,
      deployed: deployed?.['bedrockModels'],
    }),
  ]);
  return [
    ...assessRegion(region, regionProblem),
    ...stack.findings,
    ...compareOptions(file, deployed),
    ...looked.flat(),
  ];
}

/** The ARNs of policies among the outputs have the number of the account. */
function accountIn(stack: DeployedStack | undefined): string {
  const arns = [...(stack?.outputs.values() ?? [])].join(' ');
  return /arn:[\w-]+:iam::(\d{12}):/.exec(arns)?.[1] ?? '<account>';
}

function assessRegion(region: string, problem: Examination['regionProblem']): Finding[] {
  const found = problem(region);
  return [found === undefined ? ok('region', `${region}: answers stream there`) : attention('region', found)];
}

/** A deployment ended well. A rolled back one runs, but not what was wanted. */
const isWhole = (status: string): boolean => /^(CREATE|UPDATE|IMPORT)_COMPLETE$/.test(status);
const isMoving = (status: string): boolean => status.endsWith('_IN_PROGRESS');

async function readStack(
  account: AwsAccount,
): Promise<{ found: DeployedStack | undefined; findings: Finding[] }> {
  let found: DeployedStack | undefined;
  const findings = await findingsOf('stack', async () => {
    found = await account.stack();
    if (!found)
      return [attention('stack', 'CloudFormation has no stack of this name in this account and region')];
    const { status } = found;
    if (isWhole(status)) return [ok('stack', status)];
    if (isMoving(status)) return [attention('stack', `${status}: wait until it ends, then repeat`)];
    return [attention('stack', `${status}: the last deployment did not go through; its events say why`)];
  });
  return { found, findings };
}

/** Rows with a problem are not used; `check` is about those. */
async function readChannels({ tables, target }: Ports): Promise<ChannelRow[]> {
  const rows = await tables.scan('channels');
  return rows.flatMap((raw) => {
    const reading = readChannel(raw, target);
    return 'problem' in reading || !reading.row.state ? [] : [reading.row];
  });
}

async function lookAtSecrets(
  account: AwsAccount,
  channels: readonly ChannelRow[],
  region: string,
): Promise<Finding[]> {
  const references = [...new Set(channels.flatMap(secretsOf))];
  const isFast = references.some(isParameter) ? await account.hasFastParameters() : undefined;
  return assessParameters(references, isFast, region);
}

const localFindings: Finding[] = [
  doesNotApply('region', 'one machine: answers stream everywhere'),
  doesNotApply('stack', 'one machine: nothing is deployed'),
  doesNotApply(
    'options',
    'one machine: `npm start` takes its options from the environment, see docs/local.md',
  ),
  doesNotApply('concurrency', 'one machine: 16 environments answer for each function'),
  doesNotApply('tables', 'one machine: the emulator has no quota'),
  doesNotApply('secrets', 'one machine: rows name variables of the environment'),
  doesNotApply('models', 'one machine: no role calls models of AWS'),
];
