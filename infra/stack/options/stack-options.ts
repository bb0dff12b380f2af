/**
 * What an operator may say about a deployment: the CDK context (`-c name=value`), checked once and turned into
 * one typed object. The CLI passes every value as text, `cdk.json` may hold the real types: both are read.
 */
import type { Node } from 'constructs';
import { bedrockModelPattern } from '../constructs/bedrock-access.ts';

export interface StackOptions {
  /** Stack name and prefix of everything that has a name: `relay`, or `relay-<stage>`. */
  stackName: string;
  /** Tables go with the stack, unprotected: for trials. */
  disposable: boolean;
  /** The public host name and its certificate (in us-east-1, where CloudFront looks for it). */
  domain?: { name: string; certificateArn: string };
  alarmEmail?: string;
  /** Numbers of the origin secrets, oldest first: CloudFront sends the last, functions accept all. */
  originSecrets: number[];
  /** ARNs of the Bedrock models that channels may call with the functions' own role. */
  bedrockModels: string[];
}

const stagePattern = /^[a-z][a-z0-9-]{0,20}$/;
const domainPattern = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;
const certificatePattern = /^arn:aws:acm:us-east-1:\d{12}:certificate\/[0-9a-f-]+$/;
const emailPattern = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/** Reads and checks the context. Throws an Error that names the context key, what was found and what is wanted. */
export function readStackOptions(node: Node): StackOptions {
  const stage = readText(
    node,
    'stage',
    stagePattern,
    'a lower-case name of at most 21 letters, digits, dashes',
  );
  const domain = readDomain(node);
  const alarmEmail = readText(node, 'alarmEmail', emailPattern, 'an e-mail address');
  return {
    stackName: stage === undefined ? 'relay' : `relay-${stage}`,
    disposable: readSwitch(node, 'disposable'),
    originSecrets: readOriginSecrets(node),
    bedrockModels: readBedrockModels(node),
    ...(domain && { domain }),
    ...(alarmEmail !== undefined && { alarmEmail }),
  };
}

function refuse(key: string, found: unknown, wanted: string): never {
  throw new Error(`context ${key}: found ${JSON.stringify(found)}, wanted ${wanted}`);
}

function readText(node: Node, key: string, pattern: RegExp, wanted: string): string | undefined {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null) return undefined;
  if (typeof found !== 'string' || !pattern.test(found)) refuse(key, found, `${wanted} (${pattern.source})`);
  return found;
}

function readSwitch(node: Node, key: string): boolean {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null || found === false || found === 'false') return false;
  if (found === true || found === 'true') return true;
  return refuse(key, found, 'true or false');
}

function readDomain(node: Node): StackOptions['domain'] {
  const name = readText(node, 'domain', domainPattern, 'a lower-case host name');
  const certificateArn = readText(
    node,
    'certificateArn',
    certificatePattern,
    'the ARN of an ACM certificate in us-east-1, the one region CloudFront reads certificates from',
  );
  if (name === undefined && certificateArn === undefined) return undefined;
  if (certificateArn === undefined) {
    throw new Error(
      'context domain needs context certificateArn: -c domain=... -c certificateArn=arn:aws:acm:...',
    );
  }
  if (name === undefined) {
    throw new Error(
      'context certificateArn needs context domain: -c domain=... -c certificateArn=arn:aws:acm:...',
    );
  }
  return { name, certificateArn };
}

function readOriginSecrets(node: Node): number[] {
  const found: unknown = node.tryGetContext('originSecrets') ?? [1];
  const wanted = 'a list of 1 to 3 different whole numbers, the newest last, such as [1] or [1,2]';
  const list: unknown = typeof found === 'string' ? parseJson(found) : found;
  if (!Array.isArray(list) || list.length < 1 || list.length > 3)
    return refuse('originSecrets', found, wanted);
  const numbers = list.filter((item): item is number => Number.isInteger(item) && item >= 1 && item <= 9999);
  if (numbers.length !== list.length || new Set(numbers).size !== list.length) {
    return refuse('originSecrets', found, wanted);
  }
  return numbers;
}

/** Joined by commas, as the CLI passes them, or a list. No wildcards: a new model is a decision. */
function readBedrockModels(node: Node): string[] {
  const found: unknown = node.tryGetContext('bedrockModels') ?? [];
  const list: unknown[] =
    typeof found === 'string' ? found.split(',') : Array.isArray(found) ? found : [found];
  const arns = list
    .filter((item) => item !== '')
    .map((item) => (typeof item === 'string' ? item.trim() : item));
  return arns.map((arn) =>
    typeof arn === 'string' && bedrockModelPattern.test(arn)
      ? arn
      : refuse(
          'bedrockModels',
          arn,
          'ARNs of Bedrock models without wildcards, such as arn:aws:bedrock:us-west-2::foundation-model/openai.gpt-oss-120b-1:0',
        ),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
