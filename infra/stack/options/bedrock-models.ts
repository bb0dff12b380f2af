/** The option `bedrockModels`: which models of Bedrock the answering functions may call. */
import type { Node } from 'constructs';
import { refuse } from './context.ts';

const option = 'bedrockModels';
const region = /^[a-z]{2,3}(-[a-z]+)+-\d{1,2}$/;

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

/**
 * Reads a list, or comma-separated text from the CLI. An item is an ARN, or in `cdk.json` also a profile with the regions
 * that it routes to, which stands for the ARNs of the profile and of its model in each of them.
 */
export function readBedrockModels(node: Node): string[] {
  const found: unknown = node.tryGetContext(option) ?? [];
  const items: unknown[] = typeof found === 'string' ? found.split(',') : [found].flat();
  const arns = items.filter((item) => item !== '').flatMap(readItem);
  for (const arn of arns) checkProfile(arn, arns);
  return [...new Set(arns)];
}

function readItem(item: unknown): string[] {
  if (typeof item === 'object' && item !== null && 'profile' in item) return readProfile(item);
  const arn = typeof item === 'string' ? item.trim() : item;
  return typeof arn === 'string' && modelPattern.test(arn) ? [arn] : refuse(option, arn, wantedModels);
}

function readProfile(item: { profile: unknown; regions?: unknown }): string[] {
  const { profile, regions = [], ...others } = item;
  const [arn, partition, source, geography, model] = profilePattern.exec(String(profile)) ?? [];
  if (arn === undefined || source === undefined || Object.keys(others).length > 0)
    return refuse(
      option,
      item,
      '{profile, regions} with the ARN of an inference profile, such as arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-...',
    );
  const isGlobal = geography === 'global';
  const named = Array.isArray(regions) && regions.every((name) => region.test(String(name))) ? regions : [];
  if (named.length === 0 && !(isGlobal && Array.isArray(regions) && regions.length === 0))
    return refuse(
      option,
      item,
      'the regions that the profile routes to, such as ["us-east-1", "us-west-2"] (aws bedrock get-inference-profile lists them)',
    );
  // AWS asks for the model of a global profile in the region of the call, and once without a region.
  const places = new Set<string>([source, ...(isGlobal ? [''] : []), ...(named as string[])]);
  const models = [...places].map((place) => `arn:${partition}:bedrock:${place}::foundation-model/${model}`);
  return [arn, ...models];
}

/** A profile without its model answers every call with a 403. */
function checkProfile(arn: string, arns: string[]): void {
  const [profile, , , , model] = profilePattern.exec(arn) ?? [];
  if (profile === undefined || arns.some((other) => other.endsWith(`:foundation-model/${model}`))) return;
  refuse(
    option,
    arn,
    `also the ARNs of ${model} in every region that the profile routes to, or {profile, regions}`,
  );
}
