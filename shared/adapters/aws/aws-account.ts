/** Reads quotas, models and the deployed stack of an AWS account by signed requests. Changes nothing. */
import * as z from 'zod/mini';
import type { AwsAccount } from '../../operate/operator-ports.ts';
import { callAws, buildJsonCall, readReply, type AwsCall } from './aws-request.ts';
import { describeStack, type StackAddress } from './deployed-stack.ts';

interface AwsAccountDeps extends StackAddress {
  tableLimits: AwsAccount['tableLimits'];
  explain: (error: unknown, where: string) => Error;
}

const fastParameters = '/ssm/parameter-store/high-throughput-enabled';

export function createAwsAccount(deps: AwsAccountDeps): AwsAccount {
  const explainFailure = <Result>(where: string, work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      throw deps.explain(error, where);
    });
  const read = <Schema extends z.ZodMiniType>(
    where: string,
    call: AwsCall,
    schema: Schema,
  ): Promise<z.infer<Schema>> =>
    explainFailure(
      where,
      callAws(deps, call).then((text) => readReply(schema, text)),
    );
  return {
    region: async () => (await explainFailure('AWS', deps.aws())).region,
    stack: () => explainFailure('CloudFormation', describeStack(deps)),
    async concurrency() {
      const call = { service: 'lambda', method: 'GET', path: '/2016-08-19/account-settings' } as const;
      const { AccountLimit: limit } = await read('Lambda', call, replies.accountSettings);
      return { most: limit.ConcurrentExecutions, unreserved: limit.UnreservedConcurrentExecutions };
    },
    tableLimits: deps.tableLimits,
    async hasFastParameters() {
      const call = buildJsonCall('ssm', 'AmazonSSM.GetServiceSetting', { SettingId: fastParameters });
      const { ServiceSetting: setting } = await read('SSM', call, replies.serviceSetting);
      return setting.SettingValue === 'true';
    },
    async models(region) {
      const call = { service: 'bedrock', region, method: 'GET', path: '/foundation-models' } as const;
      const { modelSummaries } = await read('Bedrock', call, replies.models);
      return modelSummaries.map((model) => ({
        id: model.modelId,
        streams: model.responseStreamingSupported ?? true,
        isActive: (model.modelLifecycle?.status ?? 'ACTIVE') === 'ACTIVE',
      }));
    },
    async modelAccess(region, model) {
      const path = `/foundation-model-availability/${encodeURIComponent(model)}`;
      const call = { service: 'bedrock', region, method: 'GET', path } as const;
      const access = await read('Bedrock', call, replies.availability);
      return {
        isAuthorized: access.authorizationStatus === 'AUTHORIZED',
        hasAgreement: access.agreementAvailability.status === 'AVAILABLE',
        isEntitled: access.entitlementAvailability === 'AVAILABLE',
        isInRegion: access.regionAvailability === 'AVAILABLE',
      };
    },
  };
}

// Only the fields that are read. The source of each shape is the page of its action.

const replies = {
  // https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
  accountSettings: z.object({
    AccountLimit: z.object({ ConcurrentExecutions: z.number(), UnreservedConcurrentExecutions: z.number() }),
  }),
  // https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetServiceSetting.html
  serviceSetting: z.object({ ServiceSetting: z.object({ SettingValue: z.string() }) }),
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html
  models: z.object({
    modelSummaries: z.array(
      z.object({
        modelId: z.string(),
        responseStreamingSupported: z.optional(z.boolean()),
        modelLifecycle: z.optional(z.object({ status: z.string() })),
      }),
    ),
  }),
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_GetFoundationModelAvailability.html
  availability: z.object({
    agreementAvailability: z.object({ status: z.string() }),
    authorizationStatus: z.string(),
    entitlementAvailability: z.string(),
    regionAvailability: z.string(),
  }),
};
