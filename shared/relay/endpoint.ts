import type { AnswerIdentity } from '../convert/upstream-to-chat.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import type { Renderer } from './render.ts';
import type { RouteName } from './routes.ts';

/** What differs between the relay's endpoints: how a request reads, and how its answer is written. */
export interface Endpoint {
  route: RouteName;
  /** Throws InvalidRequest. */
  read(body: unknown): EndpointRequest;
}

export interface EndpointRequest {
  request: ChatRequest;
  renderer(identity: AnswerIdentity): Renderer;
}
