/** What a vendors' dialect is: the canonical call as a request body, and the events of the answer as canonical chunks. */
import type { Machine } from '../stream/machine.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import type { AnswerIdentity, ChatChunk, ChatUsage } from '../wire/chat-response.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { UpstreamEvent } from './body-events.ts';

export interface Dialect {
  /** Appended to a channel's base address, such as `/chat/completions`. */
  path: string;
  /** The canonical call as one channel is to be sent it. The call stays as it is. */
  body(request: ChatRequest, settings: RequestSettings): JsonRecord;
  /** Reads one answer. */
  Reader: new (identity: AnswerIdentity) => AnswerReader;
  /**
   * The error in the body of an answer that is not a 2xx, with `message`, and where there are any `code` and `param`;
   * undefined: the body holds none, so what answered is not the API.
   */
  error(body: unknown): JsonRecord | undefined;
}

/** Throws an UpstreamFailure for an answer that is none. What it says of itself is valid at any time. */
export interface AnswerReader extends Machine<UpstreamEvent, ChatChunk> {
  /** The upstream marked the end: nothing after it counts. */
  readonly done: boolean;
  /** How many of the answer's choices are finished. */
  readonly finishedChoices: number;
  /** The usage that the upstream reported so far. */
  readonly usage: ChatUsage | undefined;
  /** A count of that usage was impossible and was clamped. */
  readonly usageClamped: boolean;
}

/** The fields in which Chat Completions takes a limit on output tokens. */
export const limitFields = ['max_tokens', 'max_completion_tokens'] as const;
export type LimitField = (typeof limitFields)[number];

/** How one channel wants to be asked. */
export interface RequestSettings {
  /** The upstream's name of the model. */
  model: string;
  /** false: the upstream is asked for one JSON answer. */
  stream: boolean;
  /** false: a stream is not asked for its usage. */
  includeUsage: boolean;
  /** Put over what the client sent. */
  set: JsonRecord;
  /** Fields that the upstream must not see. */
  drop: readonly string[];
  /** The most output tokens that a client may ask of this upstream. */
  maxOutputTokens?: number | undefined;
  /** What the balance covers: sent as a limit even where the client set none. */
  outputTokensLimit?: number | undefined;
  /** The field in which a limit is sent that the client did not set; one that it set keeps its field. */
  limitField: string;
  /** Fields that change the price, and tools that run there, which this upstream may see all the same. */
  allow: readonly string[];
}
