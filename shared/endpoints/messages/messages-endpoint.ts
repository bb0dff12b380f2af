/** Messages, as Claude Code and Anthropic's SDKs speak it. */
import { renderEventFrame } from '../../stream/sse.ts';
import {
  eitherHeader,
  jsonAnswer,
  createKeptForAnswer,
  streamedAnswer,
  type Endpoint,
  type EndpointRequest,
  type Renderer,
} from '../endpoint.ts';
import { countingRoutes, endpointRoutes } from '../routes.ts';
import { MessageFold, MessagesAnswer, type MessagesEvent } from './answer-events.ts';
import { renderBudgetHeaders } from './budget.ts';
import { renderErrorBody, answerRefusal } from './errors.ts';
import { readBody } from './canonical.ts';
import { AnsweredRequest, CountedRequest } from './request.ts';

export const messagesEndpoint: Endpoint = {
  ...endpointRoutes.messages,
  keyHeader: eitherHeader,
  answerHeaders: (requestId, budget) => ({ 'request-id': requestId, ...renderBudgetHeaders(budget) }),
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
