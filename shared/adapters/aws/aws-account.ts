/** Reads quotas, models and the deployed stack of an AWS account by signed requests. Changes nothing. */
import * as z from 'zod/mini';
import type { AwsAccount, DeployedStack } from '../../operate/operator-ports.ts';
import { describeStack, textOf as xmlTextTextOf } from './deployed-stack.ts';
import type { AwsAccess } from '../system/environment.ts';
import { systemClock } from '../system/node-ports.ts';
import { endpointOf } from './aws-calls.ts';
import { requestSigner } from '../transport/request-signer.ts';

interface AwsAccountParts extends AwsCaller {
  stack: string;
  /** Read by the client of the tables. */
  tableLimits: AwsAccount['tableLimits'];
  /** Converts an error to a Failure that tells the operator what to do. */
  explain: (error: unknown, where: string) => Error;
}

const fastParameters = '/ssm/parameter-store/high-throughput-enabled';

export function signedAwsAccount(parts: AwsAccountParts): AwsAccount {
  const explained = <Result>(where: string, work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      throw parts.explain(error, where);
    });
  const read = <Schema extends z.ZodMiniType>(
    where: string,
    call: AwsCall,
    schema: Schema,
  ): Promise<z.infer<Schema>> =>
    explained(
      where,
      callAws(parts, call).then((text) => readReply(schema, text)),
    );
  return {
    region: async () => (await explained('AWS', parts.aws())).region,
    stack: () => explained('CloudFormation', stackOf(parts)),
    async concurrency() {
      const call = { service: 'lambda', method: 'GET', path: '/2016-08-19/account-settings' } as const;
      const { AccountLimit: limit } = await read('Lambda', call, replies.accountSettings);
      return { most: limit.ConcurrentExecutions, unreserved: limit.UnreservedConcurrentExecutions };
    },
    tableLimits: parts.tableLimits,
    async hasFastParameters() {
      const call = jsonCall('ssm', 'AmazonSSM.GetServiceSetting', { SettingId: fastParameters });
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
      const access = await read(
        'Bedrock',
        { service: 'bedrock', region, method: 'GET', path },
        replies.availability,
      );
      return {
        isAuthorized: access.authorizationStatus === 'AUTHORIZED',
        hasAgreement: access.agreementAvailability.status === 'AVAILABLE',
        isEntitled: access.entitlementAvailability === 'AVAILABLE',
        isInRegion: access.regionAvailability === 'AVAILABLE',
      };
    },
  };
}

const jsonCall = (service: string, target: string, body: object): AwsCall => ({
  service,
  headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
  body: JSON.stringify(body),
});

const stackOf = async ({ stack, aws, environment }: AwsAccountParts): Promise<DeployedStack | undefined> =>
  describeStack(stack, await aws(), environment);

// The parts of AWS's replies that are read. The source of each shape is the page of its action.

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

/** Throws an Error for a reply of another form. */
export function readReply<Schema extends z.ZodMiniType>(schema: Schema, text: string): z.infer<Schema> {
  const reading = z.safeParse(schema, JSON.parse(text));
  if (reading.success) return reading.data;
  throw Object.assign(new Error('the reply has another form than AWS publishes'), {
    name: 'UnexpectedReply',
  });
}

// Who signs an operator's requests: the ARN that STS knows for the credentials, which needs no permission. Must never stop
// what it is asked for: without an answer the access key names the caller, which AWS's own logs lead to a person.
// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html

const timeoutMs = 3000;

/**
 * The name of the caller, asked for at the first use.
 * @param accessKey throws when there are no credentials
 */
export function callerIdentity(caller: AwsCaller, accessKey: () => Promise<string>): () => Promise<string> {
  let asked: Promise<string> | undefined;
  return () => {
    asked ??= arnOf(caller).catch(accessKey);
    return asked;
  };
}

async function arnOf(caller: AwsCaller): Promise<string> {
  const xml = await callAws(caller, {
    service: 'sts',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ Action: 'GetCallerIdentity', Version: '2011-06-15' }).toString(),
    timeoutMs,
  });
  const arn = xmlTextTextOf(xml, 'Arn');
  if (!arn) throw new Error('STS answered without an ARN');
  return arn;
}

// One signed request to a service of AWS, for readings that are too rare for a client package of their own. Never repeats
// a call and never writes.

const timeoutMsMax = 10_000;
const replyBytesMax = 10_000_000;

interface AwsCall {
  /** As in the host's name and in the signature. */
  service: string;
  /** Absent: the region of the credentials. */
  region?: string;
  /** Absent: POST. */
  method?: 'GET';
  path?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Absent: 10 s. */
  timeoutMs?: number;
}

export interface AwsCaller {
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<AwsAccess>;
  /** `AWS_ENDPOINT_URL_<SERVICE>` and `AWS_ENDPOINT_URL` replace an address, as for the SDK. */
  environment: NodeJS.ProcessEnv;
}

/** The text of the reply. Throws an Error named as AWS names it, such as `AccessDeniedException`. */
export async function callAws({ aws, environment }: AwsCaller, call: AwsCall): Promise<string> {
  const access = await aws();
  const { service, path = '/', headers = {}, body = '', timeoutMs = timeoutMsMax } = call;
  const region = call.region ?? access.region;
  const variable = `AWS_ENDPOINT_URL_${service.toUpperCase()}`;
  const endpoint = endpointOf({ name: service, variable }, region, environment);
  const request = {
    method: call.method ?? ('POST' as const),
    url: `${endpoint.href.replace(/\/$/, '')}${path}`,
    headers,
    body,
  };
  const signed = await requestSigner({ aws: access, clock: systemClock })(request, { service, region });
  const reply = await fetch(request.url, {
    method: request.method,
    headers: signed,
    ...(request.method === 'POST' && { body }),
    signal: AbortSignal.timeout(timeoutMs),
    redirect: 'manual',
  }).catch((error: unknown) => {
    // What went wrong, with its code, is behind the words "fetch failed".
    throw error instanceof Error ? (error.cause ?? error) : error;
  });
  const text = await textOf(reply);
  if (reply.status === 200) return text;
  throw refusalOf(reply.status, reply.headers.get('x-amzn-errortype'), text);
}

/** Reads no further than a reply may be long. */
async function textOf({ body }: Response): Promise<string> {
  const utf8 = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.byteLength;
    if (bytes > replyBytesMax)
      throw Object.assign(new Error(`the reply has more than ${replyBytesMax} bytes`), {
        name: 'ReplyTooLarge',
      });
    text += utf8.decode(piece, { stream: true });
  }
  return text + utf8.decode();
}

/** JSON services name the error in a header or in `__type`, with a name space before it; Query services in XML. */
function refusalOf(status: number, header: string | null, text: string): Error {
  const typed =
    header ?? /"__type"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? /<Code>([^<]*)<\/Code>/.exec(text)?.[1];
  const message =
    /"[Mm]essage"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? /<Message>([^<]*)<\/Message>/.exec(text)?.[1];
  const error = new Error(message ?? `status ${status}`);
  error.name = typed?.split(':')[0]?.split('#').at(-1) ?? `Status${status}`;
  return error;
}
