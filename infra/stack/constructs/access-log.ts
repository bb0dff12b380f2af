/** The bucket of CloudFront's standard logs: addresses of clients, paths, times, statuses. Nobody but the account reads it. */
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';

export interface AccessLogProps {
  disposable: boolean;
  /** Default: a month, as that of functions. */
  logRetention?: RetentionDays;
}

export class AccessLog extends Construct {
  readonly bucket: Bucket;

  constructor(scope: Construct, id: string, { disposable, logRetention: days }: AccessLogProps) {
    super(scope, id);
    this.bucket = new Bucket(this, 'Bucket', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      // CloudFront gives itself the right to write by an ACL. What it writes is the account's.
      objectOwnership: ObjectOwnership.BUCKET_OWNER_PREFERRED,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      lifecycleRules:
        days === RetentionDays.INFINITE
          ? []
          : [
              {
                expiration: Duration.days(days ?? 30),
                abortIncompleteMultipartUploadAfter: Duration.days(1),
              },
            ],
      removalPolicy: disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
      autoDeleteObjects: disposable,
    });
  }
}
