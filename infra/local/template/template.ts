import { readFileSync } from 'node:fs';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import { StartError } from '../host/messages.ts';
import { localAccount, localRegion } from '../host/local-options.ts';

interface Resource {
  Type: string;
  Properties?: Record<string, unknown>;
  Metadata?: Record<string, unknown>;
  Condition?: string;
}

export interface Template {
  stackName: string;
  parameters: Record<string, { Default?: unknown }>;
  resources: Record<string, Resource>;
  /** Returns the asset that is uploaded as `<key>` on AWS. */
  asset(key: string): Asset;
}

interface Asset {
  folder: string;
  /** Path of its construct in the CDK app: `Functions/chat/Function/Code`. */
  displayName: string;
}

interface Body {
  Resources?: Record<string, Resource>;
  Parameters?: Template['parameters'];
}

interface AssetManifest {
  files?: Record<
    string,
    {
      displayName?: string;
      source: { path: string };
      destinations: Record<string, { objectKey: string }>;
    }
  >;
}

/**
 * Reads `<folder>/<stack>.template.json` and its asset manifest. Throws StartError when the template is
 * missing, or contains a resource type or an intrinsic function that the local stack does not support.
 */
export function readTemplate(folder: string, stackName: string): Template {
  const body = readJson(folder, `${stackName}.template.json`) as Body;
  const manifest = readJson(folder, `${stackName}.assets.json`) as AssetManifest;
  const assets = new Map<string, Asset>();
  for (const { source, destinations, displayName = '' } of Object.values(manifest.files ?? {}))
    for (const { objectKey } of Object.values(destinations))
      assets.set(objectKey, { folder: path.resolve(folder, source.path), displayName });
  const resources = body.Resources ?? {};
  checkResources(resources);
  return {
    stackName,
    parameters: body.Parameters ?? {},
    resources,
    asset(key) {
      const found = assets.get(key);
      if (found === undefined) throw new StartError(`the asset ${key} is not in the asset manifest`);
      return found;
    },
  };
}

function readJson(folder: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
  } catch (error) {
    throw new StartError(
      `no synthesized stack in ${folder} (${(error as Error).message}); run it with npm start`,
    );
  }
}

/** Throws StartError for the first part of a template that the local stack does not support. */
export function checkResources(resources: Record<string, Resource>): void {
  for (const [id, resource] of Object.entries(resources)) {
    if (resource.Type in ignoredTypes) continue;
    if (!isRunType(resource.Type)) throw new StartError(`unknown resource type ${resource.Type} (${id})`);
    if (resource.Condition !== undefined) throw new StartError(`conditional resources are not known (${id})`);
    for (const [, name = ''] of JSON.stringify(resource.Properties ?? {}).matchAll(intrinsicKey))
      if (!intrinsicNames.has(name)) throw new StartError(`unknown intrinsic function ${name} (${id})`);
  }
}

/** Matches only keys of the JSON: within a string the quotes are escaped. */
const intrinsicKey = /"(Fn::[^"\\]*)":/g;

/** Returns the resources of the given types in the template's order. */
export function resourcesOf(template: Template, ...types: RunType[]): [id: string, resource: Resource][] {
  return Object.entries(template.resources).filter(([, resource]) =>
    types.some((type) => type === resource.Type),
  );
}

/**
 * The resource types that the local stack runs and those that it ignores. A type in neither list is a start
 * error, so that the local stack never silently lacks a part of the deployed one.
 */
const runTypes = [
  'AWS::DynamoDB::GlobalTable',
  'AWS::SecretsManager::Secret',
  'AWS::Lambda::Function',
  'AWS::Lambda::Version',
  'AWS::Lambda::Url',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::EventInvokeConfig',
  'AWS::CloudFront::Distribution',
  'AWS::Events::Rule',
] as const;

type RunType = (typeof runTypes)[number];

const noPermissionChecks = 'the emulators check no permissions';
const nothingToShift = 'one template has one version of each function, so nothing is shifted';
const noAlarmsLocally = 'alarms and dashboards have no local counterpart';

/** Type -> reason why the local stack ignores it. */
const ignoredTypes: Record<string, string> = {
  'AWS::IAM::Role': noPermissionChecks,
  'AWS::IAM::Policy': noPermissionChecks,
  'AWS::IAM::ManagedPolicy': noPermissionChecks,
  'AWS::Lambda::Permission': noPermissionChecks,
  'AWS::SNS::TopicPolicy': noPermissionChecks,
  'AWS::S3::BucketPolicy': noPermissionChecks,
  'AWS::Lambda::Alias': nothingToShift,
  'AWS::CodeDeploy::Application': nothingToShift,
  'AWS::CodeDeploy::DeploymentGroup': nothingToShift,
  'AWS::Logs::MetricFilter': 'the log is not kept, so there is nothing to count',
  'AWS::Logs::LogGroup': 'output of the functions goes to stderr',
  'AWS::CloudWatch::Alarm': noAlarmsLocally,
  'AWS::CloudWatch::Dashboard': noAlarmsLocally,
  'AWS::Logs::QueryDefinition': 'the log is not kept, so there is nothing to query',
  'AWS::SNS::Topic': noAlarmsLocally,
  'AWS::SNS::Subscription': noAlarmsLocally,
  'AWS::S3::Bucket': 'failed events are logged instead of kept',
  'Custom::S3AutoDeleteObjects': 'there is no bucket to empty',
  'AWS::CloudFront::CachePolicy': 'the emulated distribution caches nothing',
  'AWS::CloudFront::OriginRequestPolicy': 'the emulated distribution forwards everything but the host',
  'AWS::CloudFront::Function': 'the emulated distribution sets x-forwarded-host itself',
  'AWS::Route53::RecordSet': 'one machine has no public name',
  'AWS::Budgets::Budget': 'one machine costs nothing',
  'AWS::WAFv2::WebACL': 'the loopback interface needs no firewall',
  'AWS::CDK::Metadata': 'describes the template itself',
};

const isRunType = (type: string): type is RunType => (runTypes as readonly string[]).includes(type);

const service: Record<string, string> = {
  'AWS::DynamoDB::GlobalTable': 'dynamodb',
  'AWS::SecretsManager::Secret': 'secretsmanager',
  'AWS::Lambda::Function': 'lambda',
};

const nameProperty: Record<string, string> = {
  'AWS::DynamoDB::GlobalTable': 'TableName',
  'AWS::SecretsManager::Secret': 'Name',
  'AWS::Lambda::Function': 'FunctionName',
};

const arnPath: Record<string, string> = {
  dynamodb: 'table/',
  secretsmanager: 'secret:',
  lambda: 'function:',
};

/** The template and the local values of its references: names, ARNs, secrets generated at start. */
export interface LocalReferences extends References {
  template: Template;
  resolve: ResolveReference;
  physicalName(logicalId: string): string;
  /** Sets an attribute that is known only when the resource exists, such as a table's StreamArn. */
  setAttribute(logicalId: string, name: string, value: string): void;
}

/** A function may have several URLs, each with its own host. */
export const functionUrlHost = (urlId: string): string =>
  `${urlId.toLowerCase()}.lambda-url.${localRegion}.on.aws`;

export function createReferences(template: Template): LocalReferences {
  const attributes = new Map<string, string>();
  const secrets = new Map<string, string>();
  const pseudo: Record<string, unknown> = {
    'AWS::Region': localRegion,
    'AWS::AccountId': localAccount,
    'AWS::Partition': 'aws',
    'AWS::URLSuffix': 'amazonaws.com',
    'AWS::StackName': template.stackName,
    'AWS::StackId': `arn:aws:cloudformation:${localRegion}:${localAccount}:stack/${template.stackName}/local`,
    'AWS::NoValue': undefined,
  };
  const resourceOf = (id: string) => {
    const found = template.resources[id];
    if (found === undefined) throw new StartError(`the template refers to ${id}, which it does not have`);
    return found;
  };
  const physicalName = (id: string): string => {
    const { Type, Properties } = resourceOf(id);
    const name = Properties?.[nameProperty[Type] ?? ''];
    return name === undefined ? `${template.stackName}-${id}` : String(references.resolve(name));
  };
  const arn = (id: string): string => {
    const of = service[resourceOf(id).Type] ?? 'local';
    return `arn:aws:${of}:${localRegion}:${localAccount}:${arnPath[of] ?? ''}${physicalName(id)}`;
  };
  const references: LocalReferences = {
    template,
    physicalName,
    setAttribute: (id, name, value) => void attributes.set(`${id}.${name}`, value),
    ref(id) {
      if (id in pseudo) return pseudo[id];
      const parameter = template.parameters[id];
      if (parameter !== undefined) return parameter.Default;
      return resourceOf(id).Type === 'AWS::SecretsManager::Secret' ? arn(id) : physicalName(id);
    },
    attribute(id, name) {
      const known = attributes.get(`${id}.${name}`);
      if (known !== undefined) return known;
      const { Type } = resourceOf(id);
      if (name === 'Arn') return arn(id);
      if (Type === 'AWS::Lambda::Url' && name === 'FunctionUrl') return `https://${functionUrlHost(id)}/`;
      if (Type in ignoredTypes) return `local-${id}-${name}`;
      throw new StartError(`unknown attribute ${name} of ${Type} (${id})`);
    },
    secret(id, jsonKey) {
      const key = `${id}:${jsonKey}`;
      const value = secrets.get(key) ?? randomBytes(24).toString('hex');
      secrets.set(key, value);
      return value;
    },
    resolve: (value) => resolve(value),
  };
  const resolve = createResolver(references);
  return references;
}

/** The logical id of the function that a property such as TargetFunctionArn or FunctionName refers to. */
export function functionOf(value: unknown): string {
  const inner = value as { 'Fn::GetAtt'?: [string, string] | string; Ref?: string } | undefined;
  const attribute = inner?.['Fn::GetAtt'];
  const id = inner?.Ref ?? (Array.isArray(attribute) ? attribute[0] : attribute?.split('.')[0]);
  if (id === undefined)
    throw new StartError(`a function of this stack is wanted, not ${JSON.stringify(value)}`);
  return id;
}

/** Values of Ref and Fn::GetAtt. Both throw StartError for a name that is not in the template. */
interface References {
  ref(logicalId: string): unknown;
  attribute(logicalId: string, name: string): unknown;
  /** The value of `{{resolve:secretsmanager:<id>:SecretString:<jsonKey>::}}`. */
  secret(id: string, jsonKey: string): string;
}

export type ResolveReference = (value: unknown) => unknown;

const intrinsicNames = new Set([
  'Fn::GetAtt',
  'Fn::GetStackOutput',
  'Fn::Join',
  'Fn::Select',
  'Fn::Split',
  'Fn::Sub',
]);

// The id may be an ARN with colons; the parts after SecretString contain none.
const dynamicReference = /\{\{resolve:([\w-]+):(.*?)\}\}/g;
const secretReference = /^(.+):SecretString:([^:]*):[^:]*:[^:]*$/;

/** Returns the function that replaces the intrinsics and dynamic references of a template value. */
export function createResolver(references: References): ResolveReference {
  const secrets = (text: string) =>
    text.replace(dynamicReference, (whole, service: string, rest: string) => {
      const match = secretReference.exec(rest);
      if (service !== 'secretsmanager' || match === null)
        throw new StartError(`unknown dynamic reference ${whole}`);
      return references.secret(match[1] ?? '', match[2] ?? '');
    });

  const resolve: ResolveReference = (value) => {
    if (typeof value === 'string') return secrets(value);
    if (Array.isArray(value)) return value.map(resolve).filter((item) => item !== undefined);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [first] = entries;
    if (entries.length === 1 && first !== undefined && (first[0] === 'Ref' || first[0].startsWith('Fn::')))
      return intrinsic(first[0], first[1]);
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, resolve(inner)]).filter(([, inner]) => inner !== undefined),
    );
  };

  const attribute = (argument: unknown) => {
    const [id, name] = typeof argument === 'string' ? splitOnce(argument) : (argument as [string, string]);
    return references.attribute(id, name);
  };

  const substitute = (argument: unknown) => {
    const [text, values] = Array.isArray(argument)
      ? (argument as [string, Record<string, unknown>])
      : [String(argument), {} as Record<string, unknown>];
    const filled = text.replace(/\$\{([^!}][^}]*)\}/g, (_, name: string) => {
      if (name in values) return String(resolve(values[name]));
      return String(name.includes('.') ? attribute(name) : references.ref(name));
    });
    return secrets(filled.replaceAll('${!', '${'));
  };

  const intrinsic = (name: string, argument: unknown): unknown => {
    switch (name) {
      case 'Ref':
        return references.ref(String(argument));
      case 'Fn::GetAtt':
        return attribute(argument);
      case 'Fn::Sub':
        return substitute(argument);
      case 'Fn::Join': {
        const [separator, items] = argument as [string, unknown];
        // Dynamic references are resolved after joining, because a join often builds one from pieces.
        return secrets((resolve(items) as unknown[]).map(String).join(separator));
      }
      case 'Fn::Select': {
        const [index, items] = argument as [string | number, unknown];
        return (resolve(items) as unknown[])[Number(index)];
      }
      case 'Fn::Split': {
        const [separator, text] = argument as [string, unknown];
        return String(resolve(text)).split(separator);
      }
      case 'Fn::GetStackOutput': {
        // Of a stack at the edge, which one machine does not have: a name that leads nowhere.
        const { StackName, OutputName } = argument as Record<string, unknown>;
        return `${String(resolve(StackName))}.${String(resolve(OutputName))}`;
      }
      default:
        throw new StartError(`unknown intrinsic function ${name}`);
    }
  };

  return resolve;
}

function splitOnce(text: string): [string, string] {
  const dot = text.indexOf('.');
  return [text.slice(0, dot), text.slice(dot + 1)];
}
