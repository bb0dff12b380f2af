/** Rules of Lambda: capacity, environment, addresses, versions, event sources. */
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

/** What AWS keeps for functions without a reservation. */
const unreservedMin = 100;
const environmentMaxBytes = 4 * 1024;
/** Set by Lambda, and by nobody else. */
const reservedVariables =
  /^(AWS_(REGION|DEFAULT_REGION|EXECUTION_ENV|ACCESS_KEY(_ID)?|SECRET_ACCESS_KEY|SESSION_TOKEN|LAMBDA_(FUNCTION_|LOG_|INITIALIZATION_TYPE|RUNTIME_API|METADATA_).*)|_HANDLER|_X_AMZN_TRACE_ID|LAMBDA_(TASK_ROOT|RUNTIME_DIR))$/;
const readersMax = 2;
const filtersMax = 5;

/** The function that a name, an ARN or a qualified ARN means. */
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
    kind: 'refused',
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
    kind: 'refused',
    source: `${lambda}gettingstarted-limits.html`,
    check({ properties }) {
      const { Variables } = recordOf(properties['Environment']);
      const bytes = Buffer.byteLength(JSON.stringify(Variables ?? {}));
      if (bytes <= environmentMaxBytes) return undefined;
      return `InvalidParameterValueException: Lambda was unable to configure your environment variables because the environment variables you have provided exceeded the 4KB limit. String measured: ${bytes}`;
    },
  },
  {
    id: 'environment-reserved',
    types: ['AWS::Lambda::Function'],
    kind: 'refused',
    source: `${lambda}configuration-envvars.html`,
    check({ properties }) {
      const names = Object.keys(recordOf(recordOf(properties['Environment'])['Variables']));
      const reserved = names.filter((name) => reservedVariables.test(name));
      if (reserved.length === 0) return undefined;
      return `InvalidParameterValueException: Lambda was unable to configure your environment variables because the environment variables you have provided contains reserved keys that are currently not supported for modification. Reserved keys used in this request: ${reserved.join(', ')}`;
    },
  },
  {
    id: 'system-log-level',
    types: ['AWS::Lambda::Function'],
    kind: 'refused',
    source: `${lambda}monitoring-cloudwatchlogs-log-level.html`,
    check({ properties }) {
      const { LogFormat, SystemLogLevel, ApplicationLogLevel } = recordOf(properties['LoggingConfig']);
      if (LogFormat === 'JSON' || (SystemLogLevel ?? ApplicationLogLevel) === undefined) return undefined;
      return 'InvalidParameterValueException: SystemLogLevel and ApplicationLogLevel need the log format JSON';
    },
  },
  {
    id: 'url-alias-exists',
    types: ['AWS::Lambda::Url'],
    kind: 'refused',
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
    kind: 'useless',
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
    id: 'url-streams-outside-vpc',
    types: ['AWS::Lambda::Url'],
    kind: 'useless',
    source: `${lambda}configuration-response-streaming.html`,
    check(url, context) {
      const called = functionOf(url.properties['TargetFunctionArn'], context);
      const { SubnetIds } = recordOf(called?.properties['VpcConfig']);
      if (url.properties['InvokeMode'] !== 'RESPONSE_STREAM' || listOf(SubnetIds).length === 0)
        return undefined;
      return 'a function URL does not stream from a function in a VPC';
    },
  },
  {
    id: 'version-of-new-code',
    types: ['AWS::Lambda::Version'],
    kind: 'refused',
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
    kind: 'useless',
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
    kind: 'useless',
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
    id: 'stream-filters',
    types: ['AWS::Lambda::EventSourceMapping'],
    kind: 'refused',
    source: `${lambda}invocation-eventfiltering.html`,
    check({ properties }) {
      const filters = listOf(recordOf(properties['FilterCriteria'])['Filters']);
      if (filters.length <= filtersMax) return undefined;
      return `InvalidParameterValueException: ${filters.length} filters, at most ${filtersMax}`;
    },
  },
  {
    id: 'stream-role-first',
    types: ['AWS::Lambda::EventSourceMapping'],
    kind: 'refused',
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
];
