/**
 * What the local stack makes of each resource type. A type that is in neither list is a start error: the stack
 * that runs here must not quietly lack a part of the one that is deployed.
 */
export const runTypes = [
  'AWS::DynamoDB::GlobalTable',
  'AWS::DynamoDB::Table',
  'AWS::SecretsManager::Secret',
  'AWS::Lambda::Function',
  'AWS::Lambda::Url',
  'AWS::Lambda::EventSourceMapping',
  'AWS::CloudFront::Distribution',
  'AWS::Events::Rule',
  'AWS::Scheduler::Schedule',
] as const;

export type RunType = (typeof runTypes)[number];

const nobodyIsRefused = 'the emulators check no permissions';
const nothingIsWatched = 'alarms and dashboards have no local counterpart';

/** Type -> why the local stack does without it. */
export const ignoredTypes: Record<string, string> = {
  'AWS::IAM::Role': nobodyIsRefused,
  'AWS::IAM::Policy': nobodyIsRefused,
  'AWS::IAM::ManagedPolicy': nobodyIsRefused,
  'AWS::Lambda::Permission': nobodyIsRefused,
  'AWS::SNS::TopicPolicy': nobodyIsRefused,
  'AWS::SQS::QueuePolicy': nobodyIsRefused,
  'AWS::S3::BucketPolicy': nobodyIsRefused,
  'AWS::Logs::LogGroup': 'output of the functions goes to stderr',
  'AWS::CloudWatch::Alarm': nothingIsWatched,
  'AWS::CloudWatch::CompositeAlarm': nothingIsWatched,
  'AWS::CloudWatch::Dashboard': nothingIsWatched,
  'AWS::Logs::QueryDefinition': 'questions to a log that is not kept',
  'AWS::SNS::Topic': nothingIsWatched,
  'AWS::SNS::Subscription': nothingIsWatched,
  'AWS::SQS::Queue': 'failed events are logged instead of kept',
  'AWS::S3::Bucket': 'failed events are logged instead of kept',
  'AWS::Lambda::EventInvokeConfig': 'failed events are logged, not tried again',
  'AWS::Scheduler::ScheduleGroup': 'a name without behaviour',
  'AWS::CloudFront::CachePolicy': 'the front door caches nothing',
  'AWS::CloudFront::OriginRequestPolicy': 'the front door forwards everything but the host',
  'AWS::CloudFront::Function': 'the front door sets x-forwarded-host itself',
  'AWS::WAFv2::WebACL': 'nobody attacks the loopback interface',
  'AWS::CDK::Metadata': 'describes the template itself',
};

export const isRunType = (type: string): type is RunType => (runTypes as readonly string[]).includes(type);
