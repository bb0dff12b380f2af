import { shownCounts } from '../../wire/input-parts.ts';
import { checkLogprobs, parseRequest } from '../parse-request.ts';
import { ChatRequest, splitKnown } from '../../wire/canonical-call.ts';
import { type Endpoint, type AnswerFacts, jsonAnswer, streamedAnswer, type Renderer } from '../endpoint.ts';
import { endpointRoutes } from '../routes.ts';
import { asksForFunctionCall, withoutLegacy, legacyChunk, legacyCompletion } from './legacy.ts';
import { ChunksToCompletion } from './fold.ts';
import { commentFrame, dataFrame } from '../../stream/sse.ts';
import {
  isUrlCitation,
  type ChatChunk,
  type AnswerIdentity,
  type ChatUsage,
} from '../../wire/chat-response.ts';

/** Chat Completions. The client's request is the canonical call, except for OpenAI's older form of function calls. */
export const chatEndpoint: Endpoint = {
  ...endpointRoutes.chat,
  read(body, headers) {
    const { request, unknown } = splitKnown(parseRequest(ChatRequest, body));
    checkLogprobs(request, [request.max_tokens, request.max_completion_tokens]);
    const form: ChatAnswerForm = {
      usage: usagePlace(request, headers['x-stainless-lang']),
      legacy: asksForFunctionCall(request),
    };
    return {
      call: { form: endpointRoutes.chat.name, request: withoutLegacy(request), unknown },
      renderer: (identity, { model = () => identity.model }) =>
        request.stream === true ? chatStreamRenderer({ ...identity, model }, form) : chatJsonRenderer(form),
    };
  },
};

/** OpenAI's client for Java ends at the first chunk with usage, and misses the finish reason beside it. */
function usagePlace(request: ChatRequest, clientLanguage: string | undefined): ChatAnswerForm['usage'] {
  if (request.stream_options?.include_usage === true) return 'chunk';
  return clientLanguage === 'java' ? 'none' : 'finish';
}

/** What the request says about the form of its answer. */
interface ChatAnswerForm {
  /** Where a stream has its usage: in a chunk of its own, on the finish chunk, or nowhere. */
  usage: 'chunk' | 'finish' | 'none';
  /** The calls are sent in OpenAI's older form. */
  legacy: boolean;
}

type RenderedIdentity = Pick<AnswerIdentity, 'requestId' | 'created'> & Required<Pick<AnswerFacts, 'model'>>;

/** Chat Completions, `stream: true`: a data frame per chunk, then `[DONE]`. */
function chatStreamRenderer({ requestId, created, model }: RenderedIdentity, form: ChatAnswerForm): Renderer {
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
function chatJsonRenderer({ legacy }: ChatAnswerForm): Renderer {
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

/** Usage with every detail that clients read, zeros included. */
const shownUsage = (usage: ChatUsage): ChatUsage => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_tokens_details: shownCounts(usage.prompt_tokens_details),
  completion_tokens_details: {
    reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  },
});
