import { ChatToResponses } from './answer/answer-events.ts';
import { echoOf } from './echo.ts';
import { checkLogprobs, parseRequest } from '../parse-request.ts';
import { startedResponse } from './answer/objects.ts';
import { contentsOf, responsesToChat } from './read.ts';
import { keepsState, servedFields, summaryKind, unknownFields, wantsLogprobs } from './read-fields.ts';
import { ResponsesRequest } from './responses-request.ts';
import type { Endpoint } from '../endpoint.ts';
import { responsesRoute } from './route.ts';
import { responsesJsonRenderer, responsesStreamRenderer } from './render.ts';

/** Responses. A request is converted to the canonical call; its answer is made of the canonical stream. */
export const responsesEndpoint: Endpoint = {
  ...responsesRoute,
  storing: async () => (await import('./stored-input.ts')).storedReading,
  read(body, _headers, storage) {
    const request = parseRequest(ResponsesRequest, body);
    const { chat, beginning, declared, sealed, placed, ...converted } = responsesToChat(request, storage);
    const { outputTokensMax, droppedTools, foreignLeftOut } = converted;
    checkLogprobs(chat, [outputTokensMax]);
    return {
      call: {
        form: responsesRoute.name,
        request: chat,
        unknown: unknownFields(request),
        served: servedFields(request),
        beginning,
        items: converted.items,
      },
      contents: () => contentsOf({ placed }),
      storage: converted.storage,
      unread: converted.unread,
      outputTokensMax,
      droppedTools,
      sealed,
      foreignLeftOut,
      keepsState: keepsState(request),
      renderer: (identity, facts) => {
        const asked = {
          started: startedResponse(identity),
          echo: echoOf.bind(undefined, request, chat),
          declared,
          summary: summaryKind(request) !== undefined,
          keepsState: keepsState(request),
          logprobs: wantsLogprobs(request),
        };
        const events = new ChatToResponses(asked, facts);
        return request.stream === true ? responsesStreamRenderer(events) : responsesJsonRenderer(events);
      },
    };
  },
};
