/** Resolves a template as CloudFormation does: names, ARNs, addresses, values of secrets. */
import { createHash } from 'node:crypto';
import { createResolver } from '../../../infra/local/template/template.ts';
import {
  arnOf,
  attributeOf,
  isNamedType,
  madeName,
  namedBy,
  referenceOf,
  type Identity,
  type Place,
} from './names.ts';
import { zonesOf } from './zones.ts';
import { textOf, type DeployedTemplate, type Resource, type TemplateResource } from './template.ts';

export interface StackPlace extends Place {
  stack: string;
  /** Different for each creation, because CloudFormation never reuses a generated name. */
  stackId: string;
}

export interface Output {
  key: string;
  value: string;
  exportName?: string;
}

export interface ResolvedStack {
  resources: ReadonlyMap<string, Resource>;
  outputs: Output[];
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

export function resolveTemplate(given: DeployedTemplate, place: StackPlace): ResolvedStack {
  const zones = JSON.stringify([...zonesOf(place.region).keys()]);
  const template = JSON.parse(
    JSON.stringify(given).replaceAll('{"Fn::GetAZs":""}', zones),
  ) as DeployedTemplate;
  const { account, region, stack, stackId } = place;
  const pseudo: Record<string, unknown> = {
    'AWS::AccountId': account,
    'AWS::NoValue': undefined,
    'AWS::Partition': 'aws',
    'AWS::Region': region,
    'AWS::StackId': stackId,
    'AWS::StackName': stack,
    'AWS::URLSuffix': 'amazonaws.com',
  };
  const templateResource = (id: string): TemplateResource => {
    const found = template.Resources[id];
    if (found === undefined)
      throw new Error(
        `Template format error: Unresolved resource dependencies [${id}] in the Resources block`,
      );
    return found;
  };
  const identities = new Map<string, Identity>();
  const identity = (id: string): Identity => {
    const known = identities.get(id);
    if (known !== undefined) return known;
    const { Type: type, Properties = {} } = templateResource(id);
    const given = resolve(namedBy(type, Properties));
    const name = given === undefined ? madeName(type, { stack, id, salt: stackId }) : textOf(given);
    const made: Identity = { account, region, type, name };
    identities.set(id, made);
    return made;
  };
  const attribute = (id: string, name: string): unknown => {
    const { Type } = templateResource(id);
    const found = ofLambda(id, name) ?? attributeOf(identity(id), name);
    if (found !== undefined) return found;
    if (Type.startsWith('Custom::')) return `${id}.${name}`;
    throw new Error(
      `Template error: resource ${id} does not support attribute type ${name} in Fn::GetAtt, or the double does not know it`,
    );
  };
  /** Versions, aliases and addresses are named after their function. */
  const ofLambda = (id: string, name: string): string | undefined => {
    const { Type, Properties = {} } = templateResource(id);
    const target = (): string =>
      functionArn(String(resolve(Properties['FunctionName'] ?? Properties['TargetFunctionArn'])), place);
    if (Type === 'AWS::Lambda::Version') {
      const number = String((Number.parseInt(hash(id).slice(0, 4), 16) % 900) + 1);
      if (name === 'Version') return number;
      return name === 'FunctionArn' || name === 'Ref' ? `${target()}:${number}` : undefined;
    }
    if (Type === 'AWS::Lambda::Alias')
      return name === 'AliasArn' || name === 'Ref'
        ? `${target()}:${String(resolve(Properties['Name']))}`
        : undefined;
    if (Type !== 'AWS::Lambda::Url') return undefined;
    if (name === 'FunctionUrl')
      return `https://${hash(stackId + id).slice(0, 32)}.lambda-url.${region}.on.aws/`;
    const qualifier = Properties['Qualifier'];
    const suffix = qualifier === undefined ? '' : `:${String(resolve(qualifier))}`;
    return name === 'FunctionArn' || name === 'Ref' ? `${target()}${suffix}` : undefined;
  };
  const resolve = createResolver({
    ref: (id) => {
      if (id in pseudo) return pseudo[id];
      const parameter = template.Parameters?.[id];
      if (parameter !== undefined) return parameter.Default;
      return ofLambda(id, 'Ref') ?? referenceOf(identity(id));
    },
    attribute,
    secret: (id, jsonKey) => hash(`${id} ${jsonKey}`).slice(0, 48),
  });
  const toResource = (id: string): Resource => {
    const { Type, Properties = {}, DependsOn, DeletionPolicy, UpdatePolicy } = templateResource(id);
    const found = identity(id);
    return {
      id,
      type: Type,
      properties: resolve(Properties) as Record<string, unknown>,
      physicalId: ofLambda(id, 'Ref') ?? referenceOf(found),
      arn: ofLambda(id, 'Ref') ?? arnOf(found),
      stack,
      region,
      isNamed: isNamedType(Type) && namedBy(Type, Properties) !== undefined,
      needs: new Set(
        [DependsOn ?? [], mentions([Properties, UpdatePolicy])]
          .flat(2)
          .filter((needed) => needed in template.Resources && needed !== id),
      ),
      deletionPolicy: DeletionPolicy ?? 'Delete',
      updatePolicy: resolve(UpdatePolicy ?? {}) as Record<string, unknown>,
    };
  };
  const resources = new Map(Object.keys(template.Resources).map((id) => [id, toResource(id)]));
  const outputs = Object.entries(template.Outputs ?? {}).map(([key, { Value, Export }]): Output => {
    const value = String(resolve(Value));
    return Export ? { key, value, exportName: String(resolve(Export.Name)) } : { key, value };
  });
  return { resources, outputs };
}

/** The ARN of a function that a template refers to by name or ARN. */
function functionArn(text: string, { account, region }: Place): string {
  return text.startsWith('arn:') ? text : `arn:aws:lambda:${region}:${account}:function:${text}`;
}

/** Logical ids in Ref, Fn::GetAtt and Fn::Sub, at any depth. */
function mentions(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(mentions);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'Ref') return [String(inner)];
    if (key === 'Fn::GetAtt') return [String(Array.isArray(inner) ? inner[0] : inner).split('.')[0] ?? ''];
    if (key !== 'Fn::Sub') return mentions(inner);
    const [text, values] = Array.isArray(inner) ? (inner as [string, unknown]) : [String(inner), {}];
    const names = [...text.matchAll(/\$\{([^!}.][^}.]*)/g)].map(([, name = '']) => name);
    return names.concat(mentions(values));
  });
}
