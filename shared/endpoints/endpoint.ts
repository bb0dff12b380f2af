import type { AnswerIdentity } from '../wire/chat-response.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import type { Renderer } from './renderer.ts';

/** The HTTP route of an endpoint. */
export interface EndpointRoute {
  /** The name in logs and in the ledger. */
  name: string;
  method: 'POST';
  /** The path from the root of the host. */
  path: string;
}

/** What differs between endpoints: how a request is read and how its answer is rendered. */
export interface Endpoint extends EndpointRoute {
  /** Throws InvalidRequest. */
  read(body: unknown): EndpointRequest;
}

export interface EndpointRequest {
  request: ChatRequest;
  /** A limit on output tokens that is no field of `request`. It is sent in the channel's limit field. */
  outputTokensMax?: number | undefined;
  /** The number of declared tools that chat upstreams do not support, for the log. */
  droppedTools?: number | undefined;
  /** `now` returns Unix seconds, for times that are set when the answer ends. */
  renderer(identity: AnswerIdentity, now: () => number): Renderer;
}
