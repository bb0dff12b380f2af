/** What of a template must stay, or CloudFormation replaces the resource: a small picture of it, by logical id. */
import { physicalName, type AnyResource } from './physical-names.ts';
import type { Resource, Template } from './synthesize.ts';

export interface Identity {
  type: string;
  /** Absent: AWS makes one. */
  name?: string;
  /** Properties whose change replaces the resource, or the value that it was made to keep. */
  replaces?: Record<string, unknown>;
}

/** Types that hold data, secrets, or an address that customers have: a replacement loses it. */
export const stateful = new Set([
  'AWS::CloudFront::Distribution',
  'AWS::DynamoDB::GlobalTable',
  'AWS::Logs::LogGroup',
  'AWS::S3::Bucket',
  'AWS::SNS::Topic',
  'AWS::SecretsManager::Secret',
]);

export const identities = (template: Template): Record<string, Identity> =>
  Object.fromEntries(
    Object.entries(template.Resources).map(([logicalId, resource]) => [logicalId, identityOf(resource)]),
  );

function identityOf(resource: AnyResource): Identity {
  const name = physicalName(resource);
  const replaces = replacing[resource.Type]?.(resource.Properties ?? {});
  return {
    type: resource.Type,
    ...(name !== undefined && { name }),
    ...(replaces && { replaces }),
  };
}

/** By CloudFormation's reference: "Update requires: Replacement", and what changes the kept value without one. */
const replacing: Record<string, (properties: Resource['Properties']) => Record<string, unknown>> = {
  'AWS::DynamoDB::GlobalTable': (properties) => tableIdentity(properties as unknown as TableProperties),
  'AWS::SNS::Topic': ({ FifoTopic }) => ({ FifoTopic: FifoTopic ?? false }),
  // A changed rule makes another secret.
  'AWS::SecretsManager::Secret': ({ GenerateSecretString }) => ({ GenerateSecretString }),
};

interface TableProperties {
  KeySchema: { AttributeName: string; KeyType: string }[];
  AttributeDefinitions: { AttributeName: string; AttributeType: string }[];
  StreamSpecification?: { StreamViewType: string };
  GlobalSecondaryIndexes?: {
    IndexName: string;
    KeySchema: TableProperties['KeySchema'];
    Projection: unknown;
  }[];
}

/** Later versions may add a stream or an index, but cannot change one: their readers would lose what was in it. */
function tableIdentity(table: TableProperties): Record<string, unknown> {
  const types = new Map(table.AttributeDefinitions.map((each) => [each.AttributeName, each.AttributeType]));
  const keys = (schema: TableProperties['KeySchema']): string[] =>
    schema.map(({ AttributeName, KeyType }) => `${KeyType} ${AttributeName} ${types.get(AttributeName)}`);
  const indexes = (table.GlobalSecondaryIndexes ?? []).map(({ IndexName, KeySchema, Projection }) => [
    IndexName,
    { keys: keys(KeySchema), Projection },
  ]);
  return {
    keys: keys(table.KeySchema),
    ...(table.StreamSpecification && { stream: table.StreamSpecification.StreamViewType }),
    indexes: Object.fromEntries(indexes) as object,
  };
}
