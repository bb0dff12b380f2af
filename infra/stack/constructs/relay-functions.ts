/** All functions of the relay, made from their descriptions. */
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { Aws, SecretValue, ArnFormat, Stack, Duration, RemovalPolicy } from 'aws-cdk-lib';
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
import { Construct } from 'constructs';
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

/** Where traces of calls go; docs/observability.md says what is in them. */
export interface RelayTracing {
  /** The base address of an OTLP receiver over HTTPS; `/v1/traces` is added. */
  endpoint: string;
  /** The name of a secret in Secrets Manager with headers: `name=value,name=value`. Default: none are sent. */
  headersSecret?: string | undefined;
  /** The share of calls that are traced, from 0 to 1. Default: 1. */
  share?: number | undefined;
}

/** Subnets and security groups of a VPC. */
export interface RelayVpc {
  subnetIds: readonly string[];
  securityGroupIds: readonly string[];
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
  /** The log groups go with the stack. */
  disposable: boolean;
  /** Comma-separated values of the origin header that functions accept. */
  acceptedOriginSecrets: string;
  /** Give each function that answers requests a Function URL. */
  functionUrls: boolean;
  /**
   * Where all functions run; not with `cloudfront`, as Function URLs do not stream from a VPC. What they call must be reached
   * from there: docs/deploy.md lists it. Default: in no VPC.
   */
  vpc?: RelayVpc;
  /** The name in the domain option; the distribution's own name is made from the functions, so they cannot know it. */
  publicHost: string | undefined;
  /** The value of `SEAL_KEYS` of functions that call models. */
  sealKeys: string;
  /** The build's output: one folder per function. */
  bundlesFolder: string;
  keys: RelayKeys;
  secretAccess: SecretAccess;
  /**
   * Calls at once that AWS reserves for each of the functions of endpoints, and their bound. Default: they share
   * what the AWS account has.
   */
  reservedConcurrency?: number;
  /**
   * Calls at once that AWS reserves for each of `ledger`, `grants`, `sweeper` and `config`, and their bound, so that answers
   * cannot crowd out the books. Default: they share what the AWS account has.
   */
  moneyConcurrency?: number;
  /** Megabytes by function. Default: 256 for each; docs/options.md says what was measured. */
  memory?: Readonly<Partial<Record<FunctionName, number | undefined>>>;
  /** How long log groups keep lines. Default: a month. */
  logRetention?: RetentionDays;
  /** Where spans of requests go. Default: none are made. */
  tracing?: RelayTracing;
  /**
   * Answer calls with `functions`, or with `ecs`, a server on Fargate behind a private load balancer, for steady
   * traffic. With `ecs` the answering functions are not created; `payments` and background functions stay.
   * Default: `functions`.
   */
  compute?: 'functions' | 'ecs';
  /** `sdk`: functions reach their tables by AWS's own client, while something is wrong with the relay's. Default: the relay's. */
  awsClient?: 'sdk';
  /** Value of the setting `limits` while it has no row, as in docs/tables.md. Default: none. */
  defaultLimits?: Readonly<Record<string, unknown>>;
}

/**
 * The key for pseudonyms of end users and caches. CloudFormation creates the random part of the stack id once and
 * keeps it. It must not change as rotated keys do: a new one would cost every conversation its cache and, with
 * some vendors, its reasoning. Clients and vendors don't know it, and it grants no rights.
 */
export const pseudonymKey = Aws.STACK_ID;

/** Docs/options.md says what was measured. */
const usualMegabytes = 256;

/** With compute `ecs` the server answers in the place of some. */
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
    // Rows and balances are read in new forms before they are written in them.
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
    const description = functionDescriptions[name];
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
        // A function without a URL checks no origin secret and gets none.
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
 * Half of the memory for the heap, and small first generations of it: by default the collector lets garbage grow to the
 * memory of the function before it works, and the buffers of a fast answer come on top.
 */
const formatHeapBounds = (megabytes: number): string =>
  `--max-old-space-size=${Math.floor(megabytes / 2)} --max-semi-space-size=4`;

/** The names that exporters of OpenTelemetry know. CloudFormation puts the headers in when it deploys. */
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

// Policy statements of roles. Everything that no statement allows is denied.

export const allow = (service: string, actions: readonly string[], ...resources: string[]): PolicyStatement =>
  new PolicyStatement({ actions: actions.map((action) => `${service}:${action}`), resources });

const deny = (...given: Parameters<typeof allow>): PolicyStatement => {
  const statement = allow(...given);
  statement.effect = Effect.DENY;
  return statement;
};

type SecretStoreName = 'ssm' | 'secretsmanager';

/** Secrets of one relay in one store. Names are chosen by people, and Secrets Manager adds six characters to each. */
export const formatSecretArn = (stack: Stack, store: SecretStoreName, path: string): string =>
  store === 'ssm'
    ? stack.formatArn({ service: store, resource: 'parameter', resourceName: `relay/${path}` })
    : stack.formatArn({
        service: store,
        resource: 'secret',
        resourceName: path,
        arnFormat: ArnFormat.COLON_RESOURCE_NAME,
      });

/** Tells the code which references rows must not name. */
export const buildDeployedVariables = ({ deployed }: SecretAccess): Record<string, string> =>
  Object.keys(deployed).length === 0 ? {} : { DEPLOYED_SECRETS: JSON.stringify(deployed) };

// One function with its log group, its role and, where described, its alias and its Function URL.

const liveAlias = 'live';

/**
 * Lines are the evidence behind money, so they outlive the stack for as long as they are kept. A first deployment that fails
 * leaves no group: CloudFormation names them anew, and would never take an old one over.
 */
export const logRemoval = (disposable: boolean): RemovalPolicy =>
  disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;

interface RelayFunctionProps {
  description: FunctionDescription;
  /** The folder that holds `index.mjs`. */
  bundleFolder: string;
  environment: Record<string, string>;
  memoryMegabytes: number;
  logRetention: RetentionDays;
  disposable: boolean;
  /** By default the function shares the account's concurrency. */
  reservedConcurrency: number | undefined;
  relayName: string;
  tables: RelayTables;
  keys: RelayKeys;
  secretAccess: SecretAccess;
  functionUrls?: boolean;
  vpc?: RelayVpc | undefined;
}

export class RelayFunction extends Construct {
  readonly lambda: LambdaFunction;
  /**
   * The alias that requests reach, at the version a deployment has shifted to. Only for functions that answer
   * requests.
   */
  readonly live?: Alias;
  readonly statements: readonly PolicyStatement[];
  readonly url?: FunctionUrl;

  constructor(scope: Construct, id: string, props: RelayFunctionProps) {
    super(scope, id);
    const { description } = props;
    if (!existsSync(props.bundleFolder)) {
      throw new Error(`no bundle of function ${id} in ${props.bundleFolder}: npm run build makes it`);
    }
    const logGroup = new LogGroup(this, 'Logs', {
      retention: props.logRetention,
      ...(props.keys.logs && { encryptionKey: props.keys.logs }),
      removalPolicy: logRemoval(props.disposable),
    });
    // CDK's default role has a managed policy that lets a function write to every log group.
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
      reservedConcurrentExecutions: props.reservedConcurrency,
      loggingFormat: LoggingFormat.JSON,
      // At INFO, Lambda adds two lines of some 600 bytes to each call. A call that times out, runs out of memory or crashes
      // is reported at WARN too.
      systemLogLevelV2: SystemLogLevel.WARN,
      logGroup,
      role,
      // A version that has lost its traffic still ends answers of up to 15 minutes, and is what one rolls back to. One that a
      // failed deployment published must go: Lambda publishes no second version of the same code, so that build could
      // never be deployed again.
      currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE },
    });
    role.addToPolicy(allow('logs', ['CreateLogStream', 'PutLogEvents'], logGroup.logGroupArn));
    this.statements = grantsOf(Stack.of(this), props);
    for (const statement of this.statements) role.addToPolicy(statement);
    if (props.vpc) this.runIn(props.vpc, role);
    if (description.url === undefined) return;
    this.live = new Alias(this, 'Live', { aliasName: liveAlias, version: this.lambda.currentVersion });
    if (props.functionUrls)
      // IAM needs a body hash from the client, which no OpenAI SDK sends. The origin secret protects the
      // URL instead.
      this.url = this.live.addFunctionUrl({
        authType: FunctionUrlAuthType.NONE,
        invokeMode: InvokeMode[description.url],
      });
  }

  /** By ids: CDK's own way needs the VPC itself, and looks it up or makes groups of its own. */
  private runIn({ subnetIds, securityGroupIds }: RelayVpc, role: Role): void {
    const { defaultChild } = this.lambda.node;
    (defaultChild as CfnFunction).vpcConfig = {
      subnetIds: [...subnetIds],
      securityGroupIds: [...securityGroupIds],
    };
    // Network interfaces that do not exist yet have no narrower resource. Calls of the function's own code
    // carry this key; those that Lambda makes with its role do not.
    const statement = allow('ec2', interfaceActions, '*');
    statement.addCondition('Null', { 'lambda:SourceFunctionArn': 'true' });
    role.addToPolicy(statement);
  }
}

/** Lambda's own calls to bring a function into a VPC. */
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

/** Statements for the tables and secrets of a description. */
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

/** Until all secrets are moved, rows may name any path, so everything is allowed except what belongs to other purposes. */
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

/** Only options name secrets of these purposes, so their functions need no other paths. */
const deployedPurposes: ReadonlySet<SecretPurpose> = new Set(['console', 'canary']);

/** Secrets Manager adds a hyphen and six characters to a name. */
function formatDeployedSecret(stack: Stack, store: SecretStoreName, reference = ''): string[] {
  const [, path] = /^(?:ssm:\/relay\/|secretsmanager:)(.+)$/.exec(reference) ?? [];
  if (path === undefined || !reference.startsWith(`${store}:`)) return [];
  return [formatSecretArn(stack, store, store === 'ssm' ? path : `${path}-??????`)];
}
