import { checkLogprobs, parseRequest } from '../parse-request.ts';
import { ChatRequest, splitKnown } from '../../wire/chat-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { chatRoute } from './route.ts';
import { asksForFunctionCall, withoutLegacy } from './legacy-request.ts';
import { chatJsonRenderer, chatStreamRenderer, type ChatAnswerForm } from './render.ts';

/** Chat Completions. The client's request is the canonical call, except for OpenAI's older form of function calls. */
export const chatEndpoint: Endpoint = {
  ...chatRoute,
  read(body, headers) {
    const { request, unknown } = splitKnown(parseRequest(ChatRequest, body));
    checkLogprobs(request, [request.max_tokens, request.max_completion_tokens]);
    const form: ChatAnswerForm = {
      usage: usagePlace(request, headers['x-stainless-lang']),
      legacy: asksForFunctionCall(request),
    };
    return {
      call: { form: chatRoute.name, request: withoutLegacy(request), unknown },
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
