/**
 * Builds Lambda handlers for streamed and for buffered responses. An invocation lasts until the response's `done` resolves,
 * even after the client disconnects.
 */
import type { APIGatewayProxyEvent, Context, LambdaFunctionURLEvent } from 'aws-lambda';
import { type HostedHandle, type RelayResponse, AnswerCut } from '../../relay/http/http.ts';
import { createHttpEntry, originHeader, type HostRequest } from './http-entry.ts';
import type { Log } from '../../relay/ports/telemetry.ts';

export function createStreamingHandler(hosted: HostedHandle) {
  const answer = createLambdaEntry(hosted);
  // Middy's streaming mode is no option: it pipes, and a pipe cannot break a connection after its source ended.
  return awslambda.streamifyResponse(async (event: HttpEvent, connection, context) => {
    const response = await answer(event, context);
    const { status: statusCode, headers } = response;
    const stream = awslambda.HttpResponseStream.from(connection, { statusCode, headers });
    const id = headers['x-request-id'] ?? '';
    await writeBody(stream, response, (error) => hosted.log.fault(id, error));
    await response.done;
  });
}

export function createBufferedHandler(hosted: HostedHandle) {
  const answer = createLambdaEntry(hosted);
  return async (event: HttpEvent, context: Context) => {
    const response = await answer(event, context);
    const body = await joinText(response.body);
    await response.done;
    return { statusCode: response.status, headers: response.headers, body };
  };
}

/** The relay's own deadline is some seconds earlier. */
function createLambdaEntry(hosted: HostedHandle) {
  trapRejections(hosted.log);
  const enter = createHttpEntry(hosted);
  return (event: HttpEvent, context: Context): Promise<RelayResponse> =>
    enter(() => readHttpEvent(event, hosted.clock.now() + context.getRemainingTimeInMillis()));
}

async function joinText(body: string | AsyncIterable<string>): Promise<string> {
  if (typeof body === 'string') return body;
  let text = '';
  for await (const piece of body) text += piece;
  return text;
}

/**
 * Logs unhandled rejections instead of ending the process: a reset of the runtime's connection causes one inside AWS's client,
 * and the invocation still has to settle. Call once per process.
 */
export function trapRejections(log: Log): void {
  process.on('unhandledRejection', (reason) => {
    // The relay broke the connection itself and logged it.
    if (!(reason instanceof AnswerCut)) log.fault('process', reason);
  });
}

// Converts HTTP events of Function URLs (payload 2.0) and of API Gateway's REST APIs (1.0) to the request type that all hosts
// share. Must never trust a header for what only AWS can know.

export type HttpEvent = LambdaFunctionURLEvent | APIGatewayProxyEvent;

/** Throws a TypeError for any other kind of event. */
export const readHttpEvent = (event: HttpEvent, deadlineMs: number): HostRequest =>
  'httpMethod' in event ? readRestApiEvent(event, deadlineMs) : readFunctionUrlEvent(event, deadlineMs);

function readFunctionUrlEvent(event: LambdaFunctionURLEvent, deadlineMs: number): HostRequest {
  const { domainName, http } = event.requestContext;
  return {
    method: http.method,
    path: event.rawPath,
    query: event.rawQueryString,
    headers: event.headers,
    host: domainName,
    body: createBodyReader(event),
    deadlineMs,
  };
}

/**
 * A stage that clients call directly has this variable instead of the origin's header. Clients can set headers but no stage
 * variables, so with one, both of the distribution's headers are ignored.
 */
const originVariable = 'origin';

function readRestApiEvent(event: APIGatewayProxyEvent, deadlineMs: number): HostRequest {
  const { domainName = '', path: whole, stage } = event.requestContext;
  const prefix = `/${stage}`;
  const isBelow = (path: string): boolean => path === prefix || path.startsWith(`${prefix}/`);
  const headers = joinHeaders(event);
  const marker = event.stageVariables?.[originVariable];
  return {
    method: event.httpMethod,
    // Some events have the stage in the path. No path of the relay begins with a stage's name.
    path: (isBelow(event.path) ? event.path.slice(prefix.length) : event.path) || '/',
    query: joinQuery(event),
    headers:
      marker === undefined ? headers : { ...headers, [originHeader]: marker, 'x-forwarded-host': undefined },
    // With a custom domain, addresses have no stage.
    host: isBelow(whole) ? domainName + prefix : domainName,
    body: createBodyReader(event),
    deadlineMs,
  };
}

/** Names in lower case. Joins repeated headers as HTTP does, also those that differ in case. */
function joinHeaders(event: APIGatewayProxyEvent): Record<string, string> {
  const joined = new Map<string, string>();
  for (const [name, values = []] of Object.entries(event.multiValueHeaders ?? {})) {
    const before = joined.get(name.toLowerCase());
    joined.set(name.toLowerCase(), [...(before === undefined ? [] : [before]), ...values].join(', '));
  }
  return Object.fromEntries(joined);
}

/** API Gateway decodes it and loses the order of different names. */
function joinQuery({ multiValueQueryStringParameters: given }: APIGatewayProxyEvent): string {
  const pairs = Object.entries(given ?? {}).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new URLSearchParams(pairs).toString();
}

/** Lambda sends base64 for content that is not text, API Gateway always. */
function createBodyReader({ body, isBase64Encoded }: HttpEvent): HostRequest['body'] {
  return () => (isBase64Encoded ? Buffer.from(body ?? '', 'base64') : (body ?? ''));
}

// Writes an answer to the connection of Lambda's runtime and breaks that connection if the answer is cut. Must never end it
// before the answer is complete: Lambda would report success, even with error trailers.

interface RuntimeStream {
  readonly destroyed: boolean;
  write(text: Text, done?: () => void): boolean;
  end(): void;
  destroy(error?: Error): void;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}

/** UTF-8 bytes come from another thread. */
type Text = string | Uint8Array;

export type HostAnswer = Omit<RelayResponse, 'body'> & { body: Text | AsyncIterable<Text> };

type Body = Pick<HostAnswer, 'body' | 'cut' | 'closes' | 'endsHere'>;

export const isWhole = (body: HostAnswer['body']): body is Text =>
  typeof body === 'string' || body instanceof Uint8Array;

/**
 * Resolves when the runtime has everything or the connection is broken. Sends one text at a time, so the source knows what
 * was taken. Returns the source early when the connection closes.
 */
export async function writeBody(
  stream: RuntimeStream,
  body: Body,
  onFault: (error: unknown) => void,
): Promise<void> {
  const { cut, closes } = body;
  const connection = guardConnection(stream);
  void cut?.then((error) => connection.breakOff(error));
  const closed = new Promise<void>((resolve) => void stream.once('close', resolve));
  closes?.(closed);
  const finished = new Promise<void>((resolve) => void stream.once('finish', resolve));
  const wholeText = isWhole(body.body) ? body.body : '';
  const outcome = isWhole(body.body)
    ? 'open'
    : await writeTexts(stream, connection, { ...body, body: body.body }, onFault);
  if (outcome === 'broken' || stream.destroyed) return;
  if (outcome === 'open') {
    // Status and headers leave with the first write, even an empty one.
    stream.write(wholeText);
    stream.end();
  }
  await Promise.race([finished, closed]);
}

/**
 * Delays a break until the runtime has status and headers. Without them the runtime has no answer to break, and the client
 * would get nothing at all.
 */
function guardConnection(stream: RuntimeStream) {
  let hasHead = false;
  let broken: Promise<void> | undefined;
  const breakOff = async (error: Error): Promise<void> => {
    if (!hasHead && !stream.destroyed) await new Promise<void>((resolve) => void stream.write('', resolve));
    stream.destroy(error);
  };
  return {
    write(text: Text, done?: () => void): void {
      hasHead = true;
      stream.write(text, done);
    },
    breakOff: (error: Error): Promise<void> => (broken ??= breakOff(error)),
  };
}

/** Returns whether the body is complete, and whether the stream was ended with its last text. */
async function writeTexts(
  stream: RuntimeStream,
  connection: ReturnType<typeof guardConnection>,
  { body, endsHere }: Body & { body: AsyncIterable<Text> },
  onFault: (error: unknown) => void,
): Promise<'broken' | 'open' | 'ended'> {
  const texts = body[Symbol.asyncIterator]();
  let open = true;
  let ended = false;
  let onTaken: (() => void) | undefined;
  stream.once('close', () => {
    open = false;
    onTaken?.();
    void texts.return?.();
  });
  if (stream.destroyed) {
    void texts.return?.();
    return 'broken';
  }
  try {
    for (;;) {
      const { done, value } = await texts.next();
      if (!open) return 'broken';
      if (done) return ended ? 'ended' : 'open';
      // The same read of the upstream may bring the end: both then leave in one write.
      await waitForTick();
      if (!open) return 'broken';
      ended = endsHere?.() ?? false;
      await new Promise<void>((resolve) => {
        onTaken = resolve;
        connection.write(value, resolve);
        if (ended) stream.end();
      });
    }
  } catch (error) {
    if (!(error instanceof AnswerCut)) onFault(error);
    await connection.breakOff(new AnswerCut());
    return 'broken';
  }
}

/** Resolves after all pending microtasks. */
const waitForTick = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });
