/**
 * The options of a deployment: reads the CDK context (`-c name=value`), checks it once and returns a typed
 * object. Accepts text, as the CLI passes it, and the real types, as `cdk.json` may contain them.
 */
import type { Node } from 'constructs';
import { readBedrockModels } from './bedrock-models.ts';
import { readCanary, type CanaryOption } from './canary.ts';
import { readObjectives } from './objectives.ts';
import { readCount, readSwitch, readText, type TextRule } from './context.ts';
import { readOriginSecrets, readSealKeys } from './secret-numbers.ts';

export interface StackOptions {
  /** Name of the stack and prefix of all resource names: `relay`, or `relay-<stage>`. */
  stackName: string;
  /** For trials: tables have no deletion protection and are deleted with the stack. */
  disposable: boolean;
  /** The public host name and its certificate, which must be in us-east-1 for CloudFront. */
  domain?: { name: string; certificateArn: string };
  alarmEmail?: string;
  /** Receives alarms that must wake somebody. Absent: `alarmEmail` receives them too. */
  pageEmail?: string;
  objectives: ReturnType<typeof readObjectives>;
  /** Busy accounts stay one item, for the deployment that follows one of version 0.1. */
  oneItemPerAccount: boolean;
  /** A scheduled call with a key of its own. Absent: none is made. */
  canary?: CanaryOption;
  /** A deployment shifts calls to new versions step by step. */
  shifting: boolean;
  /** The address that mail to customers comes from: an identity that SES has verified. Absent: none is sent. */
  alertSender?: string;
  /** Numbers of the origin secrets, oldest first. CloudFront sends the last; functions accept all. */
  originSecrets: number[];
  /** Numbers of the keys that seal the state of turns, ascending. The last seals; all open. */
  sealKeys: number[];
  /**
   * Calls at once that AWS reserves for each of the functions `chat` and `responses`, and their bound. Absent: they share
   * what the AWS account has.
   */
  reservedConcurrency?: number;
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

/** Narrower than an address may be, because it becomes part of a permission. */
const senderRule: TextRule = {
  pattern: /^[A-Za-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  wanted: 'an e-mail address that SES has verified, its domain in lower case',
};

/**
 * Reads and checks the context. Throws an Error with the context key, the found value and the wanted form.
 */
export function readStackOptions(node: Node): StackOptions {
  const stage = readText(node, 'stage', stageRule);
  const domain = readDomain(node);
  const alarmEmail = readText(node, 'alarmEmail', emailRule);
  const canary = readCanary(node);
  const pageEmail = readText(node, 'pageEmail', emailRule);
  const alertSender = readText(node, 'alertSender', senderRule);
  const reservedConcurrency = readCount(node, 'reservedConcurrency', 100_000);
  return {
    stackName: stage === undefined ? 'relay' : `relay-${stage}`,
    disposable: readSwitch(node, 'disposable'),
    originSecrets: readOriginSecrets(node),
    sealKeys: readSealKeys(node),
    bedrockModels: readBedrockModels(node),
    oneItemPerAccount: readSwitch(node, 'oneItemPerAccount'),
    objectives: readObjectives(node),
    shifting: readSwitch(node, 'shifting', true),
    ...(domain && { domain }),
    ...(alarmEmail !== undefined && { alarmEmail }),
    ...(canary && { canary }),
    ...(pageEmail !== undefined && { pageEmail }),
    ...(alertSender !== undefined && { alertSender }),
    ...(reservedConcurrency !== undefined && { reservedConcurrency }),
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
