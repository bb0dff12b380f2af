import { parseRequest } from '../parse-request.ts';
import { ChatRequest } from '../../wire/chat-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { chatRoute } from './route.ts';
import { chatJsonRenderer, chatStreamRenderer } from './render.ts';

/** Chat Completions: what a client sends is the canonical call. */
export const chatEndpoint: Endpoint = {
  ...chatRoute,
  read(body) {
    const request = parseRequest(ChatRequest, body);
    const includeUsage = request.stream_options?.include_usage === true;
    return {
      request,
      renderer: (identity) =>
        request.stream === true ? chatStreamRenderer(identity, includeUsage) : chatJsonRenderer(),
    };
  },
};
