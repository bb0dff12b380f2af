/**
 * The server on ECS Fargate behind a private load balancer, in the place of the functions that the distribution leads to: docs/server.md.
 * Its rights are what the descriptions of these functions allow together. What streams and schedules run stays functions.
 */
import { join } from 'node:path';
import { Duration, Size, Stack } from 'aws-cdk-lib';
import type { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import {
  GatewayVpcEndpointAwsService,
  type IVpc,
  Peer,
  Port,
  SecurityGroup,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Platform } from 'aws-cdk-lib/aws-ecr-assets';
import {
  AwsLogDriverMode,
  type CfnService,
  Cluster,
  ContainerImage,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  LogDrivers,
  OperatingSystemFamily,
  Secret as TaskSecret,
} from 'aws-cdk-lib/aws-ecs';
import {
  ApplicationLoadBalancer,
  ApplicationProtocol,
  HttpCodeElb,
  TargetGroupLoadBalancingAlgorithmType,
} from 'aws-cdk-lib/aws-elasticloadbalancingv2';
import { type ILogGroup, LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { createRelayMetric } from '../observe/relay-metric.ts';
import { serverDescription } from './function-descriptions.ts';
import type { NumberedSecrets } from './numbered-secrets.ts';
import { callsBedrock } from './operator-policies.ts';
import {
  allow,
  grantsOf,
  logRemoval,
  pseudonymKey,
  type RelayFunctions,
  type RelayCodeProps,
  type RelayFunctionsProps,
  buildTracingVariables,
} from './relay-functions.ts';

export interface RelayServiceOptions {
  /**
   * An image of the server for arm64, of this version of the relay. Default: built from the Dockerfile beside its bundle when CDK
   * deploys, which needs Docker there.
   */
  image?: ContainerImage;
  /**
   * It needs an internet gateway, as CloudFront's VPC origins do, and a way out to upstreams from its private subnets, if there are some.
   * Default: one with two public subnets is made, without NAT: each task has a public address, and lets nobody in but the balancer.
   */
  vpc?: IVpc;
  /** Default: 2, in two zones. */
  tasksMin?: number;
  /** Default: 10. */
  tasksMax?: number;
}

interface RelayServiceProps
  extends
    RelayServiceOptions,
    RelayCodeProps,
    Pick<RelayFunctionsProps, 'logRetention' | 'tracing' | 'awsClient'> {
  functions: RelayFunctions;
  originSecrets: NumberedSecrets;
  sealKeys: NumberedSecrets;
  bedrockModels?: readonly string[];
}

const port = 8080;
/** One process uses one processor. Half of the memory is the heap's, by the Dockerfile. */
const size = { cpu: 1024, memoryLimitMiB: 2048 };
/** That a process answers, unless RELAY_REQUESTS_MAX says otherwise. */
const requestsMax = 256;
/** For each task. The load may grow 2.5 times in the five minutes that a metric, its alarm and a new task need. */
const inFlightWanted = 100;
/** The longest call. Only when its last one has ended, or this is over, a task that leaves the balancer gets SIGTERM. */
const drain = Duration.minutes(15);
/** Fargate's longest from SIGTERM to SIGKILL, and what the server lets calls run on: it needs 6 s after it for their bills. */
const stopTimeout = Duration.seconds(120);
const drainSeconds = 110;

export class RelayService extends Construct {
  readonly service: FargateService;
  readonly balancer: ApplicationLoadBalancer;
  readonly logGroup: ILogGroup;
  readonly vpc: IVpc;

  constructor(scope: Construct, id: string, props: RelayServiceProps) {
    super(scope, id);
    const { tasksMin = 2, tasksMax = Math.max(10, tasksMin), relayName } = props;
    this.logGroup = new LogGroup(this, 'Logs', {
      retention: props.logRetention ?? RetentionDays.ONE_MONTH,
      removalPolicy: logRemoval(props.disposable),
      ...(props.keys.logs && { encryptionKey: props.keys.logs }),
    });
    this.vpc = props.vpc ?? createVpc(this);
    const { vpc } = this;
    // Upstreams are anywhere.
    const tasks = new SecurityGroup(this, 'Tasks', { vpc, description: `${relayName}: servers` });
    const isPublic = vpc.privateSubnets.length === 0;
    const taskDefinition = this.task(props, tasksMax);
    this.service = new FargateService(this, 'Service', {
      cluster: new Cluster(this, 'Cluster', { vpc }),
      taskDefinition,
      securityGroups: [tasks],
      vpcSubnets: { subnets: isPublic ? vpc.publicSubnets : vpc.privateSubnets },
      assignPublicIp: isPublic,
      circuitBreaker: { enable: true, rollback: true },
      // New tasks answer before the old ones leave.
      minHealthyPercent: 100,
      maxHealthyPercent: 200,
      healthCheckGracePeriod: Duration.minutes(1),
    });
    // Each deployment would set it, while scaling has set another one.
    (this.service.node.defaultChild as CfnService | undefined)?.addPropertyDeletionOverride('DesiredCount');
    this.balancer = this.balancerOf(relayName, isPublic);
    const scaling = this.service.autoScaleTaskCount({ minCapacity: tasksMin, maxCapacity: tasksMax });
    const cooldowns = { scaleOutCooldown: Duration.minutes(1), scaleInCooldown: drain };
    // Not requests of a balancer: a stream of ten minutes is one of them as one of a second is, and none while it runs.
    scaling.scaleToTrackCustomMetric('InFlight', {
      metric: createRelayMetric(relayName, 'RequestsInFlight', 'Average').with({
        period: Duration.minutes(1),
      }),
      targetValue: inFlightWanted,
      ...cooldowns,
    });
    // Large bodies need a second of processor each.
    scaling.scaleOnCpuUtilization('Processor', { targetUtilizationPercent: 70, ...cooldowns });
    // Tasks that start without a way to the registry, or the right to it, trip the circuit breaker. Rows and balances are read in
    // new forms before they are written in them.
    const readers = [...props.functions.byName.values()].map(({ lambda }) => lambda);
    this.service.node.addDependency(vpc, taskDefinition.obtainExecutionRole(), ...readers);
  }

  /** Requests that no server answered: there was none, or it went away. */
  unanswered(period: Duration): Metric {
    return this.balancer.metrics.httpCodeElb(HttpCodeElb.ELB_5XX_COUNT, { period, statistic: 'Sum' });
  }

  private task(props: RelayServiceProps, tasksMax: number): FargateTaskDefinition {
    const { relayName, version, tracing, functions, originSecrets, sealKeys, bedrockModels = [] } = props;
    const { image = imageOf(props.bundlesFolder) } = props;
    const background = functions.get('background').lambda;
    const task = new FargateTaskDefinition(this, 'Task', {
      ...size,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.ARM64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    for (const statement of [
      ...grantsOf(Stack.of(this), { ...props, description: serverDescription }),
      ...callsBedrock(bedrockModels),
      allow('lambda', ['InvokeFunction'], background.functionArn),
    ])
      task.addToTaskRolePolicy(statement);
    const headers = tracing?.headersSecret;
    task.addContainer('server', {
      image,
      portMappings: [{ containerPort: port }],
      readonlyRootFilesystem: true,
      stopTimeout,
      environment: {
        AWS_REGION: Stack.of(this).region,
        RELAY_STACK: relayName,
        RELAY_VERSION: version,
        PSEUDONYM_KEY: pseudonymKey,
        ...(props.awsClient && { AWS_CLIENT: props.awsClient }),
        BACKGROUND_FUNCTION: background.functionName,
        RELAY_REQUESTS_MAX: String(requestsMax),
        RELAY_CONCURRENCY: String(requestsMax * tasksMax),
        RELAY_DRAIN_SECONDS: String(drainSeconds),
        RELAY_COUNT_SECONDS: '15',
        ...(tracing && buildTracingVariables({ ...tracing, headersSecret: undefined })),
      },
      // ECS reads them when a task starts, so that no value is in the definition, which many may read.
      secrets: {
        ...numberSecrets('ORIGIN_SECRET_', originSecrets),
        ...numberSecrets('SEAL_KEY_', sealKeys),
        ...(headers !== undefined && {
          OTEL_EXPORTER_OTLP_HEADERS: valueOf(Secret.fromSecretNameV2(this, 'TracingHeaders', headers)),
        }),
      },
      // A log that is away must not hold up all calls of the process. 27,000 lines of calls fit.
      logging: LogDrivers.awsLogs({
        logGroup: this.logGroup,
        streamPrefix: 'server',
        mode: AwsLogDriverMode.NON_BLOCKING,
        maxBufferSize: Size.mebibytes(25),
      }),
    });
    return task;
  }

  private balancerOf(relayName: string, isPublic: boolean): ApplicationLoadBalancer {
    const { vpc, service } = this;
    const group = new SecurityGroup(this, 'Entrance', {
      vpc,
      description: `${relayName}: balancer`,
      allowAllOutbound: false,
    });
    // It has private addresses alone, and servers refuse whoever does not show the origin secret. The list of CloudFront's own
    // addresses has another id in each region, and takes 55 of the 60 rules that a group may have.
    group.addIngressRule(Peer.anyIpv4(), Port.tcp(80), 'From CloudFront, through its interfaces in the VPC');
    const balancer = new ApplicationLoadBalancer(this, 'Balancer', {
      vpc,
      vpcSubnets: { subnets: isPublic ? vpc.publicSubnets : vpc.privateSubnets },
      internetFacing: false,
      securityGroup: group,
      dropInvalidHeaderFields: true,
      // Above heartbeats (15 s) and what CloudFront keeps an idle connection (60 s), below what the server does (75 s).
      idleTimeout: Duration.seconds(65),
    });
    // CloudFront takes no origin in a VPC without a gateway.
    balancer.node.addDependency(vpc);
    balancer.addListener('Http', { port: 80, open: false }).addTargets('Servers', {
      port,
      protocol: ApplicationProtocol.HTTP,
      targets: [service],
      // By what is open, because calls differ a thousand times in length.
      loadBalancingAlgorithmType: TargetGroupLoadBalancingAlgorithmType.LEAST_OUTSTANDING_REQUESTS,
      deregistrationDelay: drain,
      // Twenty bodies of 32 MB at once keep a process from answering for seconds.
      healthCheck: {
        path: '/server/health',
        interval: Duration.seconds(10),
        healthyThresholdCount: 2,
        unhealthyThresholdCount: 5,
      },
    });
    return balancer;
  }
}

const imageOf = (bundlesFolder: string): ContainerImage =>
  ContainerImage.fromAsset(join(bundlesFolder, 'server'), { platform: Platform.LINUX_ARM64 });

/** Tables are reached by a gateway of the VPC, which costs nothing. */
const createVpc = (scope: Construct): Vpc =>
  new Vpc(scope, 'Vpc', {
    maxAzs: 2,
    natGateways: 0,
    subnetConfiguration: [
      { name: 'public', subnetType: SubnetType.PUBLIC, cidrMask: 24, mapPublicIpOnLaunch: false },
    ],
    restrictDefaultSecurityGroup: false,
    gatewayEndpoints: { Tables: { service: GatewayVpcEndpointAwsService.DYNAMODB } },
  });

const valueOf = (secret: ISecret): TaskSecret => TaskSecret.fromSecretsManager(secret);

const numberSecrets = (prefix: string, { secrets }: NumberedSecrets): Record<string, TaskSecret> =>
  Object.fromEntries([...secrets].map(([number, secret]) => [`${prefix}${number}`, valueOf(secret)]));
