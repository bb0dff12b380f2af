/**
 * Looks at the AWS account and region of a deployed relay: what bounds it, and what the next deployment has to say. Each check
 * gives findings of one line; what cannot be read is a finding of its own and spoils no other check. Changes nothing.
 */
import { secretsOf, type ChannelRow } from '../config/rows/channel-row.ts';
import { isUnbound, type NamedSecret } from '../config/rows/secret-reference.ts';
import { upstreamModelOf } from '../upstreams/called-channel.ts';
import { channelTypes } from '../upstreams/types/channel-types.ts';
import { canonicalJson, listTexts } from '../wire/json.ts';
import { listSecrets } from './config/row-changes.ts';
import { listUsableChannels } from './channels/list-channels.ts';
import type { AwsAccount, Concurrency, ListedModel, OperatorPorts, TableLimits } from './operator-ports.ts';
import { formatCount, Failure } from './plan.ts';

export interface DoctorFinding {
  check: string;
  state: 'ok' | 'attention' | 'does not apply';
  found: string;
  /** The exact text for a file, or the command for a `shell`. */
  set?: { where: string; line: string };
}

/** In the form in which a stack publishes them: what is not a default; `memory.chat` for a field of a map. */
export type Options = Readonly<Record<string, unknown>>;

/** The committed options of a stage, `relay.json`, or `relay.<stage>.json`. `options` undefined: there is no such file here. */
export interface StageFile {
  name: string;
  deploy: string;
  options: Options | undefined;
  problem?: string;
}

interface Examination {
  account: AwsAccount;
  file: StageFile;
  readOptions: (outputs: ReadonlyMap<string, string>) => Options | undefined;
  /** Why a relay cannot run in a region; undefined: it can. */
  regionProblem: (region: string) => string | undefined;
}

/** Facts for all checks. `unused` counts rows that are disabled or invalid; `check` reports on those. */
interface Known extends Examination {
  region: string;
  deployed: Options | undefined;
  outputs: ReadonlyMap<string, string>;
  channels: readonly ChannelRow[];
  unused: number;
}

export async function examineAccount(
  { tables, target }: OperatorPorts,
  examination: Examination,
): Promise<DoctorFinding[]> {
  if (target.local) return onOneMachine;
  const { account, file, regionProblem, readOptions } = examination;
  const region = await account.region();
  let outputs: Known['outputs'] = new Map();
  let deployed: Options | undefined;
  const stack = await lookedAt('stack', async () => {
    const found = await account.stack();
    if (found) [outputs, deployed] = [found.outputs, readOptions(found.outputs)];
    return [checkStack(found?.status)];
  });
  const [rows, settings] = await Promise.all([tables.scan('channels'), tables.scan('settings')]);
  const channels = listUsableChannels(rows, target).filter(({ state }) => state);
  const unused = rows.length - channels.length;
  const unbound = listSecrets({ channels: rows, settings }).filter(isUnbound);
  const known: Known = { ...examination, region, deployed, outputs, channels, unused };
  const problem = regionProblem(region);
  const looked = await Promise.all([
    lookedAt('concurrency', async () => checkConcurrency(known, await account.concurrency())),
    lookedAt('tables', async () => [checkTableLimits(region, await account.tableLimits())]),
    lookedAt('secrets', async () => [
      await checkSecretReads(known),
      ...checkSecretPaths(unbound, target.stack),
    ]),
    checkModelPrices(known),
  ]);
  return [
    problem === undefined
      ? reportOk('region', `${region}: answers stream there`)
      : reportAttention('region', problem),
    ...stack,
    ...checkOptions(file, deployed),
    ...looked.flat(),
  ];
}

const onOneMachine = Object.entries({
  region: 'streaming always works',
  stack: 'nothing is deployed',
  options: '`npm start` takes its options from the environment, see docs/local.md',
  concurrency: 'each function has 16 environments',
  tables: 'the emulator has no quotas',
  secrets: 'rows use environment variables',
  models: 'Bedrock models are not available',
}).map(([check, why]): DoctorFinding => ({ check, state: 'does not apply', found: `local stack: ${why}` }));

const reportOk = (check: string, found: string): DoctorFinding => ({ check, state: 'ok', found });
const reportAttention = (check: string, found: string, set?: DoctorFinding['set']): DoctorFinding => ({
  check,
  state: 'attention',
  found,
  ...(set && { set }),
});
const run = (line: string): DoctorFinding['set'] => ({ where: 'shell', line });

async function lookedAt(check: string, look: () => Promise<DoctorFinding[]>): Promise<DoctorFinding[]> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [reportAttention(check, `unknown: ${error.message}`)];
  }
}

/** A deployment that ended well is COMPLETE; a rolled back one runs, but not what was wanted. */
function checkStack(status: string | undefined): DoctorFinding {
  if (status === undefined)
    return reportAttention('stack', 'no CloudFormation stack of this name in this account and region');
  if (/^(CREATE|UPDATE|IMPORT)_COMPLETE$/.test(status)) return reportOk('stack', status);
  const why = status.endsWith('_IN_PROGRESS')
    ? 'wait until it finishes, then run this again'
    : 'the last deployment failed; see its events';
  return reportAttention('stack', `${status}: ${why}`);
}

/** Compares the options file with those that the deployed stack was made from. */
function checkOptions(
  { name, options, problem, deploy }: StageFile,
  deployed: Options | undefined,
): DoctorFinding[] {
  const check = 'options';
  if (problem !== undefined) return [reportAttention(check, problem)];
  if (deployed === undefined) {
    const found = 'the stack does not publish its options';
    return [{ check, state: 'does not apply', found }];
  }
  const names = [...new Set([...Object.keys(deployed), ...Object.keys(options ?? {})])].toSorted();
  if (options === undefined && names.length === 0)
    return [reportOk(check, `no ${name}, and no options are deployed`)];
  const findings = names.flatMap((option) => {
    const [given, has] = [options?.[option], deployed[option]];
    if (canonicalJson(given ?? null) === canonicalJson(has ?? null)) return [];
    if (given === undefined)
      return [
        reportAttention(check, `${option} is deployed but missing from ${name}`, lineOf(name, option, has)),
      ];
    const found = has === undefined ? 'not deployed' : `but ${JSON.stringify(has)} is deployed`;
    return [
      reportAttention(check, `${option} is ${JSON.stringify(given)} in ${name}, ${found}`, run(deploy)),
    ];
  });
  return findings.length > 0 ? findings : [reportOk(check, `${name} matches the deployed stack`)];
}

function lineOf(name: string, option: string, value: unknown): DoctorFinding['set'] {
  const [first = option, ...fields] = option.split('.');
  const nested = fields.reduceRight((inner, field) => ({ [field]: inner }), value);
  return { where: name, line: `${JSON.stringify(first)}: ${JSON.stringify(nested)}` };
}

const countOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** AWS's default for established accounts, of which some must stay unreserved. */
const usualConcurrency = 1000;
const unreservedMin = 100;

/** The functions of endpoints: each reserves as much. */
const reserving = ['chat', 'responses', 'messages'];

/**
 * How many calls at once the relay has. Without a reservation the functions of endpoints share what the
 * account has with its own background jobs. https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
 */
function checkConcurrency(
  { region, file, deployed }: Known,
  { most, unreserved }: Concurrency,
): DoctorFinding[] {
  const check = 'concurrency';
  const option = 'reservedConcurrency';
  const given = countOf(file.options?.[option] ?? deployed?.[option]);
  const released = (countOf(deployed?.[option]) ?? 0) * reserving.length;
  const max = Math.floor((unreserved + released - unreservedMin) / reserving.length);
  const each = `each of ${reserving.join(', ')}`;
  const room = `the account allows ${most} concurrent executions in this region, ${unreserved} unreserved`;
  const set = max < 1 ? undefined : lineOf(file.name, option, max);
  const reportWrong = (found: string): DoctorFinding => reportAttention(check, room + found, set);
  const checkReservation = (): DoctorFinding => {
    if ((file.options ?? deployed)?.['compute'] === 'ecs')
      return reportOk(check, `${room}; the relay runs on servers and needs none`);
    if (given !== undefined && given <= max)
      return reportOk(check, `${room}; ${given} reserved for ${each}, at most ${max} possible`);
    const out = given === undefined ? '' : `; remove ${option} from ${file.name}`;
    if (max < 1)
      return reportWrong(`: none can be reserved because AWS keeps ${unreservedMin} unreserved${out}`);
    if (given !== undefined)
      return reportWrong(`: ${option} ${given} is too high, the deployment would fail`);
    const reserved = deployed
      ? "none reserved: calls can use all concurrency, so the relay's background jobs may be throttled"
      : 'the reservation of the relay is unknown';
    return reportWrong(`, ${reserved}; up to ${max} possible for ${each}`);
  };
  if (most >= usualConcurrency) return [checkReservation()];
  const small = `this account allows only ${most} concurrent executions in ${region}; ${usualConcurrency} is usual`;
  const ask = `aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value ${usualConcurrency} --region ${region}`;
  return [reportAttention(check, small, run(ask)), checkReservation()];
}

/** AWS's default for a table in most regions; new accounts may have less. */
const usualTableUnits = 40_000;

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeLimits.html */
function checkTableLimits(region: string, { tableReads, tableWrites }: TableLimits): DoctorFinding {
  const found = `a table allows ${tableReads} reads and ${tableWrites} writes a second; a billed call makes two writes`;
  if (Math.min(tableReads, tableWrites) >= usualTableUnits) return reportOk('tables', found);
  const list = `aws service-quotas list-service-quotas --service-code dynamodb --region ${region}`;
  return reportAttention('tables', `${found}; ${usualTableUnits} is usual`, run(list));
}

/**
 * A secret is read once in some minutes by each environment, but a wave of new environments reads at once.
 * https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-throughput.html
 */
async function checkSecretReads({ account, channels, region, unused }: Known): Promise<DoctorFinding> {
  const check = 'secrets';
  const fast = '10,000 reads a second';
  const references = [...new Set(channels.flatMap(secretsOf))];
  if (references.length === 0)
    return reportOk(
      check,
      `no active channel has a secret${unused > 0 ? `; ${formatCount(unused, 'channel is', 'channels are')} disabled or invalid: see \`check\`` : ''}`,
    );
  const parameters = references.filter((reference) => reference.startsWith('ssm:'));
  if (parameters.length === 0)
    return reportOk(
      check,
      `${formatCount(references.length, 'secret')} in Secrets Manager, which allows ${fast}`,
    );
  const found = `${parameters.length} of ${formatCount(references.length, 'secret')} in Parameter Store, which allows`;
  if (await account.hasFastParameters()) return reportOk(check, `${found} ${fast} here`);
  const set = `aws ssm update-service-setting --setting-id /ssm/parameter-store/high-throughput-enabled --setting-value true --region ${region}`;
  const slow = `${found} 40 reads a second: a burst of new environments would be throttled`;
  return reportAttention(check, slow, run(set));
}

function checkSecretPaths(unbound: readonly NamedSecret[], stack: string): DoctorFinding[] {
  if (unbound.length === 0) return [];
  const found = `${formatCount(unbound.length, 'secret path does', 'secret paths do')} not name a purpose, so other functions can read the secret`;
  return [reportAttention('secrets', found, run(`npx --no relay-ops secret move --stack ${stack}`))];
}

/** Each is a request of its own. */
const modelsMax = 50;

/** The geography of an inference profile comes before the model's name: `us.vendor.model`. */
const profileName = /^(?:[a-z]{2}(?:-[a-z]+)?|apac|global)\.([a-z0-9-]+\..+)$/;

/**
 * Models of channels that the functions' own role calls: whether AWS has them in the region, gives this account access,
 * and whether the deployment lets the role call them.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_GetFoundationModelAvailability.html
 */
async function checkModelPrices(known: Known): Promise<DoctorFinding[]> {
  const wanted = known.channels.flatMap((channel) => {
    const region = channelTypes[channel.type].awsScope?.(channel).region;
    return region === undefined
      ? []
      : channel.models.map((model) => ({
          region,
          name: upstreamModelOf(channel, model),
          channel: channel.id,
        }));
  });
  const different = new Map(wanted.map((each) => [`${each.region} ${each.name}`, each]));
  const findings = [...Map.groupBy(different.values(), ({ region }) => region)].map(([region, here]) =>
    lookedAt('models', async () => {
      const listed = await known.account.models(region);
      const looked = here.slice(0, modelsMax).map((each) => assessModel(known, listed, each));
      const unseen = `${region}: checked only ${modelsMax} of ${here.length}`;
      return [
        ...(await Promise.all(looked)).flat(),
        ...(here.length <= modelsMax ? [] : [reportAttention('models', unseen)]),
      ];
    }),
  );
  return (await Promise.all(findings)).flat();
}

async function assessModel(
  known: Known,
  listed: readonly ListedModel[],
  { region, name, channel }: { region: string; name: string; channel: string },
): Promise<DoctorFinding[]> {
  const check = `model ${name}`;
  const profiled = profileName.exec(name)?.[1];
  const found = listed.find(({ id }) => id === (profiled ?? name));
  const of = `channel ${channel}, ${region}`;
  if (!found)
    return [
      reportAttention(
        check,
        `${of}: AWS does not offer this model there; correct models or mapper of the channel`,
      ),
    ];
  const access = await known.account.modelAccess(region, found.id);
  const missing = listTexts(
    !access.isInRegion && 'the model is not available in this region',
    !access.isAuthorized && 'this account is not authorized for the model',
    !access.isEntitled && 'this account has no entitlement to the model',
    !access.hasAgreement && "the model vendor's agreement is not accepted",
  );
  const catalog = `https://${region}.console.aws.amazon.com/bedrock/home?region=${region}#/model-catalog`;
  const findings = [
    ...missing.map((why) => reportAttention(check, `${of}: ${why}`, { where: 'browser', line: catalog })),
    ...(found.isActive ? [] : [reportAttention(check, `${of}: AWS marks it as LEGACY and will remove it`)]),
    ...(found.streams ? [] : [reportAttention(check, `${of}: it does not support streaming`)]),
    ...permissionOf(known, { region, name, isProfile: profiled !== undefined }),
  ];
  return findings.length > 0 ? findings : [reportOk(check, `${of}: available`)];
}

/** The deployment names each model that the role may call. */
function permissionOf(
  { file, deployed, outputs }: Known,
  { region, name, isProfile }: { region: string; name: string; isProfile: boolean },
): DoctorFinding[] {
  const option = 'bedrockModels';
  const items: unknown[] = [file.options?.[option] ?? deployed?.[option] ?? []].flat();
  if (JSON.stringify(items).includes(`/${name}"`)) return [];
  // The ARNs of policies among the outputs have the number of the account.
  const number = /arn:[\w-]+:iam::(\d{12}):/.exec([...outputs.values()].join(' '))?.[1] ?? '<account>';
  const item = isProfile
    ? { profile: `arn:aws:bedrock:${region}:${number}:inference-profile/${name}`, regions: [region] }
    : `arn:aws:bedrock:${region}::foundation-model/${name}`;
  const hint = isProfile ? '; list all regions that the profile routes to' : '';
  const why = `the functions' role is not allowed to call it${hint}`;
  return [reportAttention(`model ${name}`, why, lineOf(file.name, option, [...items, item]))];
}
