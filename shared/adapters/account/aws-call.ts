/**
 * One signed request to a service of AWS, for readings that are too rare for a client package of their own. Never repeats
 * a call and never writes.
 */
import type { AwsAccess } from '../system/environment.ts';
import { systemClock } from '../system/system-clock.ts';
import { endpointOf } from '../aws/aws-endpoint.ts';
import { requestSigner } from '../transport/request-signer.ts';

const timeoutMsMax = 10_000;
const replyBytesMax = 10_000_000;

export interface AwsCall {
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
