/**
 * Looks at the AWS account and region of a deployed relay: what bounds it, and what the next deployment has to say.
 * Changes nothing.
 */
import { Failure } from './plan.ts';
import { readChannel, secretsOf, type ChannelRow } from '../config/rows/channel-row.ts';
import type {
  OperatorPorts,
  AwsAccount,
  DeployedStack,
  Concurrency,
  TableLimits,
  ListedModel,
  ModelAccess,
} from './operator-ports.ts';
import { canonicalJson } from '../wire/json.ts';
import { upstreamModel } from '../upstreams/types/channel-quirks.ts';
import { channelTypes } from '../upstreams/types/channel-types.ts';

// What `doctor` found out, one line each.

export interface Finding {
  check: string;
  state: 'ok' | 'attention' | 'does not apply';
  found: string;
  /** What to write or run, word for word. */
  set?: Setting;
}

interface Setting {
  /** A file, or `shell`. */
  where: string;
  line: string;
}

const ok = (check: string, found: string): Finding => ({ check, state: 'ok', found });

const attention = (check: string, found: string, set?: Setting): Finding => ({
  check,
  state: 'attention',
  found,
  ...(set && { set }),
});

const doesNotApply = (check: string, found: string): Finding => ({
  check,
  state: 'does not apply',
  found,
});

/** The findings of a check. What cannot be read is a finding of its own and spoils no other check. */
async function findingsOf(check: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [attention(check, `not known: ${error.message}`)];
  }
}

interface Examination {
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

// Compares the options file of a stage with the options that the deployed stack was made from.

/** In the form in which a stack publishes them: what is not a default; `memory.chat` for a field of a map. */
type Options = Readonly<Record<string, unknown>>;

/** The committed options of a stage. */
export interface StageFile {
  /** `relay.json`, or `relay.<stage>.json`. */
  name: string;
  /** What deploys it. */
  deploy: string;
  /** Undefined: there is no such file here, or it has a problem. */
  options: Options | undefined;
  problem?: string;
}

const check = 'options';

/** @param deployed undefined: the stack does not say */
function compareOptions(file: StageFile, deployed: Options | undefined): Finding[] {
  const { name, options, problem } = file;
  if (problem !== undefined) return [attention(check, problem)];
  if (deployed === undefined)
    return [doesNotApply(check, 'the stack does not say with which options it was deployed')];
  const names = [...new Set([...Object.keys(deployed), ...Object.keys(options ?? {})])].toSorted();
  if (options === undefined && names.length === 0)
    return [ok(check, `no ${name} here, and none is deployed`)];
  const findings = names.flatMap((option) =>
    differenceOf(option, { file, given: options?.[option], has: deployed[option] }),
  );
  return findings.length > 0 ? findings : [ok(check, `${name} is what is deployed`)];
}

function differenceOf(
  option: string,
  { file, given, has }: { file: StageFile; given: unknown; has: unknown },
): Finding[] {
  if (canonicalJson(given ?? null) === canonicalJson(has ?? null)) return [];
  const { name, deploy } = file;
  if (given === undefined)
    return [attention(check, `${option} is deployed, but not in ${name}`, lineOf(name, option, has))];
  const found = has === undefined ? 'not deployed' : `deployed is ${JSON.stringify(has)}`;
  const what = `${option} is ${JSON.stringify(given)} in ${name}, ${found}`;
  return [attention(check, what, { where: 'shell', line: deploy })];
}

/** The line of the file that sets an option. */
function lineOf(name: string, option: string, value: unknown): Setting {
  const [first = option, ...fields] = option.split('.');
  const nested = fields.reduceRight((inner, field) => ({ [field]: inner }), value);
  return { where: name, line: `${JSON.stringify(first)}: ${JSON.stringify(nested)}` };
}

// How many calls at once the relay has. Without a reservation its answering functions share what the account has with
// its own background jobs. https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html

const concurrencyCheck = 'concurrency';
const option = 'reservedConcurrency';
/** AWS wants this many to stay unreserved. */
const unreservedMin = 100;
/** The functions that the option is for: each reserves as much. */
const reservingFunctions = 2;
/** What AWS gives an account that is not new. */
const usual = 1000;

interface ConcurrencyParts {
  region: string;
  concurrency: Concurrency;
  file: StageFile;
  /** The option as deployed. Undefined: the stack does not say. */
  deployed: { option: unknown } | undefined;
}

function assessConcurrency({ region, concurrency, file, deployed }: ConcurrencyParts): Finding[] {
  const { most, unreserved } = concurrency;
  const given = countOf(file.options?.[option] ?? deployed?.option);
  const has = (countOf(deployed?.option) ?? 0) * reservingFunctions;
  const max = Math.floor((unreserved + has - unreservedMin) / reservingFunctions);
  const room = `${most} calls at once in this account and region, ${unreserved} of them unreserved`;
  const quota: Finding[] = most < usual ? [smallQuota(most, region)] : [];
  const set = lineOf(file.name, option, max);
  if (given !== undefined && given <= max)
    return [
      ...quota,
      ok(concurrencyCheck, `${room}; ${given} are reserved for each of chat and responses, ${max} can be`),
    ];
  if (given !== undefined && max >= 1)
    return [
      ...quota,
      attention(concurrencyCheck, `${room}: ${option} ${given} is too much, the deployment would fail`, set),
    ];
  if (max < 1) {
    const none = `${room}: none can be reserved, since AWS keeps ${unreservedMin} unreserved`;
    return [
      ...quota,
      attention(concurrencyCheck, given === undefined ? none : `${none}; take ${option} out of ${file.name}`),
    ];
  }
  const risk = "one tenant's calls may take what the relay's background jobs need";
  const reserved = deployed ? `none reserved: ${risk}` : 'whether the relay has reserved some is not known';
  return [
    ...quota,
    attention(
      concurrencyCheck,
      `${room}, ${reserved}; at most ${max} can be, for each of chat and responses`,
      set,
    ),
  ];
}

const smallQuota = (most: number, region: string): Finding =>
  attention(
    concurrencyCheck,
    `${most} calls at once is all that this account has in ${region}; ${usual} is usual`,
    {
      where: 'shell',
      line: `aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value ${usual} --region ${region}`,
    },
  );

const countOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

// What the stores behind the relay allow in this account: tables, and the secrets of channels.

/** What AWS gives a table in most regions; a new account may have less. */
const usualTableUnits = 40_000;
const secretReads = '10,000 reads a second';

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeLimits.html */
function assessTables({ tableReads, tableWrites }: TableLimits, region: string): Finding[] {
  const found = `a table may have ${tableReads} reads and ${tableWrites} writes a second; a billed call writes to quotas twice`;
  if (Math.min(tableReads, tableWrites) >= usualTableUnits) return [ok('tables', found)];
  return [
    attention('tables', `${found}; ${usualTableUnits} is usual`, {
      where: 'shell',
      line: `aws service-quotas list-service-quotas --service-code dynamodb --region ${region}`,
    }),
  ];
}

/**
 * A secret is read once in some minutes by each environment, but a wave of new environments reads at once.
 * https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-throughput.html
 * @param isFast undefined: no channel has a secret there
 */
function assessParameters(
  references: readonly string[],
  isFast: boolean | undefined,
  region: string,
): Finding[] {
  const check = 'secrets';
  if (isFast === undefined)
    return [
      references.length === 0
        ? ok(check, 'no channel has a secret')
        : ok(check, `all ${references.length} are in Secrets Manager, which allows ${secretReads}`),
    ];
  const parameters = references.filter(isParameter);
  const found = `${parameters.length} of ${references.length} are in Parameter Store, which allows`;
  if (isFast) return [ok(check, `${found} ${secretReads} here`)];
  return [
    attention(check, `${found} 40 reads a second: many new environments at once would be refused`, {
      where: 'shell',
      line: `aws ssm update-service-setting --setting-id /ssm/parameter-store/high-throughput-enabled --setting-value true --region ${region}`,
    }),
  ];
}

const isParameter = (reference: string): boolean => reference.startsWith('ssm:');

// Models of channels that the functions' own role calls: whether AWS has them in the region, gives this account access,
// and whether the deployment lets the role call them.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_GetFoundationModelAvailability.html

const roleModelsOption = 'bedrockModels';
/** Each is a request of its own. */
const modelsMax = 50;

/** The geography of an inference profile comes before the model's name: `us.vendor.model`. */
const profileName = /^(?:[a-z]{2}(?:-[a-z]+)?|apac|global)\.([a-z0-9-]+\..+)$/;

interface RoleModelParts {
  account: AwsAccount;
  channels: readonly ChannelRow[];
  /** The number of the AWS account, where it is known. */
  number: string;
  file: StageFile;
  /** The option as deployed. */
  deployed: unknown;
}

interface RoleModel {
  region: string;
  name: string;
  channel: string;
}

async function assessRoleModels(parts: RoleModelParts): Promise<Finding[]> {
  const wanted = parts.channels.flatMap(roleModelsOf);
  const different = [...new Map(wanted.map((each) => [`${each.region} ${each.name}`, each])).values()];
  const regions = [...new Set(different.map(({ region }) => region))];
  const findings = await Promise.all(
    regions.map((region) =>
      findingsOf('models', async () => {
        const listed = await parts.account.models(region);
        const here = different.filter((each) => each.region === region);
        const looked = here.slice(0, modelsMax).map((each) => assessModel(parts, listed, each));
        return [...(await Promise.all(looked)).flat(), ...unseenOf(here.length, region)];
      }),
    ),
  );
  return findings.flat();
}

const unseenOf = (count: number, region: string): Finding[] =>
  count <= modelsMax ? [] : [attention('models', `${region}: only ${modelsMax} of ${count} were looked at`)];

function roleModelsOf(channel: ChannelRow): RoleModel[] {
  const region = channelTypes[channel.type].awsScope?.(channel).region;
  if (region === undefined || !channel.state) return [];
  return channel.models.map((model) => ({
    region,
    name: upstreamModel(channel, model),
    channel: channel.id,
  }));
}

async function assessModel(
  parts: RoleModelParts,
  listed: readonly ListedModel[],
  { region, name, channel }: RoleModel,
): Promise<Finding[]> {
  const check = `model ${name}`;
  const profiled = profileName.exec(name)?.[1];
  const model = profiled ?? name;
  const found = listed.find(({ id }) => id === model);
  const of = `channel ${channel}, ${region}`;
  if (!found)
    return [attention(check, `${of}: AWS lists no such model there; correct models or mapper of the row`)];
  const missing = missingAccess(await parts.account.modelAccess(region, model));
  const findings = [
    ...missing.map((why) => attention(check, `${of}: ${why}`, accessPage(region))),
    ...(found.isActive ? [] : [attention(check, `${of}: AWS calls it LEGACY and will remove it`)]),
    ...(found.streams ? [] : [attention(check, `${of}: its answers do not stream`)]),
    ...permissionOf(parts, { check, region, name, isProfile: profiled !== undefined }),
  ];
  return findings.length > 0 ? findings : [ok(check, `${of}: may be called`)];
}

const missingAccess = ({ isAuthorized, hasAgreement, isEntitled, isInRegion }: ModelAccess): string[] => [
  ...(isInRegion ? [] : ['the model is not in this region']),
  ...(isAuthorized ? [] : ['this account is not authorised for the model']),
  ...(isEntitled ? [] : ['this account has no entitlement to the model']),
  ...(hasAgreement ? [] : ["the agreement with the model's vendor is not made"]),
];

const accessPage = (region: string) => ({
  where: 'browser',
  line: `https://${region}.console.aws.amazon.com/bedrock/home?region=${region}#/model-catalog`,
});

interface Called {
  check: string;
  region: string;
  name: string;
  isProfile: boolean;
}

/** The deployment names each model that the role may call. */
function permissionOf(
  { file, deployed, number }: RoleModelParts,
  { check, region, name, isProfile }: Called,
): Finding[] {
  const given = file.options?.[roleModelsOption] ?? deployed ?? [];
  const items: unknown[] = Array.isArray(given) ? given : [given];
  if (JSON.stringify(items).includes(`/${name}"`)) return [];
  const item = isProfile
    ? { profile: `arn:aws:bedrock:${region}:${number}:inference-profile/${name}`, regions: [region] }
    : `arn:aws:bedrock:${region}::foundation-model/${name}`;
  const hint = isProfile ? '; regions are all those that the profile routes to' : '';
  return [
    attention(
      check,
      `the functions' role may not call it${hint}`,
      lineOf(file.name, roleModelsOption, [...items, item]),
    ),
  ];
}
