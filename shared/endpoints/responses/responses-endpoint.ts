import { ChatToResponses } from './answer-events.ts';
import { parseRequest } from '../parse-request.ts';
import { startedResponse } from './objects.ts';
import { responsesToChat } from './read.ts';
import { ResponsesRequest } from './responses-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { responsesRoute } from './route.ts';
import { responsesJsonRenderer, responsesStreamRenderer } from './render.ts';

/** Responses. A request is converted to the canonical call; its answer is made of the canonical stream. */
export const responsesEndpoint: Endpoint = {
  ...responsesRoute,
  read(body) {
    const request = parseRequest(ResponsesRequest, body);
    const { chat, outputTokensMax, declared, droppedTools } = responsesToChat(request);
    return {
      call: { form: responsesRoute.name, request: chat, unknown: {} },
      outputTokensMax,
      droppedTools,
      renderer: (identity, { now }) => {
        const events = new ChatToResponses(startedResponse(identity, request), declared, now);
        return request.stream === true ? responsesStreamRenderer(events) : responsesJsonRenderer(events);
      },
    };
  },
};
