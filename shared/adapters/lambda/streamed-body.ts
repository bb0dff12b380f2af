/**
 * Writes an answer to the connection of Lambda's runtime, and breaks that connection where the answer is cut. Must never
 * end a connection whose answer is not whole: Lambda calls such an answer complete, also with error trailers.
 */
import { AnswerCut } from '../../relay/http/answer-cut.ts';
import type { RelayResponse } from '../../relay/http/http.ts';

/** What is used of the request to the Runtime API. */
export interface RuntimeStream {
  readonly destroyed: boolean;
  write(text: string, done?: () => void): boolean;
  end(): void;
  destroy(error?: Error): void;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}

/**
 * Resolves when the runtime has everything or the connection is broken, which AWS's client reports itself. One text is on
 * its way at a time, so the source knows what was taken. It is returned early when the connection closes.
 */
export async function writeBody(
  stream: RuntimeStream,
  { body, cut, closes }: Pick<RelayResponse, 'body' | 'cut' | 'closes'>,
  onFault: (error: unknown) => void,
): Promise<void> {
  void cut?.then((error) => stream.destroy(error));
  closes?.(new Promise((resolve) => void stream.once('close', resolve)));
  if (typeof body !== 'string') {
    if (!(await writeTexts(stream, body, onFault))) return;
  } else if (body !== '') {
    stream.write(body);
  }
  // Broken while the answer was waited for: it says nothing more.
  if (stream.destroyed) return;
  await new Promise<void>((resolve) => {
    stream.once('finish', resolve);
    stream.once('close', resolve);
    stream.end();
  });
}

/** Whether the body came to its end. */
async function writeTexts(
  stream: RuntimeStream,
  body: AsyncIterable<string>,
  onFault: (error: unknown) => void,
): Promise<boolean> {
  const texts = body[Symbol.asyncIterator]();
  let open = true;
  let onTaken: (() => void) | undefined;
  stream.once('close', () => {
    open = false;
    onTaken?.();
    void texts.return?.();
  });
  if (stream.destroyed) {
    void texts.return?.();
    return false;
  }
  try {
    for (;;) {
      const { done, value } = await texts.next();
      if (!open) return false;
      if (done) return true;
      await new Promise<void>((resolve) => {
        onTaken = resolve;
        stream.write(value, resolve);
      });
    }
  } catch (error) {
    if (!(error instanceof AnswerCut)) onFault(error);
    stream.destroy(new AnswerCut());
    return false;
  }
}
