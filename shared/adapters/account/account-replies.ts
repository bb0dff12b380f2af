/** The parts of AWS's replies that are read. The source of each shape is the page of its action. */
import * as z from 'zod/mini';

export const replies = {
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

/** Throws an Error for a reply of another form. */
export function readReply<Schema extends z.ZodMiniType>(schema: Schema, text: string): z.infer<Schema> {
  const reading = z.safeParse(schema, JSON.parse(text));
  if (reading.success) return reading.data;
  throw Object.assign(new Error('the reply has another form than AWS publishes'), {
    name: 'UnexpectedReply',
  });
}
