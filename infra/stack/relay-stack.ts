/** The stack of this repository: one relay, built from the options of a stage. */
import { CfnOutput, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import { type IVpc, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Repository } from 'aws-cdk-lib/aws-ecr';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { Stream } from 'aws-cdk-lib/aws-kinesis';
import { Key } from 'aws-cdk-lib/aws-kms';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { HostedZone } from 'aws-cdk-lib/aws-route53';
import { Bucket } from 'aws-cdk-lib/aws-s3';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EdgeAlarms, WebAcl } from './edge/web-acl.ts';
import { edgeRegion } from './edge/relay-edge.ts';
import { hasDistribution } from './options/front-door.ts';
import { listModelArns } from './options/bedrock-models.ts';
import type { StageOptions } from './options/option-table.ts';
import { selectPublishedOptions, writeOutputs } from './options/published-options.ts';
import { valueOf } from './options/read-options.ts';
import { readPackageVersion, Relay, type RelayDomain, type RelayProps } from './relay.ts';

export interface RelayStackProps extends StackProps {
  stackName: string;
  options: StageOptions;
  /** The build's output: one folder per function. */
  bundlesFolder?: string | undefined;
  /** ARN of the ACL that another stack created for this one. */
  webAclArn?: string | undefined;
}

export class RelayStack extends Stack {
  readonly relay: Relay;

  constructor(scope: Construct, { stackName, options, bundlesFolder, webAclArn, ...props }: RelayStackProps) {
    const { region } = options;
    const description = `OpenAI-compatible LLM relay ${readPackageVersion()}`;
    super(scope, stackName, {
      stackName,
      description,
      ...(region !== undefined && { env: { region } }),
      terminationProtection: !valueOf(options, 'disposable'),
      ...props,
    });
    const ownAclArn = webAclArn ?? webAclOf(this, stackName, options);
    // CDK omits this id from logical ids, so stacks that are older than the construct keep theirs.
    this.relay = new Relay(this, 'Default', {
      name: stackName,
      ...buildRelayProps(this, options),
      ...(ownAclArn !== undefined && { webAclArn: ownAclArn }),
      ...(bundlesFolder !== undefined && { bundlesFolder }),
    });
    const distributionId = this.relay.distribution?.distributionId;
    if (options.edgeAlarms && region === edgeRegion && distributionId !== undefined)
      void new EdgeAlarms(this, 'EdgeAlarms', {
        distributionId,
        topic: topicOf(this, 'EdgeTopic', options.edgeAlarms) ?? this.relay.alarmTopic,
      });
    // The next deployment and the edge stacks read these outputs.
    for (const [name, value] of writeOutputs(selectPublishedOptions(options)))
      void new CfnOutput(this, name, { description: 'Options that differ from their defaults', value });
    if (distributionId !== undefined)
      void new CfnOutput(this, 'DistributionId', { description: 'The distribution', value: distributionId });
  }
}

/** Returns the ARN of the given ACL, or of a new one if the front door uses ACLs of this region. */
function webAclOf(stack: RelayStack, relayName: string, options: StageOptions): string | undefined {
  const { region, webAcl } = options;
  const requestsPerMinute = valueOf(options, 'webAclRequestsPerMinute');
  const regional = !hasDistribution(valueOf(options, 'frontDoor'));
  if (typeof webAcl === 'string') return webAcl;
  if (!webAcl || region === undefined || !(regional || region === edgeRegion)) return undefined;
  return new WebAcl(stack, 'WebAcl', { relayName, region, requestsPerMinute, regional }).arn;
}

// Converts the options of a stage to props of the construct: ARNs and ids become CDK objects.

/** @param given an ARN, or a switch */
const topicOf = (stack: Stack, id: string, given: string | boolean | undefined) =>
  typeof given === 'string' ? Topic.fromTopicArn(stack, id, given) : undefined;

/** Options of the stack, and options whose props have another name. */
const notProps: { [Name in keyof StageOptions]?: undefined } = {
  region: undefined,
  certificateArn: undefined,
  hostedZone: undefined,
  alarmTopicArn: undefined,
  edgeAlarms: undefined,
  limits: undefined,
  logRetentionDays: undefined,
  webAcl: undefined,
  webAclRequestsPerMinute: undefined,
  encryptionKeyArn: undefined,
  encryptionKeyArns: undefined,
};

/** Options with the same name and form as a prop are passed on unchanged. */
function buildRelayProps(stack: Stack, options: StageOptions): RelayProps {
  const { alarmEmail, alarmTopicArn, encryptionKeyArn, bedrockModels, budget, logRetentionDays } = options;
  const { ledgerStream } = options;
  return defined({
    ...options,
    ...notProps,
    domain: domainOf(stack, options),
    alarmTopic: topicOf(stack, 'AlarmTopic', alarmTopicArn),
    accessLog: accessLogOf(stack, options.accessLog),
    defaultLimits: options.limits,
    logRetention: Object.values(RetentionDays).find(
      (days): days is RetentionDays => days === logRetentionDays,
    ),
    bedrockModels: bedrockModels && listModelArns(bedrockModels),
    encryptionKey:
      encryptionKeyArn === undefined ? undefined : Key.fromKeyArn(stack, 'EncryptionKey', encryptionKeyArn),
    encryptionKeys: keysOf(stack, options.encryptionKeyArns),
    ledgerStream:
      ledgerStream === undefined ? undefined : Stream.fromStreamArn(stack, 'LedgerStream', ledgerStream),
    budget: budget && addReceiver(budget, alarmEmail),
    service: options.service && serviceOf(stack, options.service),
  });
}

const serviceOf = (stack: Stack, { image, vpc, ...counts }: NonNullable<StageOptions['service']>) =>
  defined({
    ...counts,
    image: image === undefined ? undefined : findContainerImage(stack, image),
    vpc: vpc && vpcOf(stack, vpc),
  });

function vpcOf(
  stack: Stack,
  { id: vpcId, ...given }: { id: string; zones: string[]; subnets: string[]; public?: boolean | undefined },
): IVpc {
  const vpc = Vpc.fromVpcAttributes(stack, 'ServerVpc', {
    vpcId,
    availabilityZones: given.zones,
    [given.public ? 'publicSubnetIds' : 'privateSubnetIds']: given.subnets,
  });
  const id = 'Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId';
  Validations.of(vpc).acknowledge({ id, reason: 'Nothing is routed here' });
  return vpc;
}

/** A task needs a permission to pull an image from ECR. */
function findContainerImage(stack: Stack, image: string): ContainerImage {
  const [, account, region, repositoryName = '', mark] =
    /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com\/([^:@]+)[:@](.+)$/.exec(image) ?? [];
  if (account === undefined) return ContainerImage.fromRegistry(image);
  const repositoryArn = `arn:aws:ecr:${region}:${account}:repository/${repositoryName}`;
  const repository = { repositoryName, repositoryArn };
  return ContainerImage.fromEcrRepository(
    Repository.fromRepositoryAttributes(stack, 'ServerImages', repository),
    mark,
  );
}

/** Maps each purpose to its key. Several purposes may share a key. */
const keysOf = (stack: Stack, arns: StageOptions['encryptionKeyArns']): RelayProps['encryptionKeys'] =>
  arns &&
  Object.fromEntries(
    Object.entries(arns).map(([what, arn]) => [what, Key.fromKeyArn(stack, `EncryptionKeyOf${what}`, arn)]),
  );

type Budget = NonNullable<StageOptions['budget']>;

const addReceiver = (budget: Budget, alarmEmail: string | undefined): Budget =>
  budget.email === undefined && budget.topicArn === undefined ? { ...budget, email: alarmEmail } : budget;

function domainOf(
  stack: Stack,
  { domain: name, certificateArn, hostedZone }: StageOptions,
): RelayDomain | undefined {
  if (name === undefined || certificateArn === undefined) return undefined;
  const certificate = Certificate.fromCertificateArn(stack, 'Certificate', certificateArn);
  if (hostedZone === undefined) return { name, certificate };
  const { id: hostedZoneId, name: zoneName } = hostedZone;
  return {
    name,
    certificate,
    hostedZone: HostedZone.fromHostedZoneAttributes(stack, 'HostedZone', { hostedZoneId, zoneName }),
  };
}

/** CloudFront accepts this address, which names no region, for buckets of every region. */
const accessLogOf = (stack: Stack, given: StageOptions['accessLog']) =>
  typeof given === 'string'
    ? Bucket.fromBucketAttributes(stack, 'AccessLogBucket', {
        bucketName: given,
        bucketRegionalDomainName: `${given}.s3.amazonaws.com`,
      })
    : given;

/** Removes undefined entries, because only an absent prop gets its default. */
const defined = <Props extends object>(
  props: Props,
): { [Name in keyof Props]?: Exclude<Props[Name], undefined> } =>
  Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined)) as Props;
