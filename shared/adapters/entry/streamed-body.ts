/**
 * Writes an answer to the connection of Lambda's runtime, and breaks that connection where the answer is cut. Must never
 * end a connection whose answer is not whole: Lambda calls such an answer complete, also with error trailers.
 */
import { AnswerCut, type RelayResponse } from '../../relay/http/http.ts';

/** What is used of the request to the Runtime API. */
export interface RuntimeStream {
  readonly destroyed: boolean;
  write(text: string, done?: () => void): boolean;
  end(): void;
  destroy(error?: Error): void;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}

type Body = Pick<RelayResponse, 'body' | 'cut' | 'closes' | 'endsHere'>;

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
  const connection = breakable(stream);
  void cut?.then((error) => connection.breakOff(error));
  const closed = new Promise<void>((resolve) => void stream.once('close', resolve));
  closes?.(closed);
  const finished = new Promise<void>((resolve) => void stream.once('finish', resolve));
  const rest = typeof body.body === 'string' ? body.body : '';
  const left =
    typeof body.body === 'string'
      ? 'open'
      : await writeTexts(connection, { ...body, body: body.body }, onFault);
  // Broken while the answer was waited for: it says nothing more.
  if (left === 'broken' || stream.destroyed) return;
  if (left === 'open') {
    // Status and headers leave with the first write, also with one of nothing.
    stream.write(rest);
    stream.end();
  }
  await Promise.race([finished, closed]);
}

interface Breakable extends RuntimeStream {
  /** Resolves when it is broken. */
  breakOff(error: Error): Promise<void>;
}

/**
 * A connection that is not broken before the runtime has status and headers. Without them it has no answer that it could
 * break, and whoever waits for one gets nothing at all.
 */
function breakable(stream: RuntimeStream): Breakable {
  let hasHead = false;
  let broken: Promise<void> | undefined;
  const breakOff = async (error: Error): Promise<void> => {
    if (!hasHead && !stream.destroyed) await new Promise<void>((resolve) => void stream.write('', resolve));
    stream.destroy(error);
  };
  return {
    get destroyed() {
      return stream.destroyed;
    },
    write(text, done) {
      hasHead = true;
      return stream.write(text, done);
    },
    end: () => stream.end(),
    destroy: (error) => stream.destroy(error),
    once: (event, listener) => stream.once(event, listener),
    breakOff: (error) => (broken ??= breakOff(error)),
  };
}

/** Whether the body came to its end, and the stream was ended with its last text. */
async function writeTexts(
  stream: Breakable,
  { body, endsHere }: Body & { body: AsyncIterable<string> },
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
      await endOfTick();
      if (!open) return 'broken';
      ended = endsHere?.() ?? false;
      await new Promise<void>((resolve) => {
        onTaken = resolve;
        stream.write(value, resolve);
        if (ended) stream.end();
      });
    }
  } catch (error) {
    if (!(error instanceof AnswerCut)) onFault(error);
    await stream.breakOff(new AnswerCut());
    return 'broken';
  }
}

/** Everything that is ready to run has run then. */
const endOfTick = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });
