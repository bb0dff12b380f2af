/** Messages, as Claude Code and Anthropic's SDKs speak it. */
import { renderEventFrame } from '../../stream/sse.ts';
import {
  bearer,
  jsonAnswer,
  createKeptForAnswer,
  streamedAnswer,
  type Endpoint,
  type EndpointRequest,
  type KeyHeader,
  type Renderer,
} from '../endpoint.ts';
import { countingRoutes, endpointRoutes } from '../routes.ts';
import { MessageFold, MessagesAnswer, type MessagesEvent } from './answer-events.ts';
import { renderErrorBody, answerRefusal } from './errors.ts';
import { readBody } from './canonical.ts';
import { AnsweredRequest, CountedRequest } from './request.ts';

/** Either header of Anthropic's clients. */
const keyHeader: KeyHeader = {
  // Named is the header that the client uses.
  shown: ({ authorization, 'x-api-key': key }) =>
    authorization !== undefined && key === undefined ? bearer.shown() : 'x-api-key: sk-...',
  sent(headers) {
    const token = bearer.sent(headers) || undefined;
    const key = headers['x-api-key']?.trim() || undefined;
    if (key !== undefined && token !== undefined && key !== token)
      return {
        conflict:
          'The headers x-api-key and Authorization hold two different keys. Send one of them, or the same key in both.',
      };
    return key ?? token;
  },
};

export const messagesEndpoint: Endpoint = {
  ...endpointRoutes.messages,
  keyHeader,
  answerHeaders: (requestId) => ({ 'request-id': requestId }),
  refused: answerRefusal,
  read: (body, headers) => readMessages(AnsweredRequest, body, headers),
  counting: {
    path: countingRoutes.messages.path,
    read: (body, headers) => readMessages(CountedRequest, body, headers),
    answer: (tokens) => ({ input_tokens: tokens }),
  },
};

function readMessages(...asked: Parameters<typeof readBody>): EndpointRequest {
  const { names, ...read } = readBody(...asked);
  const [, body] = asked;
  const isStreamed = (body as { stream?: unknown }).stream === true;
  return {
    ...read,
    renderer: (identity, facts) => {
      const answer = new MessagesAnswer(identity, facts, { thinks: read.keepsState === true, names });
      return isStreamed
        ? streamRenderer(answer, identity.requestId)
        : createJsonRenderer(answer, identity.requestId);
    },
  };
}

const frame = (event: MessagesEvent): string => renderEventFrame(event.type, JSON.stringify(event));

const renderFailure = (requestId: string, ...[error, facts]: Parameters<Renderer['failed']>): string =>
  JSON.stringify(renderErrorBody(error, requestId, facts?.isOverloaded ? 529 : undefined, facts?.details));

function streamRenderer(answer: MessagesAnswer, requestId: string): Renderer {
  return {
    ...streamedAnswer,
    push: (chunk) => answer.push(chunk).map(frame),
    end: () => answer.end().map(frame),
    /** Clients give up after minutes without an event; a comment is none. */
    idle: () => [...answer.start(), { type: 'ping' }].map(frame).join(''),
    failed: (...error) => renderEventFrame('error', renderFailure(requestId, ...error)),
  };
}

function createJsonRenderer(answer: MessagesAnswer, requestId: string): Renderer {
  const fold = new MessageFold(createKeptForAnswer());
  const add = (events: MessagesEvent[]): void => events.forEach((event) => fold.push(event));
  return {
    ...jsonAnswer,
    push(chunk) {
      add(answer.push(chunk));
      return [];
    },
    end() {
      add(answer.end());
      return [JSON.stringify(fold.whole())];
    },
    failed: (...error) => renderFailure(requestId, ...error),
  };
}
