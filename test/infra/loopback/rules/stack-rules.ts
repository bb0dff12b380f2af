/** Rules of CloudFormation itself: names, imports, replacements, exports. */
import { textOf } from '../template.ts';
import { namedBy } from '../names.ts';
import { documentation, recordOf, type ServiceRule } from './rule.ts';

const cloudFormation = `${documentation}AWSCloudFormation/latest/`;

/** Names of which the published schema says no form. */
const nameForms: [id: string, types: string[], form: RegExp, source: string][] = [
  [
    'dashboard-name',
    ['AWS::CloudWatch::Dashboard'],
    /^[A-Za-z0-9_-]{1,255}$/,
    'AmazonCloudWatch/latest/APIReference/API_PutDashboard.html',
  ],
  [
    'table-name',
    ['AWS::DynamoDB::GlobalTable', 'AWS::DynamoDB::Table'],
    /^[A-Za-z0-9_.-]{3,255}$/,
    'amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html',
  ],
  [
    'managed-policy-name',
    ['AWS::IAM::ManagedPolicy'],
    /^[\w+=,.@-]{1,128}$/,
    'IAM/latest/UserGuide/reference_iam-quotas.html',
  ],
];

const nameRules = nameForms.map(([id, types, form, source]): ServiceRule => ({
  id,
  types,
  kind: 'refused',
  source: `${documentation}${source}`,
  check({ type, properties }) {
    const name = namedBy(type, properties);
    if (name === undefined || form.test(textOf(name))) return undefined;
    return `ValidationError: ${type} cannot be named ${textOf(name)}: ${String(form)}`;
  },
}));

export const stackRules: ServiceRule[] = [
  ...nameRules,
  {
    id: 'name-taken',
    types: ['*'],
    kind: 'refused',
    source: `${cloudFormation}UserGuide/troubleshooting.html#troubleshooting-errors-resource-already-exists`,
    check(resource, { account, action, stackId }) {
      if (action !== 'Add' && action !== 'Replace') return undefined;
      const taken = account.taken(resource);
      const isItself = taken?.owner === stackId && taken.id === resource.id;
      if (taken === undefined || isItself) return undefined;
      const whose = taken.owner === undefined ? '' : ` in stack ${taken.owner}`;
      return `AlreadyExists: Resource of type '${resource.type}' with identifier '${resource.physicalId}' already exists${whose}.`;
    },
  },
  {
    id: 'name-twice',
    types: ['*'],
    kind: 'refused',
    source: `${cloudFormation}TemplateReference/aws-properties-name.html`,
    check(resource, { resources }) {
      if (!resource.isNamed) return undefined;
      const first = [...resources.values()].find(
        (other) => other.type === resource.type && other.physicalId === resource.physicalId,
      );
      if (first === undefined || first.id === resource.id) return undefined;
      return `AlreadyExists: ${resource.physicalId} already exists in stack: ${first.id} has the name too`;
    },
  },
  {
    id: 'import-retained',
    types: ['*'],
    kind: 'refused',
    source: `${cloudFormation}UserGuide/import-resources-automatically.html`,
    check({ deletionPolicy, physicalId }, { action }) {
      if (action !== 'Import' || deletionPolicy.startsWith('Retain')) return undefined;
      return `ValidationError: ${physicalId} exists and cannot be imported: its DeletionPolicy is not Retain or RetainExceptOnCreate`;
    },
  },
  {
    id: 'import-key-schema',
    types: ['AWS::DynamoDB::GlobalTable', 'AWS::DynamoDB::Table'],
    kind: 'useless',
    source: `${cloudFormation}UserGuide/import-resources-manually.html`,
    check(resource, { account, action }) {
      if (action !== 'Import') return undefined;
      const keys = JSON.stringify(account.taken(resource)?.properties['KeySchema']);
      if (keys === JSON.stringify(resource.properties['KeySchema'])) return undefined;
      return `${resource.physicalId} is imported with other keys than it has: nothing compares them, and every read fails`;
    },
  },
  {
    id: 'import-stream',
    types: ['AWS::DynamoDB::GlobalTable', 'AWS::DynamoDB::Table'],
    kind: 'refused',
    source: `${documentation}amazondynamodb/latest/developerguide/PointInTimeRecovery.Tutorial.html`,
    check(resource, { account, action }) {
      const { StreamViewType: wanted } = recordOf(resource.properties['StreamSpecification']);
      const { StreamViewType: found } = recordOf(account.taken(resource)?.properties['StreamSpecification']);
      if (action !== 'Import' || wanted === found) return undefined;
      return `Attribute 'StreamArn' does not exist: ${resource.physicalId} is imported as it is, with stream ${textOf(found ?? 'off')}, not ${textOf(wanted)}`;
    },
  },
  {
    id: 'custom-name-replaced',
    types: ['*'],
    kind: 'refused',
    source: `${cloudFormation}TemplateReference/aws-properties-name.html`,
    check(resource, { action, before }) {
      const old = before.get(resource.id);
      if (action !== 'Replace' || old === undefined || !resource.isNamed) return undefined;
      if (namedBy(old.type, old.properties) !== namedBy(resource.type, resource.properties)) return undefined;
      return `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${resource.physicalId} and update the stack again.`;
    },
  },
];
