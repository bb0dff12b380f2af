/**
 * Writes an answer to the connection of Lambda's runtime, and breaks that connection where the answer is cut. Must never
 * end a connection whose answer is not whole: Lambda calls such an answer complete, also with error trailers.
 */
import { AnswerCut, type RelayResponse } from '../../relay/http/http.ts';

/** What is used of the runtime's stream: a request to the Runtime API, of which more than a `Writable` has is hidden. */
export interface RuntimeStream {
  write(text: string, done?: () => void): boolean;
  end(): void;
  destroy(error?: Error): void;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}

/**
 * Resolves when the runtime has everything, or when the connection is broken: the runtime's client then reports that
 * itself. One text is on its way at a time, so that a slow connection holds back the source, and the source knows what
 * was taken. When the connection closes, the source is returned early, without waiting for a pending read.
 */
export async function writeBody(
  stream: RuntimeStream,
  { body, cut }: Pick<RelayResponse, 'body' | 'cut'>,
  onFault: (error: unknown) => void,
): Promise<void> {
  void cut?.then((error) => stream.destroy(error));
  if (typeof body !== 'string') {
    if (!(await writeTexts(stream, body, onFault))) return;
  } else if (body !== '') {
    stream.write(body);
  }
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
  let onTaken = (): void => undefined;
  stream.once('close', () => {
    open = false;
    onTaken();
    void texts.return?.();
  });
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
    const isCut = error instanceof AnswerCut;
    if (!isCut) onFault(error);
    stream.destroy(isCut ? error : new AnswerCut());
    return false;
  }
}
