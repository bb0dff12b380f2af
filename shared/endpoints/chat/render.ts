import { ChunksToCompletion } from './fold.ts';
import { commentFrame, dataFrame } from '../../stream/sse-encode.ts';
import type { ChatChunk, AnswerIdentity } from '../../wire/chat-response.ts';
import { jsonAnswer, streamedAnswer, type Renderer } from '../renderer.ts';

/** Chat Completions, `stream: true`: a data frame per chunk, then `[DONE]`. */
export function chatStreamRenderer(identity: AnswerIdentity, includeUsage: boolean): Renderer {
  const { requestId, created, model } = identity;
  let held: ChatChunk | undefined;
  return {
    ...streamedAnswer,
    /**
     * Holds the last finish chunk until the usage arrives: it carries the usage unless the client asked for a
     * separate usage chunk.
     */
    push(chunk) {
      const finish = held;
      held = undefined;
      if (chunk.usage) {
        const { usage, quota } = chunk;
        const priced = finish && quota !== undefined ? { ...finish, quota } : finish;
        return includeUsage || !priced ? frames(priced, chunk) : frames({ ...priced, usage });
      }
      if (!chunk.choices.some((choice) => choice.finish_reason !== null)) return frames(finish, chunk);
      held = chunk;
      return frames(finish);
    },
    end: () => [...frames(held), dataFrame('[DONE]')],
    idle: () => commentFrame('ping'),
    /** Has no `choices`, because clients overlook an error beside them. */
    failed(error) {
      const chunk = { id: `chatcmpl-${requestId}`, object: 'chat.completion.chunk', created, model, error };
      return dataFrame(JSON.stringify(chunk)) + dataFrame('[DONE]');
    },
  };
}

/** Chat Completions, `stream: false`: one JSON object at the end. */
export function chatJsonRenderer(): Renderer {
  const fold = new ChunksToCompletion();
  return {
    ...jsonAnswer,
    push(chunk) {
      fold.push(chunk);
      return [];
    },
    end: () => [JSON.stringify(fold.completion())],
  };
}

const frames = (...chunks: (ChatChunk | undefined)[]): string[] =>
  chunks.flatMap((chunk) => (chunk ? dataFrame(JSON.stringify(chunk)) : []));
