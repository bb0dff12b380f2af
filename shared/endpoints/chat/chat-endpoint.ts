import { parseRequest } from '../parse-request.ts';
import { ChatRequest, splitKnown } from '../../wire/chat-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { chatRoute } from './route.ts';
import { chatJsonRenderer, chatStreamRenderer } from './render.ts';

/** Chat Completions. The client's request is the canonical call and needs no conversion. */
export const chatEndpoint: Endpoint = {
  ...chatRoute,
  read(body) {
    const { request, unknown } = splitKnown(parseRequest(ChatRequest, body));
    const includeUsage = request.stream_options?.include_usage === true;
    return {
      call: { form: chatRoute.name, request, unknown },
      renderer: (identity) =>
        request.stream === true ? chatStreamRenderer(identity, includeUsage) : chatJsonRenderer(),
    };
  },
};
