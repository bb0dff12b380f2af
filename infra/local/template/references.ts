import { randomBytes } from 'node:crypto';
import { StartError } from '../host/start-error.ts';
import { localAccount, localRegion } from '../host/identity.ts';
import type { Template } from './read-template.ts';
import { ignoredTypes } from './resource-types.ts';
import { createResolver, type References, type Resolve } from './resolve.ts';

const service: Record<string, string> = {
  'AWS::DynamoDB::GlobalTable': 'dynamodb',
  'AWS::DynamoDB::Table': 'dynamodb',
  'AWS::SecretsManager::Secret': 'secretsmanager',
  'AWS::Lambda::Function': 'lambda',
};

const nameProperty: Record<string, string> = {
  'AWS::DynamoDB::GlobalTable': 'TableName',
  'AWS::DynamoDB::Table': 'TableName',
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
  resolve: Resolve;
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
