/** Rules of DynamoDB. */
import { documentation, listOf, type ServiceRule } from './rule.ts';

const tables = ['AWS::DynamoDB::GlobalTable', 'AWS::DynamoDB::Table'] as const;

const indexNames = (properties: Record<string, unknown>): string[] =>
  listOf<{ IndexName: string }>(properties['GlobalSecondaryIndexes']).map(({ IndexName }) => IndexName);

const difference = (one: Set<string>, other: Set<string>): string[] => [
  ...[...one].filter((item) => !other.has(item)),
  ...[...other].filter((item) => !one.has(item)),
];

export const tableRules: ServiceRule[] = [
  {
    id: 'table-keys-declared',
    types: tables,
    kind: 'refused',
    source: `${documentation}amazondynamodb/latest/APIReference/API_CreateTable.html`,
    check({ properties }) {
      const { KeySchema, GlobalSecondaryIndexes, AttributeDefinitions } = properties;
      const keysOf = (keys: unknown) =>
        listOf<{ AttributeName: string }>(keys).map(({ AttributeName }) => AttributeName);
      const used = new Set([
        ...keysOf(KeySchema),
        ...listOf(GlobalSecondaryIndexes).flatMap((index) => keysOf(index['KeySchema'])),
      ]);
      const declared = new Set(keysOf(AttributeDefinitions));
      const odd = difference(used, declared);
      if (odd.length === 0) return undefined;
      return `ValidationException: One or more parameter values were invalid: attributes of keys and AttributeDefinitions differ: ${odd.join(', ')}`;
    },
  },
  {
    id: 'table-one-index-at-once',
    types: tables,
    kind: 'refused',
    source: `${documentation}amazondynamodb/latest/APIReference/API_UpdateTable.html`,
    check({ id, properties }, { before, action }) {
      const old = before.get(id);
      if (action !== 'Modify' || old === undefined) return undefined;
      const changed = difference(new Set(indexNames(old.properties)), new Set(indexNames(properties)));
      if (changed.length <= 1) return undefined;
      return `ValidationException: Cannot perform more than one GSI creation or deletion in a single update (${changed.join(', ')})`;
    },
  },
  {
    id: 'table-replica-here',
    types: ['AWS::DynamoDB::GlobalTable'],
    kind: 'refused',
    source: `${documentation}AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-globaltable.html`,
    check({ properties }, { region }) {
      const regions = listOf<{ Region: string }>(properties['Replicas']).map(({ Region }) => Region);
      if (regions.includes(region)) return undefined;
      return `InvalidRequest: Replicas must have the region of the stack, ${region}: ${regions.join(', ')}`;
    },
  },
];
