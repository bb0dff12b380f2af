import { ChunksToCompletion } from './fold.ts';
import { legacyChunk, legacyCompletion } from './legacy-answer.ts';
import { shownUsage } from './shown-usage.ts';
import { commentFrame, dataFrame } from '../../stream/sse-encode.ts';
import { isUrlCitation, type ChatChunk, type AnswerIdentity } from '../../wire/chat-response.ts';
import type { AnswerFacts } from '../endpoint.ts';
import { jsonAnswer, streamedAnswer, type Renderer } from '../renderer.ts';

/** What the request says about the form of its answer. */
export interface ChatAnswerForm {
  /** Where a stream has its usage: in a chunk of its own, on the finish chunk, or nowhere. */
  usage: 'chunk' | 'finish' | 'none';
  /** The calls are sent in OpenAI's older form. */
  legacy: boolean;
}

type RenderedIdentity = Pick<AnswerIdentity, 'requestId' | 'created'> & Required<Pick<AnswerFacts, 'model'>>;

/** Chat Completions, `stream: true`: a data frame per chunk, then `[DONE]`. */
export function chatStreamRenderer(
  { requestId, created, model }: RenderedIdentity,
  form: ChatAnswerForm,
): Renderer {
  let held: ChatChunk | undefined;
  const frames = (...chunks: (ChatChunk | undefined)[]): string[] =>
    chunks.flatMap((chunk) => (chunk ? dataFrame(JSON.stringify(shown(chunk, form))) : []));
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
        const { quota } = chunk;
        const usage = shownUsage(chunk.usage);
        const priced = finish && quota !== undefined ? { ...finish, quota } : finish;
        if (priced && form.usage === 'none') return frames(priced);
        return form.usage === 'chunk' || !priced
          ? frames(priced, { ...chunk, usage })
          : frames({ ...priced, usage });
      }
      if (!chunk.choices.some((choice) => choice.finish_reason !== null)) return frames(finish, chunk);
      held = chunk;
      return frames(finish);
    },
    end: () => [...frames(held), dataFrame('[DONE]')],
    idle: () => commentFrame('ping'),
    /** Has no `choices`, because clients overlook an error beside them. */
    failed(error) {
      const id = `chatcmpl-${requestId}`;
      const chunk = { id, object: 'chat.completion.chunk', created, model: model(), error };
      return dataFrame(JSON.stringify(chunk)) + dataFrame('[DONE]');
    },
  };
}

/** Chat Completions, `stream: false`: one JSON object at the end. */
export function chatJsonRenderer({ legacy }: ChatAnswerForm): Renderer {
  const fold = new ChunksToCompletion();
  return {
    ...jsonAnswer,
    push(chunk) {
      fold.push(chunk);
      return [];
    },
    end() {
      const folded = fold.completion();
      const completion = { ...folded, usage: shownUsage(folded.usage) };
      return [JSON.stringify(legacy ? legacyCompletion(completion) : completion)];
    },
  };
}

/** The chunk as Chat Completions has it: phases and annotations of files are words of Responses. */
function shown(chunk: ChatChunk, { legacy }: ChatAnswerForm): object {
  const isPlain = chunk.choices.every(({ delta }) => delta.phase === undefined && !delta.annotations);
  const plain = isPlain ? chunk : plainChunk(chunk);
  return legacy ? legacyChunk(plain) : plain;
}

const plainChunk = (chunk: ChatChunk): ChatChunk => ({
  ...chunk,
  choices: chunk.choices.map((choice) => {
    const { phase: _phase, annotations, ...delta } = choice.delta;
    const citations = annotations?.filter(isUrlCitation) ?? [];
    return { ...choice, delta: { ...delta, ...(citations.length > 0 && { annotations: citations }) } };
  }),
});
