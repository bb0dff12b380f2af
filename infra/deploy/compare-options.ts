/** Compares the options of a file with those of the deployed stack. */
import { isDeepStrictEqual } from 'node:util';
import { BedrockModels, modelArns } from '../stack/options/bedrock-models.ts';
import { optionNamed, type StageOptions } from '../stack/options/option-table.ts';
import { writtenOptions, type PublishedOptions } from '../stack/options/published-options.ts';

export interface Comparison {
  /** One line an option that is not the same. */
  differences: readonly string[];
  /** Options that the stack has, the file has not, and nobody accepted to lose. */
  refused: readonly string[];
  /** Why a rotation would interrupt calls, a line each. */
  broken: readonly string[];
}

/**
 * @param wanted what the file says
 * @param accepted names of options that may be dropped; of a map also the whole: `memory` for `memory.chat`
 */
export function compareOptions(
  deployed: PublishedOptions,
  wanted: StageOptions,
  accepted: readonly string[],
): Comparison {
  const isAccepted = (name: string): boolean =>
    accepted.some((each) => name === each || name.startsWith(`${each}.`));
  // A default that is written into the file was not forgotten.
  const written = writtenOptions(wanted);
  const dropped = Object.keys(deployed).filter((name) => !Object.hasOwn(written, name));
  const changed = Object.entries(written).flatMap(([name, value]) => {
    const before = valueIn(deployed, name);
    if (isDeepStrictEqual(before, value)) return [];
    return before === undefined
      ? [`${name}: new, ${JSON.stringify(value)}`]
      : [`${name}: ${JSON.stringify(before)} becomes ${JSON.stringify(value)}`];
  });
  const lost = dropped.map((name) => {
    const how = isAccepted(name) ? 'dropped, as accepted' : 'would be dropped';
    return `${name}: ${how}, the stack has ${JSON.stringify(deployed[name])}`;
  });
  const models = Object.hasOwn(written, 'bedrockModels') ? lostModels(deployed, wanted) : [];
  return {
    differences: [...changed, ...lost],
    refused: [...dropped, ...models].filter((name) => !isAccepted(name)),
    broken: [
      ...brokenRotation('originSecrets', deployed, wanted),
      ...brokenRotation('sealKeys', deployed, wanted),
    ],
  };
}

/** Undefined: the stack has none, and there is no default. */
const valueIn = (deployed: PublishedOptions, name: string): unknown =>
  Object.hasOwn(deployed, name) ? deployed[name] : optionNamed(name)?.default;

/** Channels would get a 403 for a model that is taken out, so each is an option that is dropped: `bedrockModels.arn:...`. */
function lostModels(deployed: PublishedOptions, { bedrockModels = [] }: StageOptions): string[] {
  const before = BedrockModels.safeParse(deployed['bedrockModels']);
  const kept = new Set(modelArns(bedrockModels));
  return modelArns(before.success ? before.data : [])
    .filter((model) => !kept.has(model))
    .map((model) => `bedrockModels.${model}`);
}

/** What the number that is in use is for, until a second deployment. */
const inUse = {
  originSecrets: 'CloudFront sends it for minutes yet, and functions without it would answer 403',
  sealKeys: 'it opens the state of turns that clients hold; keep it for 90 days',
} as const;

/** In one step nothing old would be accepted while the new one is not yet everywhere. */
function brokenRotation(
  name: keyof typeof inUse,
  deployed: PublishedOptions,
  wanted: StageOptions,
): string[] {
  const before = valueIn(deployed, name) as readonly number[];
  const after = wanted[name] ?? (optionNamed(name)?.default as readonly number[]);
  const last = before.at(-1);
  if (last === undefined || after.includes(last)) return [];
  const isBack = name === 'sealKeys' && Math.max(...after) < last;
  const between = JSON.stringify([last, ...after].toSorted((a, b) => a - b));
  const way = isBack
    ? `Numbers ascend: add one above ${last} instead`
    : `Deploy ${name === 'sealKeys' ? between : JSON.stringify([last, ...after])} first, then ${JSON.stringify(after)}`;
  return [`${name} without ${last}: ${inUse[name]}. ${way}`];
}
