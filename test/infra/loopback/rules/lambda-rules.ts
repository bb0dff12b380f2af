/** Rules of Lambda and CodeDeploy: capacity, environment, addresses, versions, event sources, traffic shifting. */
import { publishedState } from '../account.ts';
import { textOf, type Resource } from '../template.ts';
import {
  documentation,
  listOf,
  ofType,
  recordOf,
  waitingFor,
  type RuleContext,
  type ServiceRule,
} from './rule.ts';
import { policiesOf } from './policies.ts';

const lambda = `${documentation}lambda/latest/dg/`;

/** The concurrency that AWS keeps for functions without a reservation. */
const unreservedMin = 100;
const environmentMaxBytes = 4 * 1024;
const readersMax = 2;

/** Finds a function by name, ARN or qualified ARN. */
function functionOf(reference: unknown, { resources }: RuleContext): Resource | undefined {
  const [name] = String(reference)
    .replace(/^arn:.*?:function:/, '')
    .split(':');
  return [...resources.values()].find(
    ({ type, physicalId }) => type === 'AWS::Lambda::Function' && physicalId === name,
  );
}

/** `live` of `arn:...:function:name:live`, or of the property. */
const qualifierOf = (reference: unknown, qualifier?: unknown): string | undefined =>
  qualifier === undefined ? /:function:[^:]+:([^:]+)$/.exec(String(reference))?.[1] : textOf(qualifier);

export const lambdaRules: ServiceRule[] = [
  {
    id: 'reserved-concurrency',
    types: ['AWS::Lambda::Function'],
    source: `${lambda}configuration-concurrency.html`,
    check({ id, properties }, { account, region, stackId, resources }) {
      const of = (resource: Resource): number =>
        Number(resource.properties['ReservedConcurrentExecutions'] ?? 0);
      if (properties['ReservedConcurrentExecutions'] === undefined) return undefined;
      const others = account.standing.filter((other) => other.region === region && other.owner !== stackId);
      const own = [...resources.values()];
      const before = own.slice(0, own.findIndex((other) => other.id === id) + 1);
      const reserved = [...others, ...before].reduce((sum, resource) => sum + of(resource), 0);
      const least = Math.min(unreservedMin, account.concurrentExecutions);
      if (account.concurrentExecutions - reserved >= least) return undefined;
      return `InvalidParameterValueException: Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [${least}].`;
    },
  },
  {
    id: 'environment-size',
    types: ['AWS::Lambda::Function'],
    source: `${lambda}gettingstarted-limits.html`,
    check({ properties }) {
      const { Variables } = recordOf(properties['Environment']);
      const bytes = Buffer.byteLength(JSON.stringify(Variables ?? {}));
      if (bytes <= environmentMaxBytes) return undefined;
      return `InvalidParameterValueException: Lambda was unable to configure your environment variables because the environment variables you have provided exceeded the 4KB limit. String measured: ${bytes}`;
    },
  },
  {
    id: 'url-alias-exists',
    types: ['AWS::Lambda::Url'],
    source: `${lambda}urls-configuration.html`,
    check(url, context) {
      const target = url.properties['TargetFunctionArn'];
      const qualifier = qualifierOf(target, url.properties['Qualifier']);
      if (qualifier === undefined) return undefined;
      const name = functionOf(target, context)?.physicalId;
      const alias = ofType(context, 'AWS::Lambda::Alias').find(({ physicalId }) =>
        physicalId.endsWith(`:function:${name}:${qualifier}`),
      );
      if (alias !== undefined && waitingFor(context, url, alias.id)) return undefined;
      return `ResourceNotFoundException: Function not found: ${String(target)}:${qualifier}${alias ? ' (the URL does not wait for the alias)' : ''}`;
    },
  },
  {
    id: 'url-permissions',
    types: ['AWS::Lambda::Url'],
    source: `${lambda}urls-auth.html`,
    check(url, context) {
      if (url.properties['AuthType'] !== 'NONE') return undefined;
      const target = url.properties['TargetFunctionArn'];
      const name = functionOf(target, context)?.physicalId;
      const qualifier = qualifierOf(target, url.properties['Qualifier']);
      const allowed = ofType(context, 'AWS::Lambda::Permission').filter(({ properties }) => {
        const { FunctionName, Principal, FunctionUrlAuthType, InvokedViaFunctionUrl } = properties;
        const isOpen = FunctionUrlAuthType === 'NONE' || InvokedViaFunctionUrl === true;
        const isSame =
          functionOf(FunctionName, context)?.physicalId === name && qualifierOf(FunctionName) === qualifier;
        return Principal === '*' && isOpen && isSame;
      });
      const missing = ['lambda:InvokeFunctionUrl', 'lambda:InvokeFunction'].filter(
        (action) => !allowed.some(({ properties }) => properties['Action'] === action),
      );
      if (missing.length === 0) return undefined;
      return `every request is answered 403: no permission ${missing.join(' and ')} for everybody on ${name}${qualifier ? `:${qualifier}` : ''}`;
    },
  },
  {
    id: 'version-of-new-code',
    types: ['AWS::Lambda::Version'],
    source: `${documentation}AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-version.html`,
    check(version, context) {
      if (context.action !== 'Add') return undefined;
      const called = functionOf(version.properties['FunctionName'], context);
      const last = called && context.account.lastPublished(called);
      if (called === undefined || last?.of !== publishedState(called)) return undefined;
      return `AlreadyExists: A version for this Lambda function exists ( ${last.version} ). Modify the function to create a new version.`;
    },
  },
  {
    id: 'version-is-new',
    types: ['AWS::Lambda::Function'],
    source: `${lambda}configuration-versions.html`,
    check(called, context) {
      if (context.action !== 'Modify') return undefined;
      const stale = ofType(context, 'AWS::Lambda::Version').find(
        ({ id, properties }) =>
          functionOf(properties['FunctionName'], context)?.id === called.id && context.before.has(id),
      );
      if (stale === undefined) return undefined;
      return `${called.id} changes and ${stale.id} does not: its alias goes on with the old code`;
    },
  },
  {
    id: 'stream-readers',
    types: ['AWS::Lambda::EventSourceMapping'],
    source: `${lambda}services-dynamodb-eventsourcemapping.html`,
    check(mapping, context) {
      const stream = mapping.properties['EventSourceArn'];
      const readers = ofType(context, mapping.type).filter(
        ({ properties }) => properties['EventSourceArn'] === stream,
      );
      if (readers.indexOf(mapping) < readersMax) return undefined;
      return `the stream has more than ${readersMax} readers, and DynamoDB throttles them all: ${readers.map(({ id }) => id).join(', ')}`;
    },
  },
  {
    id: 'stream-role-first',
    types: ['AWS::Lambda::EventSourceMapping'],
    source: `${lambda}with-ddb.html`,
    check(mapping, context) {
      const { FunctionName, EventSourceArn, DestinationConfig } = mapping.properties;
      const called = functionOf(FunctionName, context);
      const policies = policiesOf(called, context).filter(
        ({ from }) => from === called?.id || from === undefined || waitingFor(context, mapping, from),
      );
      const wanted: [string, unknown][] = [['dynamodb:GetRecords', EventSourceArn]];
      const bucket = recordOf(recordOf(DestinationConfig)['OnFailure'])['Destination'];
      if (String(bucket).startsWith('arn:aws:s3:')) wanted.push(['s3:PutObject', `${String(bucket)}/x`]);
      const missing = wanted.find(
        ([action, on]) => !policies.some((policy) => policy.allows(action, String(on))),
      );
      if (missing === undefined) return undefined;
      return `InvalidParameterValueException: Cannot access stream ${String(EventSourceArn)}. Please ensure the role can perform ${missing[0]} before the mapping is made.`;
    },
  },
  {
    id: 'shift-group',
    types: ['AWS::Lambda::Alias'],
    source: `${documentation}AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html`,
    check(alias, context) {
      const update = recordOf(alias.updatePolicy['CodeDeployLambdaAliasUpdate']);
      if (Object.keys(update).length === 0) return undefined;
      const group = ofType(context, 'AWS::CodeDeploy::DeploymentGroup').find(
        ({ physicalId, properties }) =>
          physicalId === update['DeploymentGroupName'] &&
          properties['ApplicationName'] === update['ApplicationName'],
      );
      const application = ofType(context, 'AWS::CodeDeploy::Application').find(
        ({ physicalId }) => physicalId === update['ApplicationName'],
      );
      const isOfLambda = application?.properties['ComputePlatform'] === 'Lambda';
      const config = textOf(group?.properties['DeploymentConfigName'] ?? '');
      const isLambdaConfig = !config.startsWith('CodeDeployDefault.') || config.includes('.Lambda');
      if (group && isOfLambda && isLambdaConfig && waitingFor(context, alias, group.id)) return undefined;
      return `CodeDeploy: no deployment group ${String(update['DeploymentGroupName'])} of a Lambda application with a Lambda configuration (${config || 'none'}) stands before the alias`;
    },
  },
  {
    id: 'shift-alarms',
    types: ['AWS::CodeDeploy::DeploymentGroup'],
    source: `${documentation}codedeploy/latest/userguide/limits.html`,
    check({ properties }, context) {
      const alarms = listOf<{ Name: string }>(recordOf(properties['AlarmConfiguration'])['Alarms']);
      if (alarms.length > 10) return `AlarmsLimitExceededException: ${alarms.length} alarms, at most 10`;
      const known = new Set([...context.resources.values()].map(({ physicalId }) => physicalId));
      const missing = alarms.find(({ Name }) => !known.has(Name));
      return missing && `InvalidAlarmConfigException: ${missing.Name} is not an alarm of the stack`;
    },
  },
];
