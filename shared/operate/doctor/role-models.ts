/**
 * Models of channels that the functions' own role calls: whether AWS has them in the region, gives this account access,
 * and whether the deployment lets the role call them.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_GetFoundationModelAvailability.html
 */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import type { AwsAccount, ListedModel, ModelAccess } from '../aws-account.ts';
import { attention, findingsOf, ok, type Finding } from './finding.ts';
import { lineOf, type StageFile } from './stage-file.ts';

const option = 'bedrockModels';
/** Each is a request of its own. */
const modelsMax = 50;

/** The geography of an inference profile comes before the model's name: `us.vendor.model`. */
const profileName = /^(?:[a-z]{2}(?:-[a-z]+)?|apac|global)\.([a-z0-9-]+\..+)$/;

export interface RoleModelParts {
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

export async function assessRoleModels(parts: RoleModelParts): Promise<Finding[]> {
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
  const given = file.options?.[option] ?? deployed ?? [];
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
      lineOf(file.name, option, [...items, item]),
    ),
  ];
}
