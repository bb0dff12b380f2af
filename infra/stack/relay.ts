/**
 * The whole relay as one construct, for stacks of this repository and of others. Only composes.
 * Its logical ids and names are those of deployed stacks: a change of a child's id would replace customers' tables.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Annotations, CfnOutput, Stack } from 'aws-cdk-lib';
import type { CfnRestApi } from 'aws-cdk-lib/aws-apigateway';
import type { CfnBudget } from 'aws-cdk-lib/aws-budgets';
import type { Distribution } from 'aws-cdk-lib/aws-cloudfront';
import {
  Stats,
  type Dashboard as DashboardPage,
  type IAlarm,
  type Metric,
  type MetricOptions,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { ITable } from 'aws-cdk-lib/aws-dynamodb';
import type { IStream } from 'aws-cdk-lib/aws-kinesis';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { IFunctionUrl } from 'aws-cdk-lib/aws-lambda';
import type { CfnQueryDefinition } from 'aws-cdk-lib/aws-logs';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import type { TableName } from '../../shared/tables/table-names.ts';
import { acknowledgeFindings } from './acknowledged-findings.ts';
import {
  createAccessLogBucket,
  useApiGateway,
  createConsoleOrigin,
  useFunctionUrls,
  usePrivateBalancer,
  RelayDistribution,
  type RelayDomain,
} from './constructs/distribution.ts';
import { Alarms, type Objectives } from './observe/alarms.ts';
import { allowBedrockModels, allowNotices, OperatorPolicies } from './constructs/operator-policies.ts';
import { createBudget, type RelayBudget } from './observe/budget.ts';
import { BackupCopies, type RelayBackupCopies } from './constructs/backup-copies.ts';
import { Dashboard } from './observe/dashboard.ts';
import {
  callingFunctions,
  type LogsOf,
  type PublicFunctionName,
} from './constructs/function-descriptions.ts';
import {
  keepAfterCreation,
  type MadeFunctions,
  readNetwork,
  RelayFunctions,
  type RelayFunctionsProps,
  type RelayNetwork,
  type SecretAccess,
} from './constructs/relay-functions.ts';
import { createHostedConsole, type RelayConsole } from './constructs/hosted-console.ts';
import { openKeys, type RelayKeys } from './constructs/encryption-keys.ts';
import { originOfStage, RelayApi } from './constructs/rest-api.ts';
import { type FrontDoor, hasDistribution } from './options/front-door.ts';
import { NumberedSecrets } from './constructs/numbered-secrets.ts';
import { saveQueries } from './observe/saved-queries.ts';
import { refuseName } from './constructs/relay-name.ts';
import { RelayService, type RelayServiceOptions } from './constructs/relay-service.ts';
import { RelayTables } from './constructs/relay-tables.ts';
import { Triggers } from './constructs/triggers.ts';
import { type CanaryOptions, createScheduledCall, shiftTraffic } from './rollout.ts';
import { createRelayMetric } from './observe/relay-metric.ts';
import { cdkObject, nameOnly, type PropRules } from './options/prop-problems.ts';
import { refuseProps } from './options/refuse-props.ts';

export type {
  CanaryOptions,
  FrontDoor,
  Objectives,
  RelayBackupCopies,
  RelayBudget,
  RelayConsole,
  RelayDomain,
  RelayKeys,
  RelayServiceOptions,
};

/** Includes props that only the functions use, documented where they are declared. */
export interface RelayProps
  extends
    RelayNetwork,
    Pick<
      RelayFunctionsProps,
      | 'reservedConcurrency'
      | 'moneyConcurrency'
      | 'backgroundMinutes'
      | 'memory'
      | 'logRetention'
      | 'compute'
      | 'tracing'
      | 'awsClient'
      | 'defaultLimits'
    > {
  /**
   * The prefix of all names: tables, metrics, secrets. Lower case, at most 27 characters, unique in the account and region. A new
   * name creates new, empty tables. Default: `relay`.
   */
  name?: string;
  /**
   * The address clients call: `cloudfront`, a distribution before Function URLs; `cloudfront-api`, one before API
   * Gateway; `api`, API Gateway in the region; `private-api`, API Gateway inside VPCs only. docs/deploy.md
   * compares them. Default: `cloudfront`.
   */
  frontDoor?: FrontDoor;
  /** The VPC endpoints of execute-api that can call a `private-api`. */
  vpcEndpointIds?: readonly string[];
  /** For trials: tables, logs and stream failures are deleted with the stack. Default: false. */
  disposable?: boolean;
  /** The public host name, its certificate and its hosted zone. By default CloudFront chooses a name. */
  domain?: RelayDomain;
  /** Receives alarms and notices about accounts. By default nobody receives alarms. */
  alarmEmail?: string;
  /** Receives the alarms that must wake somebody. By default they go where the other alarms go. */
  pageEmail?: string;
  /** Objectives of the alarms. By default 99.5 % of calls succeed and 95 % of answers start within 10 s. */
  objectives?: Objectives;
  /**
   * Calls the relay on a schedule through its public address, with a key that is stored beside the secrets of channels. Costs the
   * tokens of its calls, and on AWS about $0.50 a month at the default interval of five minutes. Default: none.
   */
  canary?: CanaryOptions;
  /**
   * The operators' console at `/console/` of the public address, for people who log in with OpenID Connect. Needs a distribution.
   * Default: none; `relay-ops console` needs no deployment.
   */
  console?: RelayConsole;
  /**
   * True: a deployment shifts a tenth of the calls to the new versions for five minutes, then the rest, and rolls back if they
   * fail meanwhile. `linear`: a tenth more each minute. False: all at once, for an urgent fix. Without `alarms` calls always shift at
   * once, because nothing would notice the failures. Default: true.
   */
  shifting?: boolean | 'linear';
  /**
   * An existing standard topic in the relay's region for alarms and notices about accounts; `alarmEmail` subscribes to it. The policies
   * of the topic and of its key, if it has one, must let `cloudwatch.amazonaws.com` publish. The function `notify` uses the key
   * through SNS with its own rights. By default a topic is created if there is an `alarmEmail`.
   */
  alarmTopic?: ITopic;
  /**
   * A key in the relay's region that encrypts the tables. Functions can use it only through DynamoDB. If the key is lost or disabled, so
   * is the relay. Default: the key that AWS manages for DynamoDB.
   */
  encryptionKey?: IKey;
  /** Copies of the tables in another region, in case this one is lost. Default: none. */
  backupCopies?: RelayBackupCopies;
  /**
   * A Kinesis data stream of this account and region that receives every new ledger row, for example for a data lake. Use it instead of table
   * streams: DynamoDB supports two readers of each, and those of `quotas` and `runtime` already have two. Default: none.
   */
  ledgerStream?: IStream;
  /**
   * Keys for logs, secrets, the alarm topic, buckets and variables of functions. If CDK creates a key, it allows the services that need
   * it. The policy of an existing key must already allow them: see docs/options.md. Default: keys that AWS manages.
   */
  encryptionKeys?: RelayKeys;
  /** The sender of mail to customers, an identity that SES has verified. By default no mail is sent. */
  alertSender?: string;
  /** Numbers of the origin secrets, oldest first. CloudFront sends the last; functions accept all. Default: `[1]`. */
  originSecrets?: readonly number[];
  /** Numbers of the keys that encrypt the state of turns, ascending. The last encrypts; all decrypt. Default: `[1]`. */
  sealKeys?: readonly number[];
  /** With compute `ecs`: image, network, number of tasks. */
  service?: RelayServiceOptions;
  /** False creates no alarms, so deployments shift calls at once. A topic still gets notices about accounts. Default: true. */
  alarms?: boolean;
  /** The ARN of a WAF ACL: in us-east-1 for CloudFront, in the relay's region for an API. Default: none. */
  webAclArn?: string;
  /**
   * Logs every request at the edge, with client addresses. True creates a bucket that outlives the stack and keeps lines for
   * `logRetention`. Or give a bucket of yours that allows ACLs. Default: none.
   */
  accessLog?: boolean | IBucket;
  /** A budget for the costs of the AWS account. Default: none. */
  budget?: RelayBudget;
  /** ARNs of Bedrock models that channels can call with the functions' role. Default: none. */
  bedrockModels?: readonly string[];
  /**
   * True lets functions also read secrets whose paths name no purpose, as in earlier versions. `relay-ops secret move` moves them;
   * then set this to false. Default: true.
   */
  unboundSecrets?: boolean;
  /** The build's output, one folder a function. Default: the one of this package. */
  bundlesFolder?: string;
}

/** Checks of each prop. An unknown prop is refused by name, for apps in JavaScript too. */
const propRules: Readonly<Record<keyof RelayProps, PropRules[string]>> = {
  name: nameOnly,
  disposable: 'disposable',
  domain: { name: 'domain', certificate: cdkObject, hostedZone: cdkObject },
  alarmEmail: 'alarmEmail',
  pageEmail: 'pageEmail',
  objectives: 'objectives',
  canary: 'canary',
  console: 'console',
  shifting: 'shifting',
  alarmTopic: cdkObject,
  encryptionKey: cdkObject,
  encryptionKeys: {
    logs: cdkObject,
    secrets: cdkObject,
    alarmTopic: cdkObject,
    buckets: cdkObject,
    variables: cdkObject,
  },
  alertSender: 'alertSender',
  backupCopies: 'backupCopies',
  ledgerStream: cdkObject,
  originSecrets: 'originSecrets',
  sealKeys: 'sealKeys',
  reservedConcurrency: 'reservedConcurrency',
  moneyConcurrency: 'moneyConcurrency',
  backgroundMinutes: 'backgroundMinutes',
  compute: 'compute',
  service: 'service',
  memory: 'memory',
  logRetention: nameOnly,
  tracing: 'tracing',
  awsClient: 'awsClient',
  defaultLimits: 'limits',
  alarms: 'alarms',
  webAclArn: 'webAcl',
  accessLog: 'accessLog',
  budget: 'budget',
  bedrockModels: 'bedrockModels',
  unboundSecrets: 'unboundSecrets',
  bundlesFolder: nameOnly,
  frontDoor: 'frontDoor',
  vpcEndpointIds: 'vpcEndpointIds',
  vpc: 'vpc',
  vpcSubnets: cdkObject,
  securityGroups: nameOnly,
};

const alarmsWithoutReceiver =
  'nobody receives alarms: set alarmEmail, pageEmail or alarmTopic (alarmTopicArn in the file of a stage). If you read alarms elsewhere, acknowledge this warning';

const packageFolder = join(import.meta.dirname, '..', '..');

export class Relay extends Construct {
  /** The base_url for clients: `https://api.example.com/v1`. */
  readonly baseUrl: string;
  /** Missing if clients call an API directly. */
  readonly distribution: Distribution | undefined;
  /** Missing if the distribution leads to the functions directly. */
  readonly api: CfnRestApi | undefined;
  /** By name without the relay's prefix: `tables.keys`. docs/tables.md says who writes which. */
  readonly tables: Readonly<Record<TableName, ITable>>;
  readonly functions: MadeFunctions;
  /**
   * URLs of the functions behind the distribution; empty behind an API. A request that bypasses the distribution gets a 403, so use
   * them only for health checks and firewalls.
   */
  readonly functionUrls: Readonly<Partial<Record<PublicFunctionName, IFunctionUrl>>>;
  /** With compute `ecs`: the ECS service, balancer and VPC. */
  readonly service?: RelayService;
  /** The topic of the alarms: the given one, or the one that mails them. */
  readonly alarmTopic: ITopic | undefined;
  readonly alarms: readonly IAlarm[];
  readonly dashboard: DashboardPage;
  /** Saved queries of Logs Insights, in a folder with the relay's name. */
  readonly savedQueries: readonly CfnQueryDefinition[];
  /** Managed policies for operators. docs/operate.md lists what each allows. */
  readonly operatorPolicies: OperatorPolicies['byName'];
  /** The output with the base URL, so that an app can export or rename it. */
  readonly baseUrlOutput: CfnOutput;
  /** The log groups of the functions that answer calls. */
  readonly callLogGroupsOutput: CfnOutput;
  readonly budget?: CfnBudget;
  private readonly relayName: string;

  constructor(scope: Construct, id: string, props: RelayProps = {}) {
    super(scope, id);
    refuseProps(this, props, propRules, Stack.of(this).region);
    const { disposable = false, domain, alertSender, encryptionKey, encryptionKeys: keys = {} } = props;
    const { ledgerStream } = props;
    const { frontDoor = 'cloudfront' } = props;
    // This is the VPC of functions. `service` has that of servers.
    const { vpc: _vpc, ...others } = props;
    const vpc = readNetwork(this, props);
    const behindCloudFront = hasDistribution(frontDoor);
    const hasApi = frontDoor !== 'cloudfront';
    const relayName = props.name ?? 'relay';
    this.relayName = relayName;
    refuseName(this, relayName, (found) => (found instanceof Relay ? found.relayName : undefined));
    const { bundlesFolder = join(packageFolder, 'dist') } = props;
    const tables = new RelayTables(this, 'Tables', { relayName, disposable, encryptionKey, ledgerStream });
    const secretAccess: SecretAccess = {
      unbound: props.unboundSecrets ?? true,
      deployed: {
        ...(props.console && { console: props.console.oidc.clientSecret }),
        ...(props.canary && { canary: props.canary.key }),
      },
    };
    const common = {
      relayName,
      version: readPackageVersion(),
      tables,
      disposable,
      bundlesFolder,
      keys,
      secretAccess,
    };
    openKeys(this, keys, props.accessLog === true);
    const originSecrets = behindCloudFront
      ? new NumberedSecrets(this, 'Origin', {
          numbers: props.originSecrets ?? [1],
          encryptionKey: keys.secrets,
          about: (number) => `Origin secret ${number}: CloudFront sends it to the relay's functions`,
        })
      : undefined;
    const sealKeys = new NumberedSecrets(this, 'SealKeys', {
      numbers: props.sealKeys ?? [1],
      encryptionKey: keys.secrets,
      // Clients and retained tables hold state that only these keys decrypt.
      removalPolicy: keepAfterCreation(disposable),
      about: (number) => `Seal key ${number}: encrypts the turn state that clients keep and the relay stores`,
    });
    const functions = new RelayFunctions(this, 'Functions', {
      ...others,
      ...common,
      vpc,
      functionUrls: !hasApi,
      acceptedOriginSecrets: originSecrets ? [...originSecrets.byNumber.values()].join(',') : originOfStage,
      sealKeys: JSON.stringify(Object.fromEntries(sealKeys.byNumber)),
      publicHost: domain?.name,
    });
    allowBedrockModels(functions, props.bedrockModels ?? []);
    const service =
      props.compute === 'ecs' && originSecrets
        ? new RelayService(this, 'Server', {
            ...others,
            ...props.service,
            ...common,
            functions,
            originSecrets,
            sealKeys,
          })
        : undefined;
    if (service) this.service = service;
    /** Returns the log group of a function, or of the server that replaces it. */
    const logsOf: LogsOf = (names) => [
      ...new Set(
        names.flatMap((name) => functions.byName.get(name)?.lambda.logGroup ?? service?.logGroup ?? []),
      ),
    ];
    const triggers = new Triggers(this, 'Triggers', { tables, functions, disposable, keys });
    const ownLog =
      props.accessLog === true
        ? createAccessLogBucket(this, { ...props, disposable, key: keys.buckets })
        : undefined;
    const api = hasApi
      ? new RelayApi(this, 'Api', {
          relayName,
          functions,
          vpcEndpointIds: props.vpcEndpointIds,
          direct: !behindCloudFront,
          ...(!behindCloudFront && { domain, webAclArn: props.webAclArn }),
        })
      : undefined;
    const callLogs = logsOf(callingFunctions);
    const hosted =
      props.console &&
      originSecrets &&
      createHostedConsole(this, {
        ...common,
        ...props.console,
        callLogs,
        acceptedOriginSecrets: [...originSecrets.byNumber.values()].join(','),
        publicHost: domain?.name,
        logRetention: props.logRetention,
        bedrockModels: props.bedrockModels ?? [],
      });
    // The logical id is derived from this id. A new one would replace the deployed distribution.
    const distribution =
      originSecrets &&
      new RelayDistribution(this, 'FrontDoor', {
        relayName,
        origins: service
          ? usePrivateBalancer(service, functions, originSecrets.newest)
          : api
            ? useApiGateway(api, originSecrets.newest)
            : useFunctionUrls(functions, originSecrets.newest),
        webAclArn: props.webAclArn,
        accessLog: typeof props.accessLog === 'object' ? props.accessLog : ownLog,
        ...(hosted && { console: createConsoleOrigin(hosted, originSecrets.newest) }),
        ...(domain && { domain }),
      });
    // Without alarms nothing would stop a bad deployment, so shifting would only make it slower.
    const shifting = (props.shifting ?? true) !== false && (props.alarms ?? true) && !service;
    const alarms = new Alarms(this, 'Alarms', {
      relayName,
      functions,
      triggers,
      service,
      shifting,
      email: props.alarmEmail,
      topic: props.alarmTopic,
      pageEmail: props.pageEmail,
      topicKey: keys.alarmTopic,
      objectives: props.objectives ?? {},
      canary: props.canary !== undefined,
      on: props.alarms ?? true,
    });
    if (props.alarms !== false && (alarms.topic ?? props.pageEmail) === undefined)
      Annotations.of(this).addWarningV2('relay:nobody-is-told', alarmsWithoutReceiver);
    this.baseUrl = `https://${distribution?.host ?? `${api?.host}${api?.path}`}/v1`;
    const { baseUrl } = this;
    const shiftRoles = shifting
      ? shiftTraffic(this, { functions, alarms, linear: props.shifting === 'linear' })
      : [];
    const canary = props.canary && createScheduledCall(this, { ...props.canary, ...common, baseUrl, vpc });
    const backup =
      props.backupCopies &&
      new BackupCopies(this, 'BackupCopies', { relayName, tables, encryptionKey, ...props.backupCopies });
    if (props.budget) this.budget = createBudget(this, { relayName, ...props.budget });
    allowNotices(functions, { topic: alarms.topic, sender: alertSender });
    const dashboard = new Dashboard(this, 'Dashboard', {
      relayName,
      functions,
      triggers,
      alarms,
      service,
      logsOf,
    });
    this.savedQueries = saveQueries(this, { relayName, logsOf });
    const operatorPolicies = new OperatorPolicies(this, 'OperatorPolicies', { relayName, tables, callLogs });
    this.callLogGroupsOutput = new CfnOutput(this, 'CallLogGroups', {
      description: 'The log groups with the lines of calls',
      value: callLogs.map(({ logGroupName }) => logGroupName).join(','),
    });

    this.baseUrlOutput = new CfnOutput(this, 'BaseUrl', {
      description: 'The base_url for clients',
      value: this.baseUrl,
    });
    acknowledgeFindings({
      relayName,
      tables,
      functions,
      originSecrets,
      sealKeys,
      distribution,
      api,
      operatorPolicies,
      triggers,
      service,
      alarms,
      shiftRoles,
      canary,
      console: hosted,
      backup,
      topic: alarms.topic,
      ownLog,
      inVpc: vpc !== undefined,
    });
    this.distribution = distribution?.distribution;
    this.api = api?.api;
    this.tables = tables.byName;
    this.functions = functions.lambdas();
    this.functionUrls = functions.urls();
    this.alarmTopic = alarms.topic;
    this.alarms = alarms.all;
    this.dashboard = dashboard.page;
    this.operatorPolicies = operatorPolicies.byName;
  }

  /**
   * A metric of the whole relay by its name in docs/observability.md, such as `Failures` or `ChargeYuan`.
   * Default: the sum of five minutes.
   */
  metric(metricName: string, options: MetricOptions = {}): Metric {
    return createRelayMetric(this.relayName, metricName, Stats.SUM).with(options).attachTo(this);
  }
}

export function readPackageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
