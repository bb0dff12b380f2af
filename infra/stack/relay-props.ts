/** The options of a stage as props of the construct: names of AWS's things become the things. */
import type { Stack } from 'aws-cdk-lib';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import { Key } from 'aws-cdk-lib/aws-kms';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { HostedZone } from 'aws-cdk-lib/aws-route53';
import { Bucket } from 'aws-cdk-lib/aws-s3';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { modelArns } from './options/bedrock-models.ts';
import type { StageOptions } from './options/option-table.ts';
import type { RelayDomain, RelayProps } from './relay.ts';

/** @param given an ARN, or a switch */
export const topicOf = (stack: Stack, id: string, given: string | boolean | undefined) =>
  typeof given === 'string' ? Topic.fromTopicArn(stack, id, given) : undefined;

export function relayProps(stack: Stack, options: StageOptions): RelayProps {
  const domain = domainOf(stack, options);
  const { alarmTopicArn, encryptionKeyArn, bedrockModels, budget, limits, logRetentionDays, tracing } =
    options;
  const { disposable, alarms, alarmEmail, alertSender, originSecrets, sealKeys, reservedConcurrency } =
    options;
  const alarmTopic = topicOf(stack, 'AlarmTopic', alarmTopicArn);
  return defined({
    disposable,
    alarms,
    alarmEmail,
    alertSender,
    originSecrets,
    sealKeys,
    reservedConcurrency,
    tracing,
    domain,
    alarmTopic,
    accessLog: accessLogOf(stack, options.accessLog),
    memory: options.memory,
    pageEmail: options.pageEmail,
    objectives: options.objectives,
    canary: options.canary,
    shifting: options.shifting,
    oneItemPerAccount: options.oneItemPerAccount,
    compute: options.compute,
    defaultLimits: limits,
    logRetention: Object.values(RetentionDays).find(
      (days): days is RetentionDays => days === logRetentionDays,
    ),
    bedrockModels: bedrockModels && modelArns(bedrockModels),
    encryptionKey:
      encryptionKeyArn === undefined ? undefined : Key.fromKeyArn(stack, 'EncryptionKey', encryptionKeyArn),
    budget: budget && withReceiver(budget, alarmEmail),
  });
}

type Budget = NonNullable<StageOptions['budget']>;

const withReceiver = (budget: Budget, alarmEmail: string | undefined): Budget =>
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

/** Buckets of every region: the address without one is what CloudFront's API takes too. */
const accessLogOf = (stack: Stack, given: StageOptions['accessLog']) =>
  typeof given === 'string'
    ? Bucket.fromBucketAttributes(stack, 'AccessLogBucket', {
        bucketName: given,
        bucketRegionalDomainName: `${given}.s3.amazonaws.com`,
      })
    : given;

/** Without the entries that are undefined: an absent prop has its default. */
const defined = <Props extends object>(
  props: Props,
): { [Name in keyof Props]?: Exclude<Props[Name], undefined> } =>
  Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined)) as Props;
