/** Reads the synthesized template and resolves its references and intrinsic functions to local names. */
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

interface AssetFile {
  displayName?: string;
  source: { path: string };
  destinations: Record<string, { objectKey: string }>;
}

/**
 * Reads `<folder>/<stack>.template.json` and its asset manifest. Throws StartError when the template is
 * missing, or contains a resource type or an intrinsic function that the local stack does not support.
 */
export function readTemplate(folder: string, stackName: string): Template {
  const { Resources: resources = {}, Parameters: parameters = {} } = readJson(
    folder,
    `${stackName}.template.json`,
  ) as { Resources?: Template['resources']; Parameters?: Template['parameters'] };
  const { files = {} } = readJson(folder, `${stackName}.assets.json`) as {
    files?: Record<string, AssetFile>;
  };
  const assets = new Map(
    Object.values(files).flatMap(({ source, destinations, displayName = '' }) =>
      Object.values(destinations).map(({ objectKey }): [string, Asset] => [
        objectKey,
        { folder: path.resolve(folder, source.path), displayName },
      ]),
    ),
  );
  checkResources(resources);
  return {
    stackName,
    parameters,
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
    if (ignoredTypes.has(resource.Type)) continue;
    if (!isRunType(resource.Type)) throw new StartError(`unknown resource type ${resource.Type} (${id})`);
    if (resource.Condition !== undefined) throw new StartError(`conditional resources are not known (${id})`);
    for (const [, name = ''] of JSON.stringify(resource.Properties ?? {}).matchAll(intrinsicKey))
      if (!(name in intrinsics)) throw new StartError(`unknown intrinsic function ${name} (${id})`);
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
  'AWS::Lambda::Alias',
  'AWS::Lambda::Permission',
  'AWS::Lambda::Url',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::EventInvokeConfig',
  'AWS::CloudFront::Distribution',
  'AWS::ApiGateway::RestApi',
  'AWS::ApiGateway::Stage',
  'AWS::ApiGateway::BasePathMapping',
  'AWS::Events::Rule',
] as const;

type RunType = (typeof runTypes)[number];

/** Reason -> the types of AWS that the local stack ignores for it. */
const ignored: Record<string, string> = {
  'the emulators check no permissions':
    'IAM::Role IAM::Policy IAM::ManagedPolicy SNS::TopicPolicy S3::BucketPolicy',
  'one template has one version of each function': 'CodeDeploy::Application CodeDeploy::DeploymentGroup',
  'nobody receives alarms':
    'CloudWatch::Alarm CloudWatch::Dashboard SNS::Topic SNS::Subscription Logs::MetricFilter Logs::QueryDefinition Budgets::Budget',
  'output of the functions goes to stderr': 'Logs::LogGroup',
  'failed events are logged instead of kept': 'S3::Bucket',
  'the emulated distribution caches nothing, forwards everything and sets x-forwarded-host itself':
    'CloudFront::CachePolicy CloudFront::OriginRequestPolicy CloudFront::Function',
  'one machine has no public name': 'Route53::RecordSet ApiGateway::DomainName',
  'one machine has no other region': 'Backup::BackupPlan Backup::BackupSelection Backup::BackupVault',
  'the loopback interface needs no firewall': 'WAFv2::WebACLAssociation WAFv2::WebACL',
  'it describes the template itself': 'CDK::Metadata ApiGateway::Deployment',
};
const ignoredTypes: ReadonlySet<string> = new Set([
  ...Object.values(ignored).flatMap((types) => types.split(' ').map((type) => `AWS::${type}`)),
  'Custom::S3AutoDeleteObjects',
]);

const isRunType = (type: string): type is RunType => (runTypes as readonly string[]).includes(type);

/** For resource types whose names or ARNs are referenced: the property with the name, and the rest of the ARN. */
const named: Record<string, { name: string; service: string; path: string }> = {
  'AWS::DynamoDB::GlobalTable': { name: 'TableName', service: 'dynamodb', path: 'table/' },
  'AWS::SecretsManager::Secret': { name: 'Name', service: 'secretsmanager', path: 'secret:' },
  'AWS::Lambda::Function': { name: 'FunctionName', service: 'lambda', path: 'function:' },
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
export const nameFunctionUrlHost = (urlId: string): string =>
  `${urlId.toLowerCase()}.lambda-url.${localRegion}.on.aws`;

export const nameRestApiHost = (id: string): string => `${id}.execute-api.${localRegion}.amazonaws.com`;

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
    const name = Properties?.[named[Type]?.name ?? ''];
    return name === undefined ? `${template.stackName}-${id}` : String(references.resolve(name));
  };
  const buildArn = (id: string): string => {
    const { service, path: inside } = named[resourceOf(id).Type] ?? { service: 'local', path: '' };
    return `arn:aws:${service}:${localRegion}:${localAccount}:${inside}${physicalName(id)}`;
  };
  const references: LocalReferences = {
    template,
    physicalName,
    setAttribute: (id, name, value) => void attributes.set(`${id}.${name}`, value),
    ref(id) {
      if (id in pseudo) return pseudo[id];
      const parameter = template.parameters[id];
      if (parameter !== undefined) return parameter.Default;
      return resourceOf(id).Type === 'AWS::SecretsManager::Secret' ? buildArn(id) : physicalName(id);
    },
    attribute(id, name) {
      const known = attributes.get(`${id}.${name}`);
      if (known !== undefined) return known;
      const { Type } = resourceOf(id);
      if (name === 'Arn') return buildArn(id);
      if (Type === 'AWS::Lambda::Url' && name === 'FunctionUrl') return `https://${nameFunctionUrlHost(id)}/`;
      if (ignoredTypes.has(Type)) return `local-${id}-${name}`;
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

/** The logical id of the function that a property such as TargetFunctionArn or FunctionName refers to, directly or by its alias. */
export function functionOf(value: unknown, { resources }: Pick<Template, 'resources'>): string {
  const [, id = ''] = /"(?:Ref|Fn::GetAtt)":\[?"([^".]+)/.exec(JSON.stringify(value) ?? '') ?? [];
  const { Type, Properties = {} } = resources[id] ?? {};
  if (Type === 'AWS::Lambda::Alias') return functionOf(Properties['FunctionName'], { resources });
  if (Type !== 'AWS::Lambda::Function')
    throw new StartError(`a function of this stack is wanted, not ${JSON.stringify(value)}`);
  return id;
}

/** Values of Ref and Fn::GetAtt. Both throw StartError for a name that is not in the template. */
interface References {
  ref: (logicalId: string) => unknown;
  attribute: (logicalId: string, name: string) => unknown;
  /** The value of `{{resolve:secretsmanager:<id>:SecretString:<jsonKey>::}}`. */
  secret(id: string, jsonKey: string): string;
}

export type ResolveReference = (value: unknown) => unknown;

// The id may be an ARN with colons; the parts after SecretString contain none.
const dynamicReference = /\{\{resolve:([\w-]+):(.*?)\}\}/g;
const secretReference = /^(.+):SecretString:([^:]*):[^:]*:[^:]*$/;

type Intrinsic = (argument: unknown, references: References, resolve: ResolveReference) => unknown;

const intrinsics: Record<string, Intrinsic> = {
  Ref: (id, { ref }) => ref(String(id)),
  'Fn::GetAtt': (argument, references) => attributeOf(argument, references),
  // As CDK writes it: a text with names of parameters.
  'Fn::Sub': (text, { ref }) =>
    String(text).replaceAll(/\$\{([\w:]+)\}/g, (_, name: string) => String(ref(name))),
  // Dynamic references are resolved after joining, because a join often builds one from pieces.
  'Fn::Join'(argument, _references, resolve) {
    const [separator, items] = argument as [string, unknown];
    return resolve((resolve(items) as unknown[]).map(String).join(separator));
  },
  'Fn::Select'(argument, _references, resolve) {
    const [index, items] = argument as [string | number, unknown];
    return (resolve(items) as unknown[])[Number(index)];
  },
  'Fn::Split'(argument, _references, resolve) {
    const [separator, text] = argument as [string, unknown];
    return String(resolve(text)).split(separator);
  },
  // One machine has no edge stack, so its outputs lead nowhere.
  'Fn::GetStackOutput'(argument, _references, resolve) {
    const { StackName, OutputName } = argument as Record<string, unknown>;
    return `${String(resolve(StackName))}.${String(resolve(OutputName))}`;
  },
};

function attributeOf(argument: unknown, { attribute }: References): unknown {
  const [id = '', ...name] = typeof argument === 'string' ? argument.split('.') : (argument as string[]);
  return attribute(id, name.join('.'));
}

/** Returns the function that replaces the intrinsics and dynamic references of a template value. */
export function createResolver(references: References): ResolveReference {
  const resolve: ResolveReference = (value) => {
    if (typeof value === 'string')
      return value.replace(dynamicReference, (whole, service: string, rest: string) => {
        const [match, id = '', jsonKey = ''] = secretReference.exec(rest) ?? [];
        if (service !== 'secretsmanager' || match === undefined)
          throw new StartError(`unknown dynamic reference ${whole}`);
        return references.secret(id, jsonKey);
      });
    if (Array.isArray(value)) return value.map(resolve).filter((item) => item !== undefined);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [[name, argument] = ['', undefined]] = entries;
    if (entries.length === 1 && (name === 'Ref' || name.startsWith('Fn::'))) {
      const intrinsic = intrinsics[name];
      if (intrinsic === undefined) throw new StartError(`unknown intrinsic function ${name}`);
      return intrinsic(argument, references, resolve);
    }
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, resolve(inner)]).filter(([, inner]) => inner !== undefined),
    );
  };
  return resolve;
}
