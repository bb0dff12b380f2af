/**
 * The resource types that the local stack runs and those that it ignores. A type in neither list is a start
 * error, so that the local stack never silently lacks a part of the deployed one.
 */
export const runTypes = [
  'AWS::DynamoDB::GlobalTable',
  'AWS::DynamoDB::Table',
  'AWS::SecretsManager::Secret',
  'AWS::Lambda::Function',
  'AWS::Lambda::Version',
  'AWS::Lambda::Url',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::EventInvokeConfig',
  'AWS::CloudFront::Distribution',
  'AWS::Events::Rule',
  'AWS::Scheduler::Schedule',
] as const;

export type RunType = (typeof runTypes)[number];

const noPermissionChecks = 'the emulators check no permissions';
const nothingToShift = 'one template has one version of each function, so nothing is shifted';
const noAlarmsLocally = 'alarms and dashboards have no local counterpart';

/** Type -> reason why the local stack ignores it. */
export const ignoredTypes: Record<string, string> = {
  'AWS::IAM::Role': noPermissionChecks,
  'AWS::IAM::Policy': noPermissionChecks,
  'AWS::IAM::ManagedPolicy': noPermissionChecks,
  'AWS::Lambda::Permission': noPermissionChecks,
  'AWS::SNS::TopicPolicy': noPermissionChecks,
  'AWS::SQS::QueuePolicy': noPermissionChecks,
  'AWS::S3::BucketPolicy': noPermissionChecks,
  'AWS::Lambda::Alias': nothingToShift,
  'AWS::CodeDeploy::Application': nothingToShift,
  'AWS::CodeDeploy::DeploymentGroup': nothingToShift,
  'AWS::Logs::MetricFilter': 'the log is not kept, so there is nothing to count',
  'AWS::Logs::LogGroup': 'output of the functions goes to stderr',
  'AWS::CloudWatch::Alarm': noAlarmsLocally,
  'AWS::CloudWatch::CompositeAlarm': noAlarmsLocally,
  'AWS::CloudWatch::Dashboard': noAlarmsLocally,
  'AWS::Logs::QueryDefinition': 'the log is not kept, so there is nothing to query',
  'AWS::SNS::Topic': noAlarmsLocally,
  'AWS::SNS::Subscription': noAlarmsLocally,
  'AWS::SQS::Queue': 'failed events are logged instead of kept',
  'AWS::S3::Bucket': 'failed events are logged instead of kept',
  'Custom::S3AutoDeleteObjects': 'there is no bucket to empty',
  'AWS::Scheduler::ScheduleGroup': 'a name without behaviour',
  'AWS::CloudFront::CachePolicy': 'the emulated distribution caches nothing',
  'AWS::CloudFront::OriginRequestPolicy': 'the emulated distribution forwards everything but the host',
  'AWS::CloudFront::Function': 'the emulated distribution sets x-forwarded-host itself',
  'AWS::Route53::RecordSet': 'one machine has no public name',
  'AWS::Budgets::Budget': 'one machine costs nothing',
  'AWS::WAFv2::WebACL': 'the loopback interface needs no firewall',
  'AWS::CDK::Metadata': 'describes the template itself',
};

export const isRunType = (type: string): type is RunType => (runTypes as readonly string[]).includes(type);
