/** The option `bedrockModels`: the Bedrock models that the answering functions may call, and the ARNs of their permissions. */
import * as z from 'zod/mini';
import { matchText, regionPattern } from './option-values.ts';

/**
 * The ARN of a foundation model or of an inference profile, without wildcards, so that each new model is a decision. The
 * model of a global profile has an ARN without region.
 */
const modelPattern =
  /^arn:aws[a-z-]*:bedrock:[a-z0-9-]*:(\d{12})?:(foundation-model|inference-profile|application-inference-profile)\/[A-Za-z0-9._:-]+$/;

/** A profile that AWS made: partition, region, geography, model. */
const profilePattern =
  /^arn:(aws[a-z-]*):bedrock:([a-z0-9-]+):\d{12}:inference-profile\/([a-z-]+)\.([A-Za-z0-9._:-]+)$/;

const wantedModels =
  'ARNs of Bedrock models without wildcards, such as arn:aws:bedrock:us-west-2::foundation-model/openai.gpt-oss-120b-1:0, or {profile, regions}';
const wantedProfile =
  'the ARN of an inference profile, such as arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-...';
const wantedRegions =
  'the regions that the profile routes to, such as ["us-east-1", "us-west-2"] (aws bedrock get-inference-profile lists them)';

const Profile = z.strictObject(
  {
    profile: z.string(wantedProfile).check(z.regex(profilePattern, wantedProfile)),
    regions: z.optional(z.array(matchText(regionPattern, wantedRegions), wantedRegions)),
  },
  wantedModels,
);
type Profile = z.infer<typeof Profile>;
type Item = string | Profile;

const isProfile = (item: unknown): item is object => typeof item === 'object' && item !== null;

/** A list of ARNs, and of profiles with the regions that they route to. */
export const BedrockModels = z
  .array(
    // A plain union would report a profile with a wrong region only as "fits neither".
    z.union([z.string(wantedModels).check(z.regex(modelPattern, wantedModels)), Profile], {
      error: ({ input }) => (isProfile(input) ? findProfileProblem(input) : wantedModels),
    }),
    wantedModels,
  )
  .check(({ value, issues }) => {
    for (const [index, item] of value.entries()) {
      const message = findItemProblem(item, value);
      if (message !== undefined) issues.push({ code: 'custom', message, input: item, path: [index] });
    }
  });

const findProfileProblem = (item: object): string =>
  z.safeParse(Profile, item).error?.issues[0]?.message ?? wantedModels;

function findItemProblem(item: Item, all: readonly Item[]): string | undefined {
  if (typeof item !== 'string') {
    const isGlobal = profilePattern.exec(item.profile)?.[3] === 'global';
    return isGlobal || (item.regions ?? []).length > 0 ? undefined : wantedRegions;
  }
  // Without a right to the profile's model, every call gets a 403.
  const [profile, , , , model] = profilePattern.exec(item) ?? [];
  const arns = listModelArns(all);
  if (profile === undefined || arns.some((other) => other.endsWith(`:foundation-model/${model}`)))
    return undefined;
  return `also the ARNs of ${model} in every region that the profile routes to, or {profile, regions}`;
}

/** Lists the ARNs that the items need: a profile needs its own ARN and that of its model in each of its regions. */
export const listModelArns = (items: readonly Item[]): string[] => [
  ...new Set(items.flatMap((item) => (typeof item === 'string' ? [item] : listProfileArns(item)))),
];

function listProfileArns({ profile, regions = [] }: Profile): string[] {
  const [, partition, source = '', geography, model] = profilePattern.exec(profile) ?? [];
  // For a global profile AWS checks the model's ARN in the region of the call, and once more without a region.
  const places = new Set([source, ...(geography === 'global' ? [''] : []), ...regions]);
  return [
    profile,
    ...[...places].map((place) => `arn:${partition}:bedrock:${place}::foundation-model/${model}`),
  ];
}
