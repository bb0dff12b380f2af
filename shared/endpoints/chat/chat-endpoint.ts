import { parseRequest } from '../parse-request.ts';
import { ChatRequest } from '../../wire/chat-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { ChatJsonRenderer, ChatStreamRenderer } from './render.ts';

/** POST /v1/chat/completions. */
export const chatEndpoint: Endpoint = {
  route: 'chat',
  read(body) {
    const request = parseRequest(ChatRequest, body);
    const includeUsage = request.stream_options?.include_usage === true;
    return {
      request,
      renderer: (identity) =>
        request.stream === true ? new ChatStreamRenderer(identity, includeUsage) : new ChatJsonRenderer(),
    };
  },
};
