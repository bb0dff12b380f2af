/**
 * Customer-managed keys for everything but tables, and the rights that AWS services need. Extends the policy of a key that CDK
 * creates. The owner of an existing key extends its policy: docs/options.md lists the rights.
 */
import { Stack, Token } from 'aws-cdk-lib';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { BucketEncryption, type BucketProps } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';

/** Keys in the relay's region; all may be the same. Each defaults to a key that AWS manages. */
export interface RelayKeys {
  /** Encrypts log groups. */
  logs?: IKey | undefined;
  /** Encrypts origin secrets and seal keys. Functions may also read channel secrets that it encrypts. */
  secrets?: IKey | undefined;
  /** Encrypts the topics created for `alarmEmail` and `pageEmail`. */
  alarmTopic?: IKey | undefined;
  /** Encrypts the bucket of stream failures, and the one that `accessLog: true` creates. */
  buckets?: IKey | undefined;
  /** Encrypts the variables of functions, including the origin secrets and seal keys. */
  variables?: IKey | undefined;
}

/** Lets services use the keys that CDK created. @param accessLog true if CloudFront writes into a bucket of the relay */
export function openKeys(scope: Construct, keys: RelayKeys, accessLog: boolean): void {
  const { region, partition, account } = Stack.of(scope);
  for (const [name, key] of Object.entries(keys))
    refuseElsewhere(region, `encryptionKeys.${name}`, key as IKey);
  const groups = `arn:${partition}:logs:${region}:${account}:log-group:*`;
  open(keys.logs, `logs.${region}`, ['Decrypt', 'Describe*', 'Encrypt', 'GenerateDataKey*', 'ReEncrypt*'], {
    ArnLike: { 'kms:EncryptionContext:aws:logs:arn': groups },
  });
  open(keys.alarmTopic, 'cloudwatch', ['Decrypt', 'GenerateDataKey*']);
  if (accessLog) open(keys.buckets, 'delivery.logs', ['GenerateDataKey*']);
}

function open(key: IKey | undefined, service: string, actions: string[], conditions = {}): void {
  key?.addToResourcePolicy(
    new PolicyStatement({
      principals: [new ServicePrincipal(`${service}.amazonaws.com`)],
      actions: actions.map((action) => `kms:${action}`),
      resources: ['*'],
      conditions,
    }),
  );
}

/** @param prop the prop that the message names */
export function refuseElsewhere(region: string, prop: string, key: IKey | undefined): void {
  if (key === undefined || Token.isUnresolved(region) || Token.isUnresolved(key.env.region)) return;
  if (key.env.region !== region)
    throw new Error(`${prop}: what is in ${region} needs a key there, not ${key.keyArn}`);
}

/** Builds statements that let a role use a key, only through these services. */
export function grantKeyUse(
  stack: Stack,
  key: IKey | undefined,
  services: readonly string[],
  actions: readonly string[],
): PolicyStatement[] {
  if (key === undefined) return [];
  const { region, urlSuffix } = stack;
  const [first = '', ...others] = services.map((service) => `${service}.${region}.${urlSuffix}`);
  return [
    new PolicyStatement({
      actions: actions.map((action) => `kms:${action}`),
      resources: [key.keyArn],
      conditions: { StringEquals: { 'kms:ViaService': others.length === 0 ? first : [first, ...others] } },
    }),
  ];
}

export const configureBucketEncryption = (
  key: IKey | undefined,
): Pick<BucketProps, 'encryption' | 'encryptionKey' | 'bucketKeyEnabled'> =>
  key === undefined
    ? { encryption: BucketEncryption.S3_MANAGED }
    : { encryption: BucketEncryption.KMS, encryptionKey: key, bucketKeyEnabled: true };
