/**
 * Sends one signed request to AWS, for reads that are too rare for a client package. Never repeats a call and never writes.
 */
import * as z from 'zod/mini';
import { asRecord, parseJson } from '../../wire/json.ts';
import type { AwsAccess } from '../system/environment.ts';
import { systemClock } from '../system/node-ports.ts';
import { resolveEndpoint, ServiceRefusal, userAgent } from './aws-calls.ts';
import { createRequestSigner } from './aws-signature.ts';

const timeoutMsMax = 10_000;
const replyBytesMax = 10_000_000;

export interface AwsCall {
  service: string;
  /** The variable that overrides the address. Default: `AWS_ENDPOINT_URL_<SERVICE>`. */
  variable?: string;
  region?: string;
  method?: 'GET';
  path?: string;
  headers?: Record<string, string>;
  body?: string;
  timeoutMs?: number;
}

export interface AwsCaller {
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<AwsAccess>;
  /** `AWS_ENDPOINT_URL_<SERVICE>` and `AWS_ENDPOINT_URL` override addresses, as in the SDK. */
  environment: NodeJS.ProcessEnv;
}

/** Returns the reply's text. Throws a ServiceRefusal, or the network's error. */
export async function callAws({ aws, environment }: AwsCaller, call: AwsCall): Promise<string> {
  const access = await aws();
  const { service, path = '/', headers = {}, body = '', timeoutMs = timeoutMsMax } = call;
  const region = call.region ?? access.region;
  const { variable = `AWS_ENDPOINT_URL_${service.toUpperCase()}` } = call;
  const endpoint = resolveEndpoint({ name: service, variable }, region, environment);
  const request = {
    method: call.method ?? ('POST' as const),
    url: `${endpoint.href.replace(/\/$/, '')}${path}`,
    headers,
    body,
  };
  const signed = await createRequestSigner({ aws: access, clock: systemClock })(request, { service, region });
  const reply = await fetch(request.url, {
    method: request.method,
    headers: { ...signed, 'user-agent': userAgent },
    ...(request.method === 'POST' && { body }),
    signal: AbortSignal.timeout(timeoutMs),
    redirect: 'manual',
  }).catch((error: unknown) => {
    // The cause has the code; the error itself says "fetch failed" only.
    throw error instanceof Error ? (error.cause ?? error) : error;
  });
  const text = await readBoundedText(reply);
  if (reply.status === 200) return text;
  throw new ServiceRefusal(
    { status: reply.status, headers: Object.fromEntries(reply.headers) },
    parseError(text),
  );
}

export const buildJsonCall = (service: string, target: string, body: object): AwsCall => ({
  service,
  headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
  body: JSON.stringify(body),
});

export const buildQueryCall = (service: string, parameters: Record<string, string>): AwsCall => ({
  service,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(parameters).toString(),
});

async function readBoundedText({ body }: Response): Promise<string> {
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

/** Reads JSON or a Query service's XML. A proxy's page yields nothing. */
function parseError(text: string): Record<string, unknown> {
  if (text.startsWith('<')) return { code: readXmlText(text, 'Code'), message: readXmlText(text, 'Message') };
  return asRecord(parseJson(text));
}

export function readReply<Schema extends z.ZodMiniType>(schema: Schema, text: string): z.infer<Schema> {
  const reading = z.safeParse(schema, JSON.parse(text));
  if (reading.success) return reading.data;
  throw Object.assign(new Error('the reply has another form than AWS publishes'), {
    name: 'UnexpectedReply',
  });
}

/** Reads element text from AWS's Query APIs. It knows no attributes, so it must never read other documents. */

export function readXmlText(xml: string, element: string): string | undefined {
  const [, content] = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml) ?? [];
  return content?.replaceAll(
    /&(#x?[0-9a-f]+|[a-z]+);/gi,
    (whole, name: string) => decodeEntity(name) ?? whole,
  );
}

const entities: Readonly<Record<string, string>> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' };

function decodeEntity(name: string): string | undefined {
  if (!name.startsWith('#')) return entities[name];
  const code = Number(name.startsWith('#x') ? `0${name.slice(1)}` : name.slice(1));
  return code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}

// Finds the ARN of an operator's credentials, which needs no permission. A failure must never stop the caller: the access key
// then names the operator. https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html

const identityMsMax = 3000;

/** @param accessKey throws when there are no credentials */
export function createIdentityLookup(
  caller: AwsCaller,
  accessKey: () => Promise<string>,
): () => Promise<string> {
  let lookup: Promise<string> | undefined;
  return () => {
    lookup ??= fetchCallerArn(caller).catch(accessKey);
    return lookup;
  };
}

async function fetchCallerArn(caller: AwsCaller): Promise<string> {
  const xml = await callAws(caller, {
    ...buildQueryCall('sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' }),
    timeoutMs: identityMsMax,
  });
  const arn = readXmlText(xml, 'Arn');
  if (!arn) throw new Error('STS answered without an ARN');
  return arn;
}
