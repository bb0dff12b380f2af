import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { FunctionError, Responder } from './invocation.ts';
import { splitPrelude, type ResponseHead } from './prelude.ts';

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

interface BufferedResult extends ResponseHead {
  body?: string;
  isBase64Encoded?: boolean;
}

/** Converts a function's answer to the HTTP answer of its Function URL. */
export function respondTo(reply: UrlReply, mode: InvokeMode, requestId: string): Responder {
  const base = { 'x-amzn-requestid': requestId };
  const failed = (error: FunctionError): void => {
    if (reply.begun) return reply.abort();
    const headers = { ...base, 'content-type': 'application/json', 'x-amzn-errortype': error.errorType };
    reply.begin(502, headers);
    reply.end(Buffer.from('{"message":"Internal Server Error"}'));
  };
  const begin = (head: ResponseHead, contentType: string) =>
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
  begin(head: ResponseHead): void;
  write(bytes: Buffer): boolean;
  end(): void;
  failed(error: FunctionError): void;
}

/** Reads a streamed answer to its end, even without a viewer, so that the invocation does not block. */
function relay(body: IncomingMessage, hasPrelude: boolean, sink: StreamSink): void {
  let prelude: Buffer | undefined = hasPrelude ? Buffer.alloc(0) : undefined;
  let begun = false;
  let total = 0;
  const begin = (head: ResponseHead) => {
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

function responseHeaders(head: ResponseHead, contentType: string): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { 'content-type': contentType };
  for (const [name, value] of Object.entries(head.headers ?? {})) headers[name.toLowerCase()] = String(value);
  if (head.cookies !== undefined && head.cookies.length > 0) headers['set-cookie'] = head.cookies;
  return headers;
}
