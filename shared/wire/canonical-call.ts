import type { ChatMessage, ChatRequest, ChatTool } from './chat-request.ts';
import type { JsonRecord } from './json-record.ts';

/** A call as every upstream dialect reads it, whichever endpoint it came through. */
export interface CanonicalCall {
  /** The name of the endpoint in whose form the client wrote the call. */
  readonly form: string;
  /** The known fields, in the form of Chat Completions. */
  readonly request: ChatRequest;
  /**
   * Fields of the client's form that the relay does not know. They go up unchanged to an upstream of the same
   * form and are dropped for others.
   */
  readonly unknown: JsonRecord;
  /**
   * Fields of the client's form that the endpoint serves whatever the upstream speaks. They go up to an upstream of the
   * same form, and no other one misses them. Absent: none.
   */
  readonly served?: JsonRecord;
  /**
   * How the conversation began, where the request alone does not say it: each turn of a stored conversation may have
   * another system message. Absent: with the messages of the request.
   */
  readonly beginning?: readonly ChatMessage[] | undefined;
  /** Absent: the client's form has none, or the call. */
  readonly items?: CarriedItems | undefined;
}

/** Parts of a conversation in the client's form that no message can hold. They go up in their place to an upstream of the same form. */
export interface CarriedItems {
  /** By the message that they follow. Undefined: they stand before all messages. */
  readonly after: ReadonlyMap<ChatMessage | undefined, readonly JsonRecord[]>;
  /** By the message that an item is elsewhere. */
  readonly instead: ReadonlyMap<ChatMessage, JsonRecord>;
  /** The tools of the request that an item declares, with their item. Elsewhere they are as the others. */
  readonly tools: ReadonlyMap<ChatTool, JsonRecord>;
  /** The effort that the request asks for besides its items. Elsewhere the effort of the last item counts. */
  readonly effort: string | undefined;
  /** What upstreams of other forms miss, for the header that says so. */
  readonly lost: readonly string[];
}
