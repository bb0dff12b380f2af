/** Reads quotas, models and the deployed stack of an AWS account. Changes nothing. */
import {
  BedrockClient,
  GetFoundationModelAvailabilityCommand,
  ListFoundationModelsCommand,
} from '@aws-sdk/client-bedrock';
import { GetAccountSettingsCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetServiceSettingCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { AwsAccount } from '../../operate/operator-ports.ts';
import { composeClientSettings } from './client-settings.ts';
import { describeStack, type StackAddress } from './deployed-stack.ts';

interface AwsAccountDeps extends StackAddress {
  tableLimits: AwsAccount['tableLimits'];
  explain: (error: unknown, where: string) => Error;
}

const fastParameters = '/ssm/parameter-store/high-throughput-enabled';

export function createAwsAccount(deps: AwsAccountDeps): AwsAccount {
  const lambda = new LambdaClient(composeClientSettings(deps, 'LAMBDA'));
  const ssm = new SSMClient(composeClientSettings(deps, 'SSM'));
  const openBedrock = (region: string) =>
    new BedrockClient({ ...composeClientSettings(deps, 'BEDROCK'), region });
  const explainFailure = <Result>(where: string, ask: () => Promise<Result>): Promise<Result> =>
    ask().catch((error: unknown) => {
      throw deps.explain(error, where);
    });
  return {
    region: async () => (await explainFailure('AWS', deps.aws)).region,
    stack: () => explainFailure('CloudFormation', () => describeStack(deps)),
    concurrency: () =>
      explainFailure('Lambda', async () => {
        const { AccountLimit: limit } = await lambda.send(new GetAccountSettingsCommand());
        return {
          most: requireField(limit?.ConcurrentExecutions),
          unreserved: requireField(limit?.UnreservedConcurrentExecutions),
        };
      }),
    tableLimits: deps.tableLimits,
    hasFastParameters: () =>
      explainFailure('SSM', async () => {
        const command = new GetServiceSettingCommand({ SettingId: fastParameters });
        return requireField((await ssm.send(command)).ServiceSetting?.SettingValue) === 'true';
      }),
    models: (region) =>
      explainFailure('Bedrock', async () => {
        const { modelSummaries } = await openBedrock(region).send(new ListFoundationModelsCommand());
        return requireField(modelSummaries).map((model) => ({
          id: requireField(model.modelId),
          streams: model.responseStreamingSupported ?? true,
          isActive: (model.modelLifecycle?.status ?? 'ACTIVE') === 'ACTIVE',
        }));
      }),
    modelAccess: (region, modelId) =>
      explainFailure('Bedrock', async () => {
        const command = new GetFoundationModelAvailabilityCommand({ modelId });
        const access = await openBedrock(region).send(command);
        return {
          isAuthorized: access.authorizationStatus === 'AUTHORIZED',
          hasAgreement: access.agreementAvailability?.status === 'AVAILABLE',
          isEntitled: access.entitlementAvailability === 'AVAILABLE',
          isInRegion: access.regionAvailability === 'AVAILABLE',
        };
      }),
  };
}

/** Throws if AWS left a field out: a missing quota must never count as zero. */
function requireField<Value>(value: Value | undefined): Value {
  if (value !== undefined) return value;
  throw Object.assign(new Error('AWS answered without a field that is always set'), {
    name: 'UnexpectedReply',
  });
}
