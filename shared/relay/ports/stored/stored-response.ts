/** What is kept of a response. Content: it must be in no log and in no other table. */
import type { JsonRecord } from '../../../wire/json-record.ts';

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'incomplete';

/** A stored response without its content. */
export interface ResponseHead {
  /** Whose it is. Nobody else can name it: the account is part of its key. */
  account: string;
  /** As clients have it: `resp-...`. */
  id: string;
  status: ResponseStatus;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds. From then on it is read by nobody, removed or not. */
  expires: number;
  /** The responses that it goes on from, the nearest first, at most `ancestorsMax`: further ones are those of the last. */
  ancestors: readonly string[];
  /** Its place in its conversation, from 1. */
  turn: number;
  /** UTF-16 code units of the conversation as JSON, this turn included. */
  conversationLength: number;
  /** Undefined: it was answered within its request. */
  background?: BackgroundState | undefined;
}

/** How many responses a head names, so that a conversation of 1,000 turns is found in some 30 reads. */
export const ancestorsMax = 32;

/** Where a background response stands. */
export interface BackgroundState {
  /** Its events are kept: it was created with `stream: true`. */
  streamed: boolean;
  /** The run that has claimed it. Undefined: none has. */
  run?: string | undefined;
  /**
   * Unix seconds. A run that has not prolonged this is dead, and what is queued longer never begins: whoever reads the
   * response then finds it failed.
   */
  until: number;
  /** The number of its events, the last included, which is made of the response. Undefined: it has not ended. */
  events?: number | undefined;
  /** Unix seconds: how long its events are kept. Undefined: it has not ended. */
  eventsUntil?: number | undefined;
}

/** The content of a stored response. */
export interface ResponseBody {
  /** The items that the request added to the conversation, each with an id. References stay references. */
  input: readonly JsonRecord[];
  /** The response as its client got it. */
  response: JsonRecord;
  /** The state of the turn, sealed, for the calls that go on from it. Undefined: it has none. */
  seal?: string | undefined;
  /** What a run needs to answer it. Undefined: it is answered, or was never a background response. */
  request?: JsonRecord | undefined;
}

export interface StoredResponse {
  head: ResponseHead;
  body: ResponseBody;
}
