/** The options that are lists: numbers of origin secrets, ARNs of Bedrock models. */
import type { Node } from 'constructs';
import { refuse } from './context.ts';

/** A foundation model, or an inference profile together with the models that it leads to. */
const bedrockModelPattern =
  /^arn:aws[a-z-]*:bedrock:[a-z0-9-]+:(\d{12})?:(foundation-model|inference-profile|application-inference-profile)\/[A-Za-z0-9._:-]+$/;

export function readOriginSecrets(node: Node): number[] {
  const found: unknown = node.tryGetContext('originSecrets') ?? [1];
  const list: unknown = typeof found === 'string' ? parseJson(found) : found;
  if (isNumberList(list) && list.length >= 1 && list.length <= 3) return list;
  const wanted = 'a list of 1 to 3 different whole numbers, the newest last, such as [1] or [1,2]';
  return refuse('originSecrets', found, wanted);
}

const isNumberList = (list: unknown): list is number[] =>
  Array.isArray(list) &&
  new Set(list).size === list.length &&
  list.every((item) => Number.isInteger(item) && item >= 1 && item <= 9999);

/** Joined by commas, as the CLI passes them, or a list. Without wildcards: a new model is a decision. */
export function readBedrockModels(node: Node): string[] {
  const found: unknown = node.tryGetContext('bedrockModels') ?? [];
  const list: unknown[] = typeof found === 'string' ? found.split(',') : [found].flat();
  return list
    .filter((item) => item !== '')
    .map((item) => {
      const arn = typeof item === 'string' ? item.trim() : item;
      if (typeof arn === 'string' && bedrockModelPattern.test(arn)) return arn;
      return refuse(
        'bedrockModels',
        arn,
        'ARNs of Bedrock models without wildcards, such as arn:aws:bedrock:us-west-2::foundation-model/openai.gpt-oss-120b-1:0',
      );
    });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
