/** Stands in for a Function URL: builds the event of a request and reads the answer, whole or streamed. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { readBody } from '../host/loopback.ts';
import { type Answered, FunctionError, type StreamedAnswer } from './environment.ts';
import type { LocalFunction } from './local-function.ts';

export interface UrlRequest {
  method: string;
  /** Path and query as the client sent them. */
  target: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  sourceIp: string;
  /** Host name of the Function URL. */
  domain: string;
}

const textual = /^(text\/|application\/(json|javascript|xml|[\w.-]+\+(json|xml))\b)/i;

/** Converts a request to a Function URL's event, payload format 2.0. The path stays percent-encoded. */
export function buildUrlEvent(request: UrlRequest, requestId: string): Record<string, unknown> {
  const { method, target, body, sourceIp, domain } = request;
  const [path = '/', query = ''] = target.split(/\?(.*)/s);
  const { headers, cookies } = splitEventHeaders(request);
  const isText = textual.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined;
  const prefix = domain.split('.')[0] ?? domain;
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    ...(cookies.length > 0 && { cookies }),
    headers,
    ...(query !== '' && { queryStringParameters: queryParameters(query) }),
    requestContext: {
      accountId: 'anonymous',
      apiId: prefix,
      domainName: domain,
      domainPrefix: prefix,
      http: { method, path, protocol: 'HTTP/1.1', sourceIp, userAgent: headers['user-agent'] ?? '' },
      requestId,
      routeKey: '$default',
      stage: '$default',
      timeEpoch: Date.now(),
    },
    ...(body.length > 0 && { body: body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

function splitEventHeaders(request: UrlRequest): { headers: Record<string, string>; cookies: string[] } {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && name !== 'cookie')
      headers[name] = Array.isArray(value) ? value.join(',') : value;
  headers['host'] = request.domain;
  headers['x-forwarded-for'] = [headers['x-forwarded-for'], request.sourceIp].filter(Boolean).join(', ');
  headers['x-forwarded-proto'] = 'https';
  headers['x-forwarded-port'] = '443';
  const seconds = Math.floor(Date.now() / 1000).toString(16);
  headers['x-amzn-trace-id'] ??= `Root=1-${seconds}-${randomBytes(12).toString('hex')}`;
  return { headers, cookies: request.headers.cookie?.split(/;\s*/) ?? [] };
}

function queryParameters(query: string): Record<string, string> {
  const parameters = new URLSearchParams(query);
  return Object.fromEntries([...parameters.keys()].map((name) => [name, parameters.getAll(name).join(',')]));
}

const preludeType = 'application/vnd.awslambda.http-integration-response';
const errorTypeTrailer = 'lambda-runtime-function-error-type';
/** Limit of an event, with the body in it as JSON text or base64, and of an answer that does not stream. */
export const wholeBytesMax = 6 * 1024 * 1024;

export type InvokeMode = 'BUFFERED' | 'RESPONSE_STREAM';

/** An origin's answer. A body that emits an error was broken off; a destroyed one is no longer wanted. */
export interface OriginAnswer {
  status: number;
  headers: OutgoingHttpHeaders;
  body: Readable | Buffer | string;
}

/** Answers a request whose body is not read yet; target (path and query) and headers are those for the origin. Never rejects. */
export type FunctionUrl = (
  request: IncomingMessage,
  forOrigin: { target: string; headers: IncomingHttpHeaders },
) => Promise<OriginAnswer>;

/** Emulates a Function URL: invokes the function once the body of the request is complete. */
export const createFunctionUrl =
  (called: LocalFunction, mode: InvokeMode, domain: string): FunctionUrl =>
  async (request, { target, headers }) => {
    const tooLong = createFailure(413, 'Request Too Long');
    const body = await readBody(request, wholeBytesMax);
    if (!body) return tooLong;
    const requestId = randomUUID();
    const { method = 'GET', socket } = request;
    const sourceIp = socket.remoteAddress?.replace('::ffff:', '') ?? '127.0.0.1';
    const event = buildUrlEvent({ method, target, headers, body, sourceIp, domain }, requestId);
    if (Buffer.byteLength(JSON.stringify(event)) > wholeBytesMax) return tooLong;
    const base = { 'x-amzn-requestid': requestId };
    try {
      const answer = await answerOf(called.invoke(event, requestId), mode);
      return { ...answer, headers: { ...base, ...answer.headers } };
    } catch (error) {
      const { errorType = 'Error' } = error as Partial<FunctionError>;
      return createFailure(502, 'Internal Server Error', { ...base, 'x-amzn-errortype': errorType });
    }
  };

/** Rejects when the function failed before it answered. */
export async function answerOf(invoked: Promise<Answered>, mode: InvokeMode): Promise<OriginAnswer> {
  const answered = await invoked;
  const answer =
    'payload' in answered ? readWholeAnswer(answered.payload) : await startStreamedAnswer(answered);
  const { body } = answer;
  return mode === 'BUFFERED' && body instanceof Readable ? { ...answer, body: await buffer(body) } : answer;
}

const createFailure = (status: number, message: string, headers: OutgoingHttpHeaders = {}): OriginAnswer => ({
  status,
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify({ message }),
});

function readWholeAnswer(payload: Buffer): OriginAnswer {
  if (payload.length > wholeBytesMax) throw new FunctionError('Function.ResponseSizeTooLarge', 'over 6 MB');
  const result = readResult(payload);
  const body = Buffer.from(result.body ?? '', result.isBase64Encoded === true ? 'base64' : 'utf8');
  const { status, headers } = headOf(result, 'application/json');
  return { status, headers: { ...headers, 'content-length': body.length }, body };
}

interface BufferedResult extends UrlResponseHead {
  body?: string;
  isBase64Encoded?: boolean;
}

/** A result without a status code is used as the body. */
function readResult(payload: Buffer): BufferedResult {
  const text = payload.toString();
  const value = JSON.parse(text) as unknown;
  if (typeof value === 'object' && value !== null && 'statusCode' in value) return value as BufferedResult;
  return { body: typeof value === 'string' ? value : text };
}

/**
 * Resolves with status and headers and what streams after them. Reads what the function writes to its end, even when nobody
 * wants it, so that the invocation does not block.
 */
function startStreamedAnswer({ body, contentType, over }: StreamedAnswer): Promise<OriginAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<OriginAnswer>();
  let prelude: Buffer | undefined = contentType === preludeType ? Buffer.alloc(0) : undefined;
  const type = prelude ? 'application/octet-stream' : contentType;
  const rest = new Readable({
    read: () => void body.resume(),
    destroy(error, done) {
      body.resume();
      done(error);
    },
  });
  const begin = (head: UrlResponseHead): void => resolve({ ...headOf(head, type), body: rest });
  const fail = (errorType: string): void => {
    const error = new FunctionError(errorType, 'failed while streaming');
    reject(error);
    rest.destroy(error);
  };
  const take = (bytes: Buffer): void => {
    if (rest.destroyed) return;
    if (prelude === undefined) begin({});
    if (bytes.length > 0 && !rest.push(bytes) && !over.aborted) body.pause();
  };
  rest.on('error', () => {});
  body.on('data', (bytes: Buffer) => {
    if (prelude === undefined) return take(bytes);
    prelude = Buffer.concat([prelude, bytes]);
    const split = splitPrelude(prelude);
    if (split === undefined) return;
    prelude = undefined;
    begin(split.head);
    take(split.rest);
  });
  body.once('end', () => {
    const errorType = body.trailers[errorTypeTrailer] ?? (prelude && 'Runtime.InvalidPrelude');
    if (errorType !== undefined) return fail(errorType);
    take(Buffer.alloc(0));
    rest.push(null);
  });
  // The function broke the stream off, or its process ended.
  body.once('error', () => fail('Runtime.ExitError'));
  // The buffers between the function and here bound what was written before the end.
  over.addEventListener('abort', () => body.resume());
  return promise;
}

/**
 * Status and headers of a streamed answer. The stream has them as JSON, then eight zero bytes, then the body.
 */
export interface UrlResponseHead {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  cookies?: string[];
}

function headOf(head: UrlResponseHead, contentType: string): Omit<OriginAnswer, 'body'> {
  const headers: OutgoingHttpHeaders = { 'content-type': contentType };
  for (const [name, value] of Object.entries(head.headers ?? {})) headers[name.toLowerCase()] = String(value);
  if (head.cookies !== undefined && head.cookies.length > 0) headers['set-cookie'] = head.cookies;
  return { status: head.statusCode ?? 200, headers };
}

const delimiter = Buffer.alloc(8);

/** Returns undefined until the delimiter has arrived. */
export function splitPrelude(bytes: Buffer): { head: UrlResponseHead; rest: Buffer } | undefined {
  const end = bytes.indexOf(delimiter);
  if (end < 0) return undefined;
  const head = JSON.parse(bytes.subarray(0, end).toString()) as UrlResponseHead;
  return { head, rest: bytes.subarray(end + delimiter.length) };
}
