/**
 * Experimental: the server of `infra/server` as a Lambda Web Function, in the place of all functions that answer requests.
 * docs/server.md says what is not known of it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Duration } from 'aws-cdk-lib';
import { Role, ServicePrincipal, type PolicyStatement } from 'aws-cdk-lib/aws-iam';
import {
  WebFunction,
  WebFunctionAuthType,
  WebFunctionCode,
  WebFunctionRuntime,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import {
  allow,
  logRemoval,
  pseudonymKey,
  tracingVariables,
  type RelayFunctions,
  type RelayFunctionsProps,
} from './relay-functions.ts';
import { functionDescriptions } from './function-descriptions.ts';

export interface RelayWebFunctionProps extends Pick<
  RelayFunctionsProps,
  | 'relayName'
  | 'version'
  | 'disposable'
  | 'acceptedOriginSecrets'
  | 'sealKeys'
  | 'publicHost'
  | 'bundlesFolder'
  | 'logRetention'
  | 'tracing'
  | 'oneItemPerAccount'
> {
  /** It may do what those in whose place it is may. */
  functions: RelayFunctions;
}

/** The most that an environment takes. Each has 2 GB, whatever is asked for. */
const requestsPerEnvironment = 128;
const timeoutSeconds = 900;

export class RelayWebFunction extends Construct {
  /** The host that the distribution sends requests to. */
  readonly host: string;
  readonly role: Role;
  readonly logGroup: LogGroup;

  constructor(scope: Construct, id: string, props: RelayWebFunctionProps) {
    super(scope, id);
    const folder = join(props.bundlesFolder, 'server');
    if (!existsSync(folder)) throw new Error(`no bundle of the server in ${folder}: npm run build makes it`);
    const logGroup = new LogGroup(this, 'Logs', {
      retention: props.logRetention ?? RetentionDays.ONE_MONTH,
      removalPolicy: logRemoval(props.disposable),
    });
    this.logGroup = logGroup;
    this.role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    this.role.addToPolicy(allow('logs', ['CreateLogStream', 'PutLogEvents'], logGroup.logGroupArn));
    for (const statement of statementsOf(props.functions)) this.role.addToPolicy(statement);
    const webFunction = new WebFunction(this, 'WebFunction', {
      webFunctionName: `${props.relayName}-web`,
      code: WebFunctionCode.fromAssetToManagedBucket(folder),
      entryPoint: 'index.mjs',
      runtime: WebFunctionRuntime.NODEJS_24_X,
      // As of Function URLs: the origin secret protects it.
      defaultEndpointAuth: WebFunctionAuthType.APPLICATION_MANAGED,
      timeout: Duration.seconds(timeoutSeconds),
      maxConcurrencyPerEnvironment: requestsPerEnvironment,
      environment: {
        RELAY_STACK: props.relayName,
        RELAY_VERSION: props.version,
        ORIGIN_SECRETS: props.acceptedOriginSecrets,
        SEAL_KEYS: props.sealKeys,
        PSEUDONYM_KEY: pseudonymKey,
        ...(props.publicHost !== undefined && { RELAY_PUBLIC_HOST: props.publicHost }),
        ...(props.oneItemPerAccount && { ONE_ITEM_PER_ACCOUNT: '1' }),
        ...(props.tracing && tracingVariables(props.tracing)),
        RELAY_REQUESTS_MAX: String(requestsPerEnvironment),
        ...props.functions.sendEvents(this.role),
        // An environment is removed a second after its signal.
        RELAY_DRAIN_SECONDS: '0',
      },
      role: this.role,
      logGroup,
    });
    this.host = webFunction.endpoint.domainName;
  }
}

const statementsOf = (functions: RelayFunctions): PolicyStatement[] =>
  [...functions.byName].flatMap(([name, { statements }]) =>
    functionDescriptions[name].url === undefined ? [] : statements,
  );
