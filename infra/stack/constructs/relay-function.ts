/** One function with its log group, its role and, where described, its public Function URL. */
import { existsSync } from 'node:fs';
import { Annotations, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Role, ServicePrincipal, type PolicyStatement } from 'aws-cdk-lib/aws-iam';
import {
  Alias,
  Architecture,
  Code,
  Function as LambdaFunction,
  FunctionUrlAuthType,
  InvokeMode,
  LoggingFormat,
  Runtime,
  SystemLogLevel,
  type FunctionUrl,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import { allow, channelSecrets } from './allow.ts';
import type { FunctionDescription } from './function-descriptions.ts';
import type { RelayTables } from './relay-tables.ts';

const liveAlias = 'live';

/**
 * Lines are the evidence behind money, so they outlive the stack for as long as they are kept. A first deployment that fails
 * leaves no group: CloudFormation names them anew, and would never take an old one over.
 */
export const logRemoval = (disposable: boolean): RemovalPolicy =>
  disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;

export interface RelayFunctionProps {
  description: FunctionDescription;
  /** The folder that holds `index.mjs`. */
  bundleFolder: string;
  environment: Record<string, string>;
  memoryMegabytes: number;
  logRetention: RetentionDays;
  disposable: boolean;
  /** Undefined: the function shares what the AWS account has. */
  reservedConcurrency: number | undefined;
  relayName: string;
  tables: RelayTables;
}

export class RelayFunction extends Construct {
  readonly lambda: LambdaFunction;
  /** What the URL calls: the version that a deployment has shifted its calls to. Only with a URL. */
  readonly live?: Alias;
  /** What it may do with tables and secrets. */
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
    this.statements = [
      ...tableGrants(props),
      ...(description.readsChannelSecrets ? secretGrants(Stack.of(this), props.relayName) : []),
    ];
    for (const statement of this.statements) role.addToPolicy(statement);
    if (description.url !== undefined) {
      // IAM needs a body hash from the client, which no OpenAI SDK sends. The origin secret protects the
      // URL instead.
      const url = { authType: FunctionUrlAuthType.NONE, invokeMode: InvokeMode[description.url] };
      this.live = new Alias(this, 'Live', { aliasName: liveAlias, version: this.lambda.currentVersion });
      this.url = this.live.addFunctionUrl(url);
      // The URL of stacks from before the alias stays for one release: answers that began there end, and edge
      // locations that still have the old origin are answered. To be removed in 0.3.
      this.lambda.addFunctionUrl(url);
      Annotations.of(this.lambda).acknowledgeWarning(
        '@aws-cdk/aws-lambda:addPermissionsToVersionOrAlias',
        'The alias has permissions of its own; those of the function are for its former URL',
      );
    }
  }
}

function tableGrants(props: RelayFunctionProps): PolicyStatement[] {
  const statements = tableNames.flatMap((name) => {
    const actions = props.description.tables[name] ?? [];
    return actions.length === 0 ? [] : allow('dynamodb', actions, props.tables.byName[name].tableArn);
  });
  return [...statements, ...props.tables.keyAccess()];
}

const secretGrants = (stack: Stack, relayName: string): PolicyStatement[] => [
  allow('ssm', ['GetParameter'], channelSecrets(stack, relayName, 'ssm')),
  allow('secretsmanager', ['GetSecretValue'], channelSecrets(stack, relayName, 'secretsmanager')),
];
