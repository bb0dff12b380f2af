/** The interface of a dialect: from canonical call to request body, from answer to canonical chunks. */
import type { Machine } from '../stream/machine.ts';
import type { ChatRequest } from '../wire/chat-request.ts';
import type { AnswerIdentity, ChatChunk, ChatUsage } from '../wire/chat-response.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { UpstreamEvent } from './body-events.ts';

export interface Dialect {
  /** Appended to a channel's base address, such as `/chat/completions`. */
  path: string;
  /** Converts the canonical call to the request body for one channel. Does not change the call. */
  body(request: ChatRequest, settings: RequestSettings): JsonRecord;
  /** Reads one answer. */
  Reader: new (identity: AnswerIdentity) => AnswerReader;
  /**
   * The error in the body of an answer that is not a 2xx: `message`, and `code` and `param` if there are any.
   * Undefined: the body holds no error, so the answer is not from the API.
   */
  error(body: unknown): JsonRecord | undefined;
}

/** Throws an UpstreamFailure for an unusable answer. Its properties are valid at any time. */
export interface AnswerReader extends Machine<UpstreamEvent, ChatChunk> {
  /** The upstream marked the end. Later events are ignored. */
  readonly done: boolean;
  /** The number of finished choices of the answer. */
  readonly finishedChoices: number;
  /** The usage that the upstream reported so far. */
  readonly usage: ChatUsage | undefined;
  /** true: a count of that usage was impossible and was clamped. */
  readonly usageClamped: boolean;
}

/** The fields of Chat Completions for a limit on output tokens. */
export const limitFields = ['max_tokens', 'max_completion_tokens'] as const;
export type LimitField = (typeof limitFields)[number];

/** The settings of one channel for its request bodies. */
export interface RequestSettings {
  /** The upstream's name of the model. */
  model: string;
  /** false: the upstream is asked for one JSON answer. */
  stream: boolean;
  /** false: the usage of a stream is not requested. */
  includeUsage: boolean;
  /** Overrides the client's fields. */
  set: JsonRecord;
  /** Fields that are not sent to the upstream. */
  drop: readonly string[];
  /** The channel's maximum of output tokens. Higher limits are lowered to it. */
  maxOutputTokens?: number | undefined;
  /**
   * The limit that the balance covers, or a limit from outside `request`. Sent even if `request` has none.
   */
  outputTokensLimit?: number | undefined;
  /** The field for a limit that the client did not set. A limit that the client set keeps its field. */
  limitField: string;
  /** Fields that change the price, and tools that run at the upstream, which are sent nevertheless. */
  allow: readonly string[];
}
