import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { FunctionError, Responder } from './environment.ts';
import type { LocalFunction } from './local-function.ts';

interface UrlRequest {
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
export function toUrlEvent(request: UrlRequest, requestId: string): Record<string, unknown> {
  const { method, target, body, sourceIp, domain } = request;
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? '' : target.slice(mark + 1);
  const { headers, cookies } = eventHeaders(request);
  const isText = textual.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined;
  const prefix = domain.split('.')[0] ?? domain;
  const now = new Date();
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
      time: commonLogTime(now),
      timeEpoch: now.getTime(),
    },
    ...(body.length > 0 && { body: body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

function eventHeaders(request: UrlRequest): { headers: Record<string, string>; cookies: string[] } {
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

/** `21/Nov/2026:09:43:00 +0000` */
function commonLogTime(date: Date): string {
  const [, day, month, year, time] = date.toUTCString().split(' ');
  return `${day}/${month}/${year}:${time} +0000`;
}

const preludeType = 'application/vnd.awslambda.http-integration-response';
const errorTypeTrailer = 'lambda-runtime-function-error-type';
const bufferedBytesMax = 6 * 1024 * 1024;
const streamedBytesMax = 200 * 1024 * 1024;

export type InvokeMode = 'BUFFERED' | 'RESPONSE_STREAM';

/** The answer that a Function URL writes. Writes after the viewer has disconnected do nothing. */
export interface UrlReply {
  /** True when status and headers are sent. */
  readonly begun: boolean;
  /** Called when the function has received the request; starts the time-outs. */
  startWaiting(): void;
  begin(status: number, headers: OutgoingHttpHeaders): void;
  /** Returns false when the buffer is full: wait with `whenWritable`. */
  write(bytes: Uint8Array): boolean;
  /** Calls back once: when the buffer has room again, or when the viewer has disconnected. */
  whenWritable(callback: () => void): void;
  end(bytes?: Uint8Array): void;
  /** Cuts the connection, so that the viewer detects an incomplete answer. */
  abort(): void;
}

interface BufferedResult extends UrlResponseHead {
  body?: string;
  isBase64Encoded?: boolean;
}

/** Converts a function's answer to the HTTP answer of its Function URL. */
function respondTo(reply: UrlReply, mode: InvokeMode, requestId: string): Responder {
  const base = { 'x-amzn-requestid': requestId };
  const failed = (error: FunctionError): void => {
    if (reply.begun) return reply.abort();
    const headers = { ...base, 'content-type': 'application/json', 'x-amzn-errortype': error.errorType };
    reply.begin(502, headers);
    reply.end(Buffer.from('{"message":"Internal Server Error"}'));
  };
  const begin = (head: UrlResponseHead, contentType: string) =>
    reply.begin(head.statusCode ?? 200, { ...base, ...responseHeaders(head, contentType) });

  return {
    failed,
    buffered(payload) {
      if (payload.length > bufferedBytesMax)
        return failed({ errorType: 'Function.ResponseSizeTooLarge', errorMessage: 'over 6 MB' });
      const result = readResult(payload);
      const body = Buffer.from(result.body ?? '', result.isBase64Encoded === true ? 'base64' : 'utf8');
      reply.begin(result.statusCode ?? 200, {
        ...base,
        ...responseHeaders(result, 'application/json'),
        'content-length': body.length,
      });
      reply.end(body);
    },
    streaming(body, contentType, over) {
      const sink = mode === 'BUFFERED' ? collect(reply) : reply;
      // What was written before the end is bounded by the buffers between the function and here.
      over.addEventListener('abort', () => body.resume());
      relay(body, contentType === preludeType, {
        begin: (head) => begin(head, contentType === preludeType ? 'application/octet-stream' : contentType),
        write: (bytes) =>
          sink.write(bytes) || over.aborted || (sink.whenWritable(() => body.resume()), false),
        end: () => sink.end(),
        failed,
      });
    },
  };
}

interface StreamSink {
  begin(head: UrlResponseHead): void;
  write(bytes: Buffer): boolean;
  end(): void;
  failed(error: FunctionError): void;
}

/** Reads a streamed answer to its end, even without a viewer, so that the invocation does not block. */
function relay(body: IncomingMessage, hasPrelude: boolean, sink: StreamSink): void {
  let prelude: Buffer | undefined = hasPrelude ? Buffer.alloc(0) : undefined;
  let begun = false;
  let total = 0;
  const begin = (head: UrlResponseHead) => {
    begun = true;
    sink.begin(head);
  };
  const write = (bytes: Buffer) => {
    if (!begun) begin({});
    total += bytes.length;
    if (total > streamedBytesMax)
      sink.failed({ errorType: 'Function.ResponseSizeTooLarge', errorMessage: '200 MB' });
    else if (!sink.write(bytes)) body.pause();
  };
  body.on('data', (bytes: Buffer) => {
    if (prelude === undefined) return write(bytes);
    prelude = Buffer.concat([prelude, bytes]);
    try {
      const split = splitPrelude(prelude);
      if (split === undefined) return;
      prelude = undefined;
      begin(split.head);
      if (split.rest.length > 0) write(split.rest);
    } catch {
      prelude = undefined;
      sink.failed({ errorType: 'Runtime.InvalidPrelude', errorMessage: 'the prelude is not JSON' });
      body.removeAllListeners('data').resume();
    }
  });
  body.once('end', () => {
    const errorType = body.trailers[errorTypeTrailer];
    if (errorType !== undefined) return sink.failed({ errorType, errorMessage: 'failed while streaming' });
    if (prelude !== undefined)
      return sink.failed({ errorType: 'Runtime.InvalidPrelude', errorMessage: 'cut short' });
    if (!begun) begin({});
    sink.end();
  });
  // The function broke the stream off, or its process ended.
  body.once('error', () => sink.failed({ errorType: 'Runtime.ExitError', errorMessage: 'exited' }));
}

/** A BUFFERED URL sends a streamed answer when it is complete. */
function collect(reply: UrlReply): Pick<UrlReply, 'write' | 'whenWritable' | 'end'> {
  const pieces: Uint8Array[] = [];
  return {
    write: (bytes) => pieces.push(bytes) > 0,
    whenWritable: (callback) => callback(),
    end: () => reply.end(Buffer.concat(pieces)),
  };
}

/** A result without a status code is used as the body. */
function readResult(payload: Buffer): BufferedResult {
  const text = payload.toString();
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && 'statusCode' in value) return value as BufferedResult;
    return { body: typeof value === 'string' ? value : text };
  } catch {
    return { body: text };
  }
}

function responseHeaders(head: UrlResponseHead, contentType: string): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { 'content-type': contentType };
  for (const [name, value] of Object.entries(head.headers ?? {})) headers[name.toLowerCase()] = String(value);
  if (head.cookies !== undefined && head.cookies.length > 0) headers['set-cookie'] = head.cookies;
  return headers;
}

/**
 * Status and headers of a streamed answer. The stream has them as JSON, then eight zero bytes, then the body.
 */
export interface UrlResponseHead {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  cookies?: string[];
}

const delimiter = Buffer.alloc(8);

/** Returns undefined until the delimiter has arrived. Throws SyntaxError when the prelude is not JSON. */
export function splitPrelude(bytes: Buffer): { head: UrlResponseHead; rest: Buffer } | undefined {
  const end = bytes.indexOf(delimiter);
  if (end < 0) return undefined;
  const head = JSON.parse(bytes.subarray(0, end).toString()) as UrlResponseHead;
  return { head, rest: bytes.subarray(end + delimiter.length) };
}

const requestBytesMax = 6 * 1024 * 1024;

/** The origin's view of a request. The body is read from the viewer's request. */
interface OriginRequest {
  /** Path and query. */
  target: string;
  headers: IncomingHttpHeaders;
  reply: UrlReply;
}

/** Answers a request by invoking a function once the body of the request is complete. */
export type FunctionUrl = (request: IncomingMessage, origin: OriginRequest) => void;

/** Emulates a Function URL. It rejects only bodies that are too large, as Lambda does. */
export const functionUrl =
  (target: LocalFunction, mode: InvokeMode, domain: string): FunctionUrl =>
  (request, { target: pathAndQuery, headers, reply }) =>
    readBody(request, (body) => {
      if (body === undefined) {
        reply.begin(413, { 'content-type': 'application/json' });
        return reply.end(Buffer.from('{"message":"Request Too Long"}'));
      }
      const requestId = randomUUID();
      const { method = 'GET', socket } = request;
      const sourceIp = socket.remoteAddress?.replace('::ffff:', '') ?? '127.0.0.1';
      const received = { method, target: pathAndQuery, headers, body, sourceIp, domain };
      reply.startWaiting();
      target.invoke(toUrlEvent(received, requestId), respondTo(reply, mode, requestId), requestId);
    });

/**
 * Calls back once: with the whole body, or with undefined as soon as it is too large. Does not call back when
 * the viewer disconnects.
 */
function readBody(request: IncomingMessage, done: (body: Buffer | undefined) => void): void {
  const pieces: Buffer[] = [];
  let size = 0;
  const take = (bytes: Buffer) => {
    size += bytes.length;
    pieces.push(bytes);
    if (size <= requestBytesMax) return;
    request.off('data', take).off('end', end).resume();
    done(undefined);
  };
  const end = () => done(Buffer.concat(pieces));
  request.on('data', take).once('end', end);
  request.on('error', () => {});
}
