import type { AnswerIdentity } from '../wire/chat-response.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import type { Renderer } from './renderer.ts';

/** Where clients reach an endpoint. */
export interface EndpointRoute {
  /** In logs and in the ledger. */
  name: string;
  method: 'POST';
  /** From the root of the host. */
  path: string;
}

/** What differs between the relay's endpoints: how a request reads, and how its answer is written. */
export interface Endpoint extends EndpointRoute {
  /** Throws InvalidRequest. */
  read(body: unknown): EndpointRequest;
}

export interface EndpointRequest {
  request: ChatRequest;
  /** A limit on output tokens that came in another dialect: sent in the field that the channel takes limits in. */
  outputTokensMax?: number | undefined;
  /** Declared tools that no chat upstream can have, for the log. */
  droppedTools?: number | undefined;
  /** `now`: Unix seconds, for times that are set when the answer ends. */
  renderer(identity: AnswerIdentity, now: () => number): Renderer;
}
