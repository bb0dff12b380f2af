/**
 * Builds Lambda handlers for streamed and for buffered responses. An invocation lasts until the response's `done` resolves,
 * even after the client disconnects.
 */
import type { Context } from 'aws-lambda';
import { type HostedHandle, type RelayResponse, AnswerCut } from '../../relay/http/http.ts';
import { createHttpEntry } from './http-entry.ts';
import { readHttpEvent, type HttpEvent } from './lambda-events.ts';
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
