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
  type MadeFunctions,
  RelayFunctions,
  type RelayFunctionsProps,
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
import type { PropRules } from './options/prop-problems.ts';
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

/** With what is of the functions alone, which says it itself. */
export interface RelayProps extends Pick<
  RelayFunctionsProps,
  | 'vpc'
  | 'reservedConcurrency'
  | 'moneyConcurrency'
  | 'memory'
  | 'logRetention'
  | 'compute'
  | 'tracing'
  | 'awsClient'
  | 'defaultLimits'
> {
  /**
   * The first part of all names: of tables, metrics, secrets. Lower case, at most 27 characters, and no two relays of one
   * account and region have the same. Another name makes other, empty tables. Default: `relay`.
   */
  name?: string;
  /**
   * The address clients call: `cloudfront`, a distribution before Function URLs; `cloudfront-api`, one before API
   * Gateway; `api`, API Gateway in the region; `private-api`, API Gateway inside VPCs only. docs/deploy.md
   * compares them. Default: `cloudfront`.
   */
  frontDoor?: FrontDoor;
  /** The VPC endpoints of execute-api through which alone a `private-api` is called. */
  vpcEndpointIds?: readonly string[];
  /** For trials: tables have no deletion protection, and go with the stack, as do logs and failures. Default: false. */
  disposable?: boolean;
  /** The public host name, its certificate, and the zone that leads to it. Default: the name that CloudFront makes. */
  domain?: RelayDomain;
  /** Receives what alarms say, and notices about accounts. Default: alarms tell nobody. */
  alarmEmail?: string;
  /** Receives alarms that must wake somebody, apart from the others. Default: they go where all others go. */
  pageEmail?: string;
  /** Objectives of the alarms. Default: 99.5 % availability; 95 % of answers start within 10 s. */
  objectives?: Objectives;
  /**
   * A scheduled call through the public address, with a key that is stored beside the secrets of channels. It costs the tokens
   * of its calls, and every five minutes, the default, some 0.50 dollars a month on AWS. Default: none.
   */
  canary?: CanaryOptions;
  /**
   * The console of operators at `/console/` of the public address, for people who log in at an issuer of OpenID Connect. Only with a
   * distribution. Default: none; `relay-ops console` needs no deployment.
   */
  console?: RelayConsole;
  /**
   * A deployment gives the new versions a tenth of the calls for five minutes, then all of them, and takes them back when they
   * fail before. `linear`: a tenth more each minute. False: at once, for a fix that cannot wait, as without `alarms`, which
   * would see the failures. Default: true.
   */
  shifting?: boolean | 'linear';
  /**
   * An existing standard topic in the relay's region that alarms and notices about accounts go to. Its policy must let
   * `cloudwatch.amazonaws.com` publish, and so must the policy of its key, if it has one; notices use that key through SNS with
   * the rights of the function `notify`. Default: one is made when there is an `alarmEmail`, which otherwise subscribes to this one.
   */
  alarmTopic?: ITopic;
  /**
   * A key in the relay's region that encrypts the tables, and that the functions may use through DynamoDB alone.
   * A key that is lost or disabled is a relay that is lost. Default: the key that AWS manages for DynamoDB.
   */
  encryptionKey?: IKey;
  /** Copies of the tables in another region, for the loss of this one. Default: none. */
  backupCopies?: RelayBackupCopies;
  /**
   * Keys for logs, secrets, the alarm topic and buckets. One that CDK makes is opened to the services that use it; the policy of
   * one that exists must do so itself: docs/options.md says how. Default: keys that AWS manages.
   */
  encryptionKeys?: RelayKeys;
  /** The address that mail to customers comes from: an identity that SES has verified. Default: none is sent. */
  alertSender?: string;
  /** Numbers of the origin secrets, oldest first. CloudFront sends the last; functions accept all. Default: `[1]`. */
  originSecrets?: readonly number[];
  /** Numbers of the keys that seal the state of turns, ascending. The last seals; all open. Default: `[1]`. */
  sealKeys?: readonly number[];
  /** With compute `ecs`: image, network, number of tasks. */
  service?: RelayServiceOptions;
  /** False: no alarm is made, so deployments do not shift calls; a topic still gets notices about accounts. Default: true. */
  alarms?: boolean;
  /** The ARN of a WAF ACL for CloudFront, so of us-east-1, or of the region for an API. Default: no request is refused before the functions. */
  webAclArn?: string;
  /**
   * A log of every request at the edge, with addresses of clients: true makes a bucket for it that expires with `logRetention`
   * and outlives the stack; or a bucket with ACLs of yours. Default: none.
   */
  accessLog?: boolean | IBucket;
  /** Reports what the AWS account costs. Default: no budget. */
  budget?: RelayBudget;
  /** ARNs of the Bedrock models that channels may call with the functions' own role. Default: none. */
  bedrockModels?: readonly string[];
  /**
   * False: functions read no secret whose path names no purpose, as those from before have; `relay-ops secret move` moves them.
   * Default: true.
   */
  unboundSecrets?: boolean;
  /** The build's output, one folder a function. Default: the one of this package. */
  bundlesFolder?: string;
}

/** Checks of each prop. An unknown prop is refused by name, for apps in JavaScript too. */
const propRules: Readonly<Record<keyof RelayProps, PropRules[string]>> = {
  name: '',
  disposable: 'disposable',
  domain: { name: 'domain', certificate: '', hostedZone: '' },
  alarmEmail: 'alarmEmail',
  pageEmail: 'pageEmail',
  objectives: 'objectives',
  canary: 'canary',
  console: 'console',
  shifting: 'shifting',
  alarmTopic: '',
  encryptionKey: '',
  encryptionKeys: { logs: '', secrets: '', alarmTopic: '', buckets: '' },
  alertSender: 'alertSender',
  backupCopies: 'backupCopies',
  originSecrets: 'originSecrets',
  sealKeys: 'sealKeys',
  reservedConcurrency: 'reservedConcurrency',
  moneyConcurrency: 'moneyConcurrency',
  compute: 'compute',
  service: 'service',
  memory: 'memory',
  logRetention: '',
  tracing: 'tracing',
  awsClient: 'awsClient',
  defaultLimits: 'limits',
  alarms: 'alarms',
  webAclArn: 'webAcl',
  accessLog: 'accessLog',
  budget: 'budget',
  bedrockModels: 'bedrockModels',
  unboundSecrets: 'unboundSecrets',
  bundlesFolder: '',
  frontDoor: 'frontDoor',
  vpcEndpointIds: 'vpcEndpointIds',
  vpc: 'vpc',
};

const nobodyIsTold =
  'nobody is told of alarms. Give alarmEmail, pageEmail or a topic (alarmTopic, in the file of a stage alarmTopicArn). If they are read elsewhere, acknowledge it';

const packageFolder = join(import.meta.dirname, '..', '..');

export class Relay extends Construct {
  /** The base_url for clients: `https://api.example.com/v1`. */
  readonly baseUrl: string;
  /** Missing if clients call an API directly. */
  readonly distribution: Distribution | undefined;
  /** Missing if the distribution leads to the functions directly. */
  readonly api: CfnRestApi | undefined;
  /** By what they hold, without the relay's name: `tables.keys`. docs/tables.md says who writes which. */
  readonly tables: Readonly<Record<TableName, ITable>>;
  readonly functions: MadeFunctions;
  /**
   * URLs of the functions behind the distribution; none behind an API. A request that bypasses the distribution
   * gets a 403, so these are for health checks and firewalls only.
   */
  readonly functionUrls: Readonly<Partial<Record<PublicFunctionName, IFunctionUrl>>>;
  /** With compute `ecs`: the ECS service, balancer and VPC. */
  readonly service?: RelayService;
  /** Topic of the alarms: the given one or the one that mails them. */
  readonly alarmTopic: ITopic | undefined;
  readonly alarms: readonly IAlarm[];
  readonly dashboard: DashboardPage;
  /** Queries of Logs Insights, in the folder with the relay's name. */
  readonly savedQueries: readonly CfnQueryDefinition[];
  /** Managed policies for the people who operate the relay: docs/operate.md says what each allows. */
  readonly operatorPolicies: OperatorPolicies['byName'];
  /** The stack's output with the base URL, to export it or to name it otherwise. */
  readonly baseUrlOutput: CfnOutput;
  /** The log groups of the functions that answer calls. */
  readonly callLogGroupsOutput: CfnOutput;
  readonly budget?: CfnBudget;
  private readonly relayName: string;

  constructor(scope: Construct, id: string, props: RelayProps = {}) {
    super(scope, id);
    refuseProps(this, props, propRules, Stack.of(this).region);
    const { disposable = false, domain, alertSender, encryptionKey, encryptionKeys: keys = {} } = props;
    const { frontDoor = 'cloudfront' } = props;
    // The VPC of functions; that of servers is in `service`.
    const { vpc, ...others } = props;
    const behindCloudFront = hasDistribution(frontDoor);
    const hasApi = frontDoor !== 'cloudfront';
    const relayName = props.name ?? 'relay';
    this.relayName = relayName;
    refuseName(this, relayName, (found) => (found instanceof Relay ? found.relayName : undefined));
    const { bundlesFolder = join(packageFolder, 'dist') } = props;
    const tables = new RelayTables(this, 'Tables', { relayName, disposable, encryptionKey });
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
          about: (number) => `Origin secret ${number}: what CloudFront shows to the relay's functions`,
        })
      : undefined;
    const sealKeys = new NumberedSecrets(this, 'SealKeys', {
      numbers: props.sealKeys ?? [1],
      encryptionKey: keys.secrets,
      about: (number) =>
        `Seal key ${number}: seals the state of turns that clients keep and the relay stores`,
    });
    const functions = new RelayFunctions(this, 'Functions', {
      ...props,
      ...common,
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
    /** Where the lines of a function are, or of the server that answers in its place. */
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
    // Without alarms nothing would end a bad deployment, and shifting would only make it slower.
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
      Annotations.of(this).addWarningV2('relay:nobody-is-told', nobodyIsTold);
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
      description: 'Where the lines of calls are',
      value: callLogs.map(({ logGroupName }) => logGroupName).join(','),
    });

    this.baseUrlOutput = new CfnOutput(this, 'BaseUrl', {
      description: 'What clients set as base_url',
      value: this.baseUrl,
    });
    acknowledgeFindings({
      relayName,
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
