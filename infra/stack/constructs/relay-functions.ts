/** All functions of the relay, built from their descriptions. */
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { Aws, SecretValue, ArnFormat, Stack, Duration, RemovalPolicy } from 'aws-cdk-lib';
import { type ISecurityGroup, type IVpc, SecurityGroup, type SubnetSelection } from 'aws-cdk-lib/aws-ec2';
import { Effect, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  type FunctionUrl,
  type IFunction,
  type IFunctionUrl,
  Alias,
  type CfnFunction,
  Architecture,
  Code,
  Function as LambdaFunction,
  FunctionUrlAuthType,
  InvokeMode,
  LoggingFormat,
  Runtime,
  SystemLogLevel,
} from 'aws-cdk-lib/aws-lambda';
import { RetentionDays, LogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct, type IDependable } from 'constructs';
import {
  answersCalls,
  callingFunctions,
  functionDescriptions,
  functionNames,
  isServed,
  type FunctionName,
  type PublicFunctionName,
  type ServedFunctionName,
  type FunctionDescription,
} from './function-descriptions.ts';
import { grantKeyUse, type RelayKeys } from './encryption-keys.ts';
import type { RelayTables } from './relay-tables.ts';
import { secretPurposes, type SecretPurpose } from '../../../shared/config/rows/secret-reference.ts';
import { tableNames } from '../../../shared/tables/table-schemas.ts';

/** The receiver of traces; docs/observability.md lists their content. */
export interface RelayTracing {
  /** The base address of an OTLP receiver over HTTPS; `/v1/traces` is added. */
  endpoint: string;
  /** The name of a secret in Secrets Manager with headers: `name=value,name=value`. None by default. */
  headersSecret?: string | undefined;
  /** The share of traced calls, from 0 to 1. Default: 1. */
  share?: number | undefined;
}

/** Subnets and security groups of a VPC, by id. */
export interface RelayVpc {
  subnetIds: readonly string[];
  securityGroupIds: readonly string[];
}

/** The network of functions, as CDK's own functions take it. */
export interface RelayNetwork {
  /**
   * The VPC of all functions: an object of CDK, or ids. Not possible with `cloudfront`, because Function URLs do not stream from a VPC.
   * Everything that functions call must be reachable from there: docs/deploy.md lists it. Default: none.
   */
  vpc?: IVpc | RelayVpc;
  /** The subnets of `vpc`. Default: its private subnets with internet access. */
  vpcSubnets?: SubnetSelection;
  /** The security groups of all functions. Default: a new one in `vpc` that allows all outbound and no inbound traffic. */
  securityGroups?: readonly ISecurityGroup[];
}

/** Props shared by everything that runs the relay's code. */
export type RelayCodeProps = Pick<
  RelayFunctionsProps,
  'relayName' | 'version' | 'tables' | 'disposable' | 'bundlesFolder' | 'keys' | 'secretAccess'
>;

/** Secrets that functions may read besides those whose paths name their purpose. */
export interface SecretAccess {
  /** Allow functions to read secrets whose paths name no purpose. */
  unbound: boolean;
  /** References in options. Only the function of that purpose may read them, and rows must not name them. */
  deployed: Readonly<Partial<Record<SecretPurpose, string>>>;
}

export interface RelayFunctionsProps {
  relayName: string;
  version: string;
  tables: RelayTables;
  /** Delete the log groups with the stack. */
  disposable: boolean;
  /** Comma-separated values of the origin header that functions accept. */
  acceptedOriginSecrets: string;
  /** Give each function that answers requests a Function URL. */
  functionUrls: boolean;
  vpc?: VpcIds | undefined;
  /** The name of the domain option. Functions can't know the distribution's own name, because it is created after them. */
  publicHost: string | undefined;
  /** The value of `SEAL_KEYS` for functions that call models. */
  sealKeys: string;
  /** The build's output: one folder per function. */
  bundlesFolder: string;
  keys: RelayKeys;
  secretAccess: SecretAccess;
  /**
   * Concurrent calls that AWS reserves for each endpoint function, which can't exceed them. By default they share the concurrency of
   * the AWS account.
   */
  reservedConcurrency?: number;
  /**
   * Concurrent runs that AWS reserves for each of `ledger`, `grants`, `sweeper` and `config`, which can't exceed them, so that calls
   * can't starve billing. By default they share the concurrency of the AWS account.
   */
  moneyConcurrency?: number;
  /**
   * Minutes after which Lambda ends a background run. More than 15 work only in regions where Lambda allows 1,800 s for functions that events
   * invoke. Default: 15.
   */
  backgroundMinutes?: number;
  /** Megabytes by function. 256 for each by default; docs/options.md has measurements. */
  memory?: Readonly<Partial<Record<FunctionName, number | undefined>>>;
  /** The time that log groups keep lines. Default: one month. */
  logRetention?: RetentionDays;
  /** The receiver of spans. None by default. */
  tracing?: RelayTracing;
  /**
   * `functions` answer calls, or `ecs`: a server on Fargate behind a private load balancer, for steady traffic. With `ecs` the
   * answering functions are not created, but `payments` and background functions are. Default: `functions`.
   */
  compute?: 'functions' | 'ecs';
  /** `sdk` makes functions use AWS's client for tables, in case the relay's own has a fault. By default they use the relay's. */
  awsClient?: 'sdk';
  /** The setting `limits` as in docs/tables.md, used until it has a row. Default: none. */
  defaultLimits?: Readonly<Record<string, unknown>>;
}

/**
 * The key for pseudonyms of end users and caches: the stack id, whose random part CloudFormation creates once. It must never
 * change, because with a new one every conversation would lose its cache and, with some vendors, its reasoning. Clients and vendors
 * don't know it, and it grants no rights.
 */
export const pseudonymKey = Aws.STACK_ID;

/** Docs/options.md has the measurements. */
const usualMegabytes = 256;

/** With compute `ecs` some functions do not exist, because the server replaces them. */
export type MadeFunctions = Readonly<
  Record<Exclude<FunctionName, ServedFunctionName>, IFunction> &
    Partial<Record<ServedFunctionName, IFunction>>
>;

export class RelayFunctions extends Construct {
  readonly byName: ReadonlyMap<FunctionName, RelayFunction>;

  constructor(scope: Construct, id: string, props: RelayFunctionsProps) {
    super(scope, id);
    const names = functionNames.filter((name) => props.compute !== 'ecs' || !isServed(name));
    this.byName = new Map(names.map((name) => [name, this.made(name, props)]));
    // New code must read new forms of rows and balances before any code writes them.
    for (const writer of callingFunctions)
      for (const reader of ['ledger', 'sweeper', 'grants', 'catalog'] as const) {
        const read = this.byName.get(reader);
        if (read) this.byName.get(writer)?.node.addDependency(read);
      }
    const { lambda } = this.get('background');
    const responses = this.byName.get('responses')?.lambda;
    responses?.addToRolePolicy(allow('lambda', ['InvokeFunction'], lambda.functionArn));
    responses?.addEnvironment('BACKGROUND_FUNCTION', lambda.functionName);
  }

  private made(name: FunctionName, props: RelayFunctionsProps): RelayFunction {
    const usual = functionDescriptions[name];
    const minutes = name === 'background' ? props.backgroundMinutes : undefined;
    const description = minutes === undefined ? usual : { ...usual, timeoutSeconds: minutes * 60 };
    const { relayName, version, memory, tracing, publicHost, defaultLimits, logRetention } = props;
    const memoryMegabytes = memory?.[name] ?? usualMegabytes;
    const forAnswers = answersCalls(name) ? props.reservedConcurrency : undefined;
    return new RelayFunction(this, name, {
      ...props,
      description,
      bundleFolder: join(props.bundlesFolder, name),
      environment: {
        RELAY_STACK: relayName,
        RELAY_VERSION: version,
        ...(props.awsClient && { AWS_CLIENT: props.awsClient }),
        // A function without a URL checks no origin secret, so it gets none.
        ORIGIN_SECRETS: description.url === undefined ? '' : props.acceptedOriginSecrets,
        ...(description.callsModels && {
          SEAL_KEYS: props.sealKeys,
          PSEUDONYM_KEY: pseudonymKey,
          NODE_OPTIONS: formatHeapBounds(memoryMegabytes),
          ...(tracing && buildTracingVariables(tracing)),
        }),
        ...(name === 'config' && publicHost !== undefined && { RELAY_PUBLIC_HOST: publicHost }),
        ...(name === 'config' && buildDeployedVariables(props.secretAccess)),
        ...(name === 'config' && defaultLimits && { RELAY_LIMITS: JSON.stringify(defaultLimits) }),
        ...(forAnswers !== undefined && { RELAY_CONCURRENCY: String(forAnswers) }),
      },
      memoryMegabytes,
      logRetention: logRetention ?? RetentionDays.ONE_MONTH,
      reservedConcurrency: description.keepsBooks ? props.moneyConcurrency : forAnswers,
    });
  }

  /** Returns a function by name; every described function exists where functions answer. */
  get(name: FunctionName): RelayFunction {
    const found = this.byName.get(name);
    if (found === undefined) throw new Error(`no function ${name}`);
    return found;
  }

  lambdas(): MadeFunctions {
    const entries = [...this.byName].map(([name, { lambda }]) => [name, lambda]);
    return Object.fromEntries(entries) as MadeFunctions;
  }

  urls(): Partial<Record<PublicFunctionName, IFunctionUrl>> {
    return Object.fromEntries([...this.byName].flatMap(([name, { url }]) => (url ? [[name, url]] : [])));
  }

  /** The aliases that receive requests. */
  answeringAliases(): [FunctionName, Alias][] {
    return [...this.byName].flatMap(([name, { live }]) =>
      live && functionDescriptions[name].url !== undefined ? [[name, live]] : [],
    );
  }

  /** The alias of a function that a route uses. */
  live(name: FunctionName): Alias {
    const { live } = this.get(name);
    if (live === undefined) throw new Error(`a route leads to function ${name}, which answers no requests`);
    return live;
  }

  /** Returns the Function URL of a function that a route uses. */
  url(name: FunctionName): FunctionUrl {
    const { url } = this.get(name);
    if (url === undefined) throw new Error(`a route leads to function ${name}, which has no URL`);
    return url;
  }
}

/**
 * Gives the heap half of the memory, with small young generations. By default garbage grows to the memory of the function before it is
 * collected, and the buffers of a fast answer need room too.
 */
const formatHeapBounds = (megabytes: number): string =>
  `--max-old-space-size=${Math.floor(megabytes / 2)} --max-semi-space-size=4`;

/** Uses OpenTelemetry's standard names. CloudFormation resolves the headers during deployment. */
export const buildTracingVariables = ({
  endpoint,
  headersSecret,
  share,
}: RelayTracing): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  ...(headersSecret !== undefined && {
    OTEL_EXPORTER_OTLP_HEADERS: SecretValue.secretsManager(headersSecret).unsafeUnwrap(),
  }),
  ...(share !== undefined && { OTEL_TRACES_SAMPLER_ARG: String(share) }),
});

// Policy statements of roles. IAM denies everything else.

export const allow = (service: string, actions: readonly string[], ...resources: string[]): PolicyStatement =>
  new PolicyStatement({ actions: actions.map((action) => `${service}:${action}`), resources });

const deny = (...given: Parameters<typeof allow>): PolicyStatement => {
  const statement = allow(...given);
  statement.effect = Effect.DENY;
  return statement;
};

type SecretStoreName = 'ssm' | 'secretsmanager';

/** The secrets of a relay in one store. People choose the names, and Secrets Manager adds six characters. */
export const formatSecretArn = (stack: Stack, store: SecretStoreName, path: string): string =>
  store === 'ssm'
    ? stack.formatArn({ service: store, resource: 'parameter', resourceName: `relay/${path}` })
    : stack.formatArn({
        service: store,
        resource: 'secret',
        resourceName: path,
        arnFormat: ArnFormat.COLON_RESOURCE_NAME,
      });

/** Passes the references that rows must not name to the code. */
export const buildDeployedVariables = ({ deployed }: SecretAccess): Record<string, string> =>
  Object.keys(deployed).length === 0 ? {} : { DEPLOYED_SECRETS: JSON.stringify(deployed) };

// One function with its log group and role and, if its description has them, its alias and Function URL.

const liveAlias = 'live';

/**
 * Keeps what must outlive the stack: log groups and stream failures, which are evidence when money is disputed, and keys that nothing can
 * restore. A failed first deployment deletes them, because CloudFormation chooses new names and never adopts the old ones.
 */
export const keepAfterCreation = (disposable: boolean): RemovalPolicy =>
  disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;

interface RelayFunctionProps {
  description: FunctionDescription;
  /** The folder that holds `index.mjs`. */
  bundleFolder: string;
  environment: Record<string, string>;
  memoryMegabytes: number;
  logRetention: RetentionDays;
  disposable: boolean;
  /** Otherwise the function shares the account's concurrency. */
  reservedConcurrency: number | undefined;
  relayName: string;
  tables: RelayTables;
  keys: RelayKeys;
  secretAccess: SecretAccess;
  functionUrls?: boolean;
  vpc?: VpcIds | undefined;
}

export class RelayFunction extends Construct {
  readonly lambda: LambdaFunction;
  /** The alias that callers and triggers invoke, at the version that the deployment has shifted to. Only shifted functions have one. */
  readonly live?: Alias;
  readonly statements: readonly PolicyStatement[];
  readonly url?: FunctionUrl;

  constructor(scope: Construct, id: string, props: RelayFunctionProps) {
    super(scope, id);
    const { description } = props;
    if (!existsSync(props.bundleFolder)) {
      throw new Error(`no bundle of function ${id} in ${props.bundleFolder}: run npm run build`);
    }
    const logGroup = new LogGroup(this, 'Logs', {
      retention: props.logRetention,
      ...(props.keys.logs && { encryptionKey: props.keys.logs }),
      removalPolicy: keepAfterCreation(props.disposable),
    });
    // CDK's default role could write to every log group.
    const role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    this.lambda = new LambdaFunction(this, 'Function', {
      description: description.purpose,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      code: Code.fromAsset(props.bundleFolder),
      timeout: Duration.seconds(description.timeoutSeconds),
      memorySize: props.memoryMegabytes,
      environment: props.environment,
      ...(props.keys.variables && { environmentEncryption: props.keys.variables }),
      reservedConcurrentExecutions: props.reservedConcurrency,
      loggingFormat: LoggingFormat.JSON,
      // At INFO, Lambda adds two lines of about 600 bytes to each call. WARN still reports time-outs, crashes and lack of
      // memory.
      systemLogLevelV2: SystemLogLevel.WARN,
      logGroup,
      role,
      // An old version still finishes answers of up to 15 minutes, and is the target of a rollback, so it stays. A version of a
      // failed deployment must be deleted: Lambda publishes no second version of the same code, so that build could never be
      // deployed again.
      currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE },
    });
    role.addToPolicy(allow('logs', ['CreateLogStream', 'PutLogEvents'], logGroup.logGroupArn));
    // Lambda also creates a grant with the deployer's rights, but that grant ends if the role is replaced.
    for (const statement of grantKeyUse(Stack.of(this), props.keys.variables, ['lambda'], ['Decrypt']))
      role.addToPolicy(statement);
    this.statements = grantsOf(Stack.of(this), props);
    for (const statement of this.statements) role.addToPolicy(statement);
    if (props.vpc) this.runIn(props.vpc, role);
    if (description.url === undefined && !description.keepsBooks) return;
    this.live = new Alias(this, 'Live', { aliasName: liveAlias, version: this.lambda.currentVersion });
    if (props.functionUrls && description.url !== undefined)
      // IAM auth needs a body hash from the client, which no OpenAI SDK sends. The origin secret protects the URL
      // instead.
      this.url = this.live.addFunctionUrl({
        authType: FunctionUrlAuthType.NONE,
        invokeMode: InvokeMode[description.url],
      });
  }

  /** Uses ids, because CDK's own way needs the VPC object, and creates a group for each function. */
  private runIn({ subnetIds, securityGroupIds, routes }: VpcIds, role: Role): void {
    if (routes) this.lambda.node.addDependency(routes);
    const { defaultChild } = this.lambda.node;
    (defaultChild as CfnFunction).vpcConfig = {
      subnetIds: [...subnetIds],
      securityGroupIds: [...securityGroupIds],
    };
    // A network interface that does not exist yet has no ARN. Calls of the function's code carry this key; Lambda's own calls
    // with the role do not.
    const statement = allow('ec2', interfaceActions, '*');
    statement.addCondition('Null', { 'lambda:SourceFunctionArn': 'true' });
    role.addToPolicy(statement);
  }
}

interface VpcIds extends RelayVpc {
  /** The routes of a VPC that the app creates. */
  routes?: IDependable;
}

/** Reads the ids of CDK's objects. Throws an Error for public subnets, because functions can't reach the internet from them. */
export function readNetwork(
  scope: Construct,
  { vpc, vpcSubnets, securityGroups }: RelayNetwork,
): VpcIds | undefined {
  if (vpc === undefined || 'subnetIds' in vpc) {
    if (vpcSubnets === undefined && securityGroups === undefined) return vpc;
    throw new Error(`${scope.node.path}: vpcSubnets and securityGroups need vpc as an object of CDK`);
  }
  const { subnetIds, hasPublic, internetConnectivityEstablished: routes } = vpc.selectSubnets(vpcSubnets);
  if (hasPublic)
    throw new Error(
      `${scope.node.path}: vpcSubnets: functions can't reach the internet from a public subnet`,
    );
  // Lambda rejects subnets without a security group.
  const groups = securityGroups?.length
    ? securityGroups
    : [new SecurityGroup(scope, 'FunctionsGroup', { vpc, description: 'Functions of the relay' })];
  return { subnetIds, securityGroupIds: groups.map(({ securityGroupId }) => securityGroupId), routes };
}

/** The calls that Lambda makes to attach a function to a VPC. */
const interfaceActions = [
  'AssignPrivateIpAddresses',
  'CreateNetworkInterface',
  'DeleteNetworkInterface',
  'DescribeNetworkInterfaces',
  'DescribeSubnets',
  'UnassignPrivateIpAddresses',
];

interface Granted {
  description: Pick<FunctionDescription, 'queries' | 'tables' | 'readsSecrets'>;
  tables: RelayTables;
  relayName: string;
  keys: RelayKeys;
  secretAccess: SecretAccess;
}

/** Builds the statements for the tables and secrets of a description. */
export const grantsOf = (stack: Stack, props: Granted): PolicyStatement[] => [
  ...listTableGrants(props),
  ...(props.description.readsSecrets ? listSecretGrants(stack, props) : []),
];

function listTableGrants(props: Granted): PolicyStatement[] {
  const statements = tableNames.flatMap((name) => {
    const actions = props.description.tables[name] ?? [];
    const { tableArn } = props.tables.byName[name];
    const index = props.description.queries?.[name];
    const own = actions.length === 0 ? [] : [allow('dynamodb', actions, tableArn)];
    return index === undefined ? own : own.concat(allow('dynamodb', ['Query'], `${tableArn}/index/${index}`));
  });
  return [...statements, ...props.tables.keyAccess()];
}

/** Until all secrets are moved, rows may name any path. So this allows every path except those of other purposes. */
function listSecretGrants(
  stack: Stack,
  { relayName, keys, description, secretAccess }: Granted,
): PolicyStatement[] {
  const { readsSecrets: own = [] } = description;
  const { unbound, deployed } = secretAccess;
  const isOwn = (purpose: SecretPurpose): boolean => own.includes(purpose);
  const others = secretPurposes.filter((purpose) => !isOwn(purpose));
  return (['ssm', 'secretsmanager'] as const)
    .flatMap((store) => {
      const action = store === 'ssm' ? 'GetParameter' : 'GetSecretValue';
      const formatSecretsBelow = (path: string): string =>
        formatSecretArn(stack, store, `${relayName}/${path}`);
      const deployedOf = (purposes: readonly SecretPurpose[]): string[] =>
        purposes.flatMap((purpose) => formatDeployedSecret(stack, store, deployed[purpose]));
      const bound = [...own.map((purpose) => formatSecretsBelow(`${purpose}/*`)), ...deployedOf(own)];
      if (!unbound || own.every((purpose) => deployedPurposes.has(purpose)))
        return [allow(store, [action], ...bound)];
      const denied = [...others.map((purpose) => formatSecretsBelow(`${purpose}/*`)), ...deployedOf(others)];
      return [allow(store, [action], formatSecretsBelow('*')), deny(store, [action], ...denied)];
    })
    .concat(grantKeyUse(stack, keys.secrets, ['secretsmanager', 'ssm'], ['Decrypt']));
}

/** Only options name secrets of these purposes, so their functions need no others. */
const deployedPurposes: ReadonlySet<SecretPurpose> = new Set(['console', 'canary']);

/** Secrets Manager adds a hyphen and six characters to a name. */
function formatDeployedSecret(stack: Stack, store: SecretStoreName, reference = ''): string[] {
  const [, path] = /^(?:ssm:\/relay\/|secretsmanager:)(.+)$/.exec(reference) ?? [];
  if (path === undefined || !reference.startsWith(`${store}:`)) return [];
  return [formatSecretArn(stack, store, store === 'ssm' ? path : `${path}-??????`)];
}
