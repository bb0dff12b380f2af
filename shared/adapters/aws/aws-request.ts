/**
 * One signed request to a service of AWS, for readings that are too rare for a client package of their own. Never repeats
 * a call and never writes.
 */
import * as z from 'zod/mini';
import { asRecord, parseJson } from '../../wire/json.ts';
import type { AwsAccess } from '../system/environment.ts';
import { systemClock } from '../system/node-ports.ts';
import { endpointOf, ServiceRefusal, userAgent } from './aws-calls.ts';
import { createRequestSigner } from './aws-signature.ts';

const timeoutMsMax = 10_000;
const replyBytesMax = 10_000_000;

export interface AwsCall {
  /** As in the host's name and in the signature. */
  service: string;
  /** That names another address for it. Absent: `AWS_ENDPOINT_URL_<SERVICE>`. */
  variable?: string;
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

/** The text of the reply. Throws a ServiceRefusal, or the error of the network. */
export async function callAws({ aws, environment }: AwsCaller, call: AwsCall): Promise<string> {
  const access = await aws();
  const { service, path = '/', headers = {}, body = '', timeoutMs = timeoutMsMax } = call;
  const region = call.region ?? access.region;
  const { variable = `AWS_ENDPOINT_URL_${service.toUpperCase()}` } = call;
  const endpoint = endpointOf({ name: service, variable }, region, environment);
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
    // What went wrong, with its code, is behind the words "fetch failed".
    throw error instanceof Error ? (error.cause ?? error) : error;
  });
  const text = await textOf(reply);
  if (reply.status === 200) return text;
  throw new ServiceRefusal(
    { status: reply.status, headers: Object.fromEntries(reply.headers) },
    parseError(text),
  );
}

/** As JSON services want it. */
export const buildJsonCall = (service: string, target: string, body: object): AwsCall => ({
  service,
  headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
  body: JSON.stringify(body),
});

/** As Query services want it. */
export const buildQueryCall = (service: string, parameters: Record<string, string>): AwsCall => ({
  service,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(parameters).toString(),
});

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

/** What an error says: JSON, or XML of Query services. Of something between, nothing. */
function parseError(text: string): Record<string, unknown> {
  if (text.startsWith('<')) return { code: readXmlText(text, 'Code'), message: readXmlText(text, 'Message') };
  return asRecord(parseJson(text));
}

/** Throws an Error for a reply of another form. */
export function readReply<Schema extends z.ZodMiniType>(schema: Schema, text: string): z.infer<Schema> {
  const reading = z.safeParse(schema, JSON.parse(text));
  if (reading.success) return reading.data;
  throw Object.assign(new Error('the reply has another form than AWS publishes'), {
    name: 'UnexpectedReply',
  });
}

/** Reads the text of elements in answers of AWS's query APIs. Never for documents of others: it knows no attributes. */

/** The text of the first element of this name that holds nothing but text. */
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

// Who signs an operator's requests: the ARN that STS knows for the credentials, which needs no permission. Must never stop
// what it is asked for: without an answer the access key names the caller, which AWS's own logs lead to a person.
// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html

const timeoutMs = 3000;

/**
 * The name of the caller, asked for at the first use.
 * @param accessKey throws when there are no credentials
 */
export function createIdentityLookup(
  caller: AwsCaller,
  accessKey: () => Promise<string>,
): () => Promise<string> {
  let lookup: Promise<string> | undefined;
  return () => {
    lookup ??= arnOf(caller).catch(accessKey);
    return lookup;
  };
}

async function arnOf(caller: AwsCaller): Promise<string> {
  const xml = await callAws(caller, {
    ...buildQueryCall('sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' }),
    timeoutMs,
  });
  const arn = readXmlText(xml, 'Arn');
  if (!arn) throw new Error('STS answered without an ARN');
  return arn;
}
