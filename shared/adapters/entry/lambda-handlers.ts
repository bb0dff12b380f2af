/**
 * The Lambda handler of a function whose answers stream. An invocation lasts until the response's `done`
 * resolves, even after the client disconnects.
 */
import type { Context } from 'aws-lambda';
import { type HostedHandle, type RelayResponse, AnswerCut } from '../../relay/http/http.ts';
import { createHttpEntry } from './http-entry.ts';
import { hostRequest, type HttpEvent } from './lambda-events.ts';
import type { Log } from '../../relay/ports/telemetry.ts';

export function createStreamingHandler(hosted: HostedHandle) {
  const answer = createLambdaEntry(hosted);
  // Not middy's streaming mode: it pipes into the connection, and a pipe cannot be broken once its source has ended.
  return awslambda.streamifyResponse(async (event: HttpEvent, connection, context) => {
    const response = await answer(event, context);
    const { status: statusCode, headers } = response;
    const stream = awslambda.HttpResponseStream.from(connection, { statusCode, headers });
    const id = headers['x-request-id'] ?? '';
    await writeBody(stream, response, (error) => hosted.log.fault(id, error));
    await response.done;
  });
}

// The Lambda handler of a function that returns buffered responses.

interface BufferedResult {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

export function createBufferedHandler(hosted: HostedHandle) {
  const answer = createLambdaEntry(hosted);
  return async (event: HttpEvent, context: Context): Promise<BufferedResult> => {
    const response = await answer(event, context);
    const body = await wholeText(response.body);
    await response.done;
    return { statusCode: response.status, headers: response.headers, body };
  };
}

/** The relay enforces its own deadline, some seconds before Lambda's. */
function createLambdaEntry(hosted: HostedHandle) {
  trapRejections(hosted.log);
  const enter = createHttpEntry(hosted);
  return (event: HttpEvent, context: Context): Promise<RelayResponse> =>
    enter(() => hostRequest(event, hosted.clock.now() + context.getRemainingTimeInMillis()));
}

async function wholeText(body: string | AsyncIterable<string>): Promise<string> {
  if (typeof body === 'string') return body;
  let text = '';
  for await (const piece of body) text += piece;
  return text;
}

// Logs unhandled promise rejections instead of ending the process. A reset of the runtime's connection causes
// such a rejection inside AWS's client, and the invocation still has to settle.

/** Called once per process, at start. */
export function trapRejections(log: Log): void {
  process.on('unhandledRejection', (reason) => {
    // The relay broke the connection itself, and has logged it.
    if (!(reason instanceof AnswerCut)) log.fault('process', reason);
  });
}

// Writes an answer to the connection of Lambda's runtime, and breaks that connection where the answer is cut. Must never
// end a connection whose answer is not whole: Lambda calls such an answer complete, also with error trailers.

/** What is used of the request to the Runtime API. */
interface RuntimeStream {
  readonly destroyed: boolean;
  write(text: Text, done?: () => void): boolean;
  end(): void;
  destroy(error?: Error): void;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}

/** UTF-8 where it comes from another thread. */
type Text = string | Uint8Array;

/** An answer of the relay as a host has it. */
export type HostAnswer = Omit<RelayResponse, 'body'> & { body: Text | AsyncIterable<Text> };

type Body = Pick<HostAnswer, 'body' | 'cut' | 'closes' | 'endsHere'>;

export const isWhole = (body: HostAnswer['body']): body is Text =>
  typeof body === 'string' || body instanceof Uint8Array;

/**
 * Resolves when the runtime has everything or the connection is broken, which AWS's client reports itself. One text is on
 * its way at a time, so the source knows what was taken. It is returned early when the connection closes.
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
  // Broken while the answer was waited for: it says nothing more.
  if (outcome === 'broken' || stream.destroyed) return;
  if (outcome === 'open') {
    // Status and headers leave with the first write, also with one of nothing.
    stream.write(wholeText);
    stream.end();
  }
  await Promise.race([finished, closed]);
}

/**
 * A connection that is not broken before the runtime has status and headers. Without them it has no answer that it could
 * break, and whoever waits for one gets nothing at all. `breakOff` resolves when it is broken.
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

/** Whether the body came to its end, and the stream was ended with its last text. */
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
      // The read of the upstream that brought this text may bring the end, too: both leave in one write.
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

/** Everything that is ready to run has run then. */
const waitForTick = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });
