/**
 * The server on ECS Fargate behind a private load balancer. It replaces the functions behind the distribution (docs/server.md) and has
 * the rights of all of them together. Streams and schedules still invoke functions.
 */
import { join } from 'node:path';
import { Annotations, Duration, Size, Stack, Token } from 'aws-cdk-lib';
import type { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import {
  type CfnSubnet,
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
import { zonesWithoutVpcOrigins } from '../options/streaming-regions.ts';
import { createRelayMetric } from '../observe/relay-metric.ts';
import { serverDescription } from './function-descriptions.ts';
import type { NumberedSecrets } from './numbered-secrets.ts';
import { callsBedrock } from './operator-policies.ts';
import {
  allow,
  grantsOf,
  keepAfterCreation,
  pseudonymKey,
  type RelayFunctions,
  type RelayCodeProps,
  type RelayFunctionsProps,
  buildTracingVariables,
} from './relay-functions.ts';

export interface RelayServiceOptions {
  /**
   * An arm64 image of the server, of this version of the relay. By default CDK builds it from the Dockerfile beside its bundle when it
   * deploys, which needs Docker.
   */
  image?: ContainerImage;
  /**
   * It needs an internet gateway for CloudFront's VPC origins, and a route to upstreams from its private subnets, if there are some. By default
   * a VPC with two public subnets and no NAT is created: each task has a public address, but accepts only the load balancer.
   */
  vpc?: IVpc;
  /**
   * The ids of two availability zones for the new VPC, such as `use1-az1`. By default CloudFormation chooses two; in five
   * regions these may include one that CloudFront's VPC origins can't reach.
   */
  zones?: readonly string[];
  /** Two by default, in two zones. */
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
/** A process uses one processor. The Dockerfile gives half of the memory to the heap. */
const size = { cpu: 1024, memoryLimitMiB: 2048 };
/** The concurrent requests of a process. RELAY_REQUESTS_MAX overrides it. */
const requestsMax = 256;
/** The target per task. The load can grow 2.5 times in the five minutes that a metric, its alarm and a new task need. */
const inFlightWanted = 100;
/** The longest call. A task that leaves the load balancer gets SIGTERM when its last call has ended, or after this time. */
const drain = Duration.minutes(15);
/** Fargate's maximum between SIGTERM and SIGKILL, and the time that the server leaves running calls. It then needs 6 s to settle them. */
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
      removalPolicy: keepAfterCreation(props.disposable),
      ...(props.keys.logs && { encryptionKey: props.keys.logs }),
    });
    this.vpc = props.vpc ?? createVpc(this, props.zones);
    const { vpc } = this;
    // Upstreams may have any address.
    const tasks = new SecurityGroup(this, 'Tasks', { vpc, description: `${relayName}: servers` });
    const isPublic = vpc.privateSubnets.length === 0;
    const zones = new Set(
      (isPublic ? vpc.publicSubnets : vpc.privateSubnets).map((each) => each.availabilityZone),
    );
    if (zones.size < 2 && ![...zones].some(Token.isUnresolved))
      throw new Error(
        `${this.node.path}: service.vpc: a load balancer needs subnets in two availability zones`,
      );
    const taskDefinition = this.task(props, tasksMax);
    this.service = new FargateService(this, 'Service', {
      cluster: new Cluster(this, 'Cluster', { vpc }),
      taskDefinition,
      securityGroups: [tasks],
      vpcSubnets: { subnets: isPublic ? vpc.publicSubnets : vpc.privateSubnets },
      assignPublicIp: isPublic,
      circuitBreaker: { enable: true, rollback: true },
      // New tasks answer before old ones stop.
      minHealthyPercent: 100,
      maxHealthyPercent: 200,
      healthCheckGracePeriod: Duration.minutes(1),
    });
    // A count here would undo the scaling at each deployment.
    (this.service.node.defaultChild as CfnService | undefined)?.addPropertyDeletionOverride('DesiredCount');
    this.balancer = this.balancerOf(relayName, isPublic);
    const scaling = this.service.autoScaleTaskCount({ minCapacity: tasksMin, maxCapacity: tasksMax });
    const cooldowns = { scaleOutCooldown: Duration.minutes(1), scaleInCooldown: drain };
    // Requests of the load balancer would count a stream of ten minutes like one of a second, and only at its end.
    scaling.scaleToTrackCustomMetric('InFlight', {
      metric: createRelayMetric(relayName, 'RequestsInFlight', 'Average').with({
        period: Duration.minutes(1),
      }),
      targetValue: inFlightWanted,
      ...cooldowns,
    });
    // A large body needs a second of processor time.
    scaling.scaleOnCpuUtilization('Processor', { targetUtilizationPercent: 70, ...cooldowns });
    // Without a route to the registry, or permission to pull, tasks fail to start and trip the circuit breaker. The functions come
    // first, because new code must read new forms of rows and balances before any code writes them.
    const readers = [...props.functions.byName.values()].map(({ lambda, live }) => live ?? lambda);
    this.service.node.addDependency(vpc, taskDefinition.obtainExecutionRole(), ...readers);
  }

  /** Counts requests that no server answered, because there was none or it stopped. */
  unanswered(period: Duration): Metric {
    return this.balancer.metrics.httpCodeElb(HttpCodeElb.ELB_5XX_COUNT, { period, statistic: 'Sum' });
  }

  private task(props: RelayServiceProps, tasksMax: number): FargateTaskDefinition {
    const { relayName, version, tracing, functions, originSecrets, sealKeys, bedrockModels = [] } = props;
    const folder = join(props.bundlesFolder, 'server');
    const { image = ContainerImage.fromAsset(folder, { platform: Platform.LINUX_ARM64 }) } = props;
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
      // ECS reads secrets when a task starts, so the task definition, which many can read, holds none.
      secrets: {
        ...numberSecrets('ORIGIN_SECRET_', originSecrets),
        ...numberSecrets('SEAL_KEY_', sealKeys),
        ...(headers !== undefined && {
          OTEL_EXPORTER_OTLP_HEADERS: valueOf(Secret.fromSecretNameV2(this, 'TracingHeaders', headers)),
        }),
      },
      // An unavailable log must not block the calls of the process. The buffer holds 27,000 lines.
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
    // The load balancer has only private addresses, and servers refuse requests without the origin secret. CloudFront's prefix list
    // has another id in each region and takes 55 of the 60 rules of a group.
    group.addIngressRule(Peer.anyIpv4(), Port.tcp(80), 'From CloudFront, through its interfaces in the VPC');
    const balancer = new ApplicationLoadBalancer(this, 'Balancer', {
      vpc,
      vpcSubnets: { subnets: isPublic ? vpc.publicSubnets : vpc.privateSubnets },
      internetFacing: false,
      securityGroup: group,
      dropInvalidHeaderFields: true,
      // Longer than heartbeats (15 s) and CloudFront's idle connections (60 s), shorter than those of the server (75 s).
      idleTimeout: Duration.seconds(65),
    });
    // CloudFront refuses an origin in a VPC without an internet gateway.
    balancer.node.addDependency(vpc);
    balancer.addListener('Http', { port: 80, open: false }).addTargets('Servers', {
      port,
      protocol: ApplicationProtocol.HTTP,
      targets: [service],
      // Balances by open requests, because calls differ a thousandfold in length.
      loadBalancingAlgorithmType: TargetGroupLoadBalancingAlgorithmType.LEAST_OUTSTANDING_REQUESTS,
      deregistrationDelay: drain,
      // Twenty bodies of 32 MB at once block a process for seconds.
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

/** Reaches the tables through a gateway endpoint, which is free. */
function createVpc(scope: Construct, zones: readonly string[] | undefined): Vpc {
  const { region } = Stack.of(scope);
  const excluded = zonesWithoutVpcOrigins[region];
  if (zones === undefined && excluded !== undefined)
    Annotations.of(scope).addWarningV2(
      'relay:zones',
      `CloudFormation may choose ${excluded}, where CloudFront's VPC origins reach no balancer: name two other zones of ${region} by id in service.zones (aws ec2 describe-availability-zones lists them)`,
    );
  const vpc = new Vpc(scope, 'Vpc', {
    maxAzs: 2,
    natGateways: 0,
    subnetConfiguration: [
      { name: 'public', subnetType: SubnetType.PUBLIC, cidrMask: 24, mapPublicIpOnLaunch: false },
    ],
    restrictDefaultSecurityGroup: false,
    gatewayEndpoints: { Tables: { service: GatewayVpcEndpointAwsService.DYNAMODB } },
  });
  // CDK sets zones by name, but a name means a different zone in each account.
  for (const [index, zone] of zones?.entries() ?? []) {
    const subnet = vpc.publicSubnets[index]?.node.defaultChild as CfnSubnet;
    subnet.availabilityZone = undefined;
    subnet.availabilityZoneId = zone;
  }
  return vpc;
}

const valueOf = (secret: ISecret): TaskSecret => TaskSecret.fromSecretsManager(secret);

const numberSecrets = (prefix: string, { secrets }: NumberedSecrets): Record<string, TaskSecret> =>
  Object.fromEntries([...secrets].map(([number, secret]) => [`${prefix}${number}`, valueOf(secret)]));
