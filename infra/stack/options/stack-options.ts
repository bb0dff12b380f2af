/**
 * What an operator may say about a deployment: the CDK context (`-c name=value`), checked once and turned into
 * one typed object. The CLI passes every value as text, `cdk.json` may hold the real types: both are read.
 */
import type { Node } from 'constructs';
import { readSwitch, readText, refuse, type TextRule } from './context.ts';
import { readOriginSecrets } from './origin-secret-numbers.ts';

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

const stageRule: TextRule = {
  pattern: /^[a-z][a-z0-9-]{0,20}$/,
  wanted: 'a lower-case name of at most 21 letters, digits, dashes',
};
const domainRule: TextRule = {
  pattern: /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  wanted: 'a lower-case host name',
};
const certificateRule: TextRule = {
  pattern: /^arn:aws:acm:us-east-1:\d{12}:certificate\/[0-9a-f-]+$/,
  wanted: 'the ARN of an ACM certificate in us-east-1, the one region CloudFront reads certificates from',
};
const emailRule: TextRule = { pattern: /^[^\s@]+@[^\s@]+\.[^\s@]+$/, wanted: 'an e-mail address' };

/** A foundation model, or an inference profile together with the models that it leads to. */
const bedrockModelPattern =
  /^arn:aws[a-z-]*:bedrock:[a-z0-9-]+:(\d{12})?:(foundation-model|inference-profile|application-inference-profile)\/[A-Za-z0-9._:-]+$/;

/** Reads and checks the context. Throws an Error that names the context key, what was found and what is wanted. */
export function readStackOptions(node: Node): StackOptions {
  const stage = readText(node, 'stage', stageRule);
  const domain = readDomain(node);
  const alarmEmail = readText(node, 'alarmEmail', emailRule);
  return {
    stackName: stage === undefined ? 'relay' : `relay-${stage}`,
    disposable: readSwitch(node, 'disposable'),
    originSecrets: readOriginSecrets(node),
    bedrockModels: readBedrockModels(node),
    ...(domain && { domain }),
    ...(alarmEmail !== undefined && { alarmEmail }),
  };
}

function readDomain(node: Node): StackOptions['domain'] {
  const name = readText(node, 'domain', domainRule);
  const certificateArn = readText(node, 'certificateArn', certificateRule);
  if (name !== undefined && certificateArn !== undefined) return { name, certificateArn };
  if (name === undefined && certificateArn === undefined) return undefined;
  const [given, missing] = name === undefined ? ['certificateArn', 'domain'] : ['domain', 'certificateArn'];
  throw new Error(
    `context ${given} needs context ${missing}: -c domain=... -c certificateArn=arn:aws:acm:...`,
  );
}

/** Joined by commas, as the CLI passes them, or a list. Without wildcards: a new model is a decision. */
function readBedrockModels(node: Node): string[] {
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
