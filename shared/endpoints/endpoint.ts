import { type CanonicalCall, type ChatMessage, keptToEnd } from '../wire/canonical-call.ts';
import type { JsonRecord } from '../wire/json.ts';
import { type AnswerIdentity, type ChatUsage, type ChatChunk, Kept } from '../wire/chat-response.ts';
import { type ErrorObject, InvalidRequest } from '../wire/invalid-request.ts';
import type { InputTransformation } from '../wire/turn-state.ts';
import type { Ending, Machine } from '../stream/machine.ts';

export interface EndpointRoute {
  /** The name in logs and in the ledger. */
  name: string;
  method: 'POST';
  /** The path from the root of the host. */
  path: string;
}

export interface Endpoint extends EndpointRoute {
  /** `headers`: names in lower case. Throws InvalidRequest. */
  read(
    body: unknown,
    headers: Readonly<Record<string, string | undefined>>,
    storage?: StorageAtHand,
    summaryOf?: SummaryOpener,
  ): EndpointRequest;
  /**
   * What reads a body that has words of other endpoints, loaded by the first such body. Undefined: `read` itself. Absent: its clients
   * send no such bodies.
   */
  otherForm?(body: unknown): Promise<Pick<Endpoint, 'read'> | undefined>;
  /** How many values its bodies may have, where that is more than others may. */
  bodyValuesMax?: number;
  /** Where its clients send their key. Absent: in `Authorization`, as a bearer token. */
  keyHeader?: KeyHeader;
  /** A refusal, before anything of an answer was sent. Absent: OpenAI's form. `isOverloaded`: every candidate refused for load. */
  refused?(
    refusal: { status: number; error: ErrorObject; isOverloaded: boolean },
    requestId: string,
  ): RefusedAnswer;
  /** Headers of every answer, beside the relay's. Absent: none. */
  answerHeaders?(requestId: string): Record<string, string>;
  /** How its clients ask for the tokens of an input alone. Absent: they do not. */
  counting?: Counting;
  /** How its clients ask for a summary of a conversation, to go on from. Absent: they do not. */
  compacting?: Pick<Endpoint, 'path' | 'read'>;
  /** Loaded by the first call of a key that may store. Absent: answers of this endpoint are not stored. */
  storing?: () => Promise<StoredReading>;
}

/**
 * The summary in a seal, if it is one for the account. Undefined: it is not, or it holds something else. Throws InvalidRequest for
 * more than one call may hold. `param`: the path of the seal.
 */
export type SummaryOpener = (sealed: string, param: string) => string | undefined;

/** The same body as for an answer, at another path, is answered with a number. */
export interface Counting {
  path: string;
  read: Endpoint['read'];
  answer(tokens: number): object;
}

export interface RefusedAnswer {
  status: number;
  body: object;
  headers: Record<string, string>;
}

/** The header of a key. `headers`: names in lower case. */
export interface KeyHeader {
  /** As clients are told of it, such as `x-api-key: sk-...`. */
  shown(headers: Readonly<Record<string, string | undefined>>): string;
  /** What it holds; undefined: nothing. `conflict`: why it is not clear which key is meant. */
  sent(headers: Readonly<Record<string, string | undefined>>): string | { conflict: string } | undefined;
}

const bearerScheme = 'bearer ';

/** The header that SDKs of OpenAI send. Read without a pattern: anybody can send 16 KB of blanks, over which one backtracks. */
export const bearer = {
  shown: () => 'Authorization: Bearer sk-...',
  sent: ({ authorization = '' }: Readonly<Record<string, string | undefined>>): string | undefined => {
    const text = authorization.trim();
    if (text === '') return undefined;
    const scheme = text.slice(0, bearerScheme.length).toLowerCase();
    return scheme === bearerScheme ? text.slice(bearerScheme.length).trim() : '';
  },
} satisfies KeyHeader;

/** What only the reading of bodies of keys that may store needs. */
export interface StoredReading {
  /** Undefined: the body refers to nothing that is stored. */
  references(body: unknown): StoredReferences | undefined;
  /**
   * The whole conversation: the items of stored turns, then those of the request, references replaced by their items.
   * @param stored undefined: it is not read yet, and references are left out
   */
  placed(own: readonly PlacedItem[], stored: StoredConversation | undefined): PlacedItem[];
  /** Undefined: the answer is not stored. Throws InvalidRequest. */
  asked(request: JsonRecord, items: readonly JsonRecord[]): StorageAsked | undefined;
}

/** An item with its path in the client's body. One of a stored turn has the path of what refers to it. */
export interface PlacedItem {
  item: JsonRecord;
  param: string;
  /** It comes from a stored turn: its client cannot mend it. */
  stored?: boolean;
}

/** The stored responses and items that a body refers to, by the ids that clients have. Nobody has checked them. */
export interface StoredReferences {
  /** `previous_response_id`. */
  previous: string | undefined;
  items: readonly ItemReference[];
  within: (items: readonly JsonRecord[]) => readonly ItemReference[];
}

export interface ItemReference {
  id: string;
  param: string;
  /** The response that the id names. Undefined: it is no id of the relay's. */
  response: string | undefined;
}

/** What a key that may store brings to the reading of its body. Absent: the key may not store. */
export interface StorageAtHand {
  reading: StoredReading;
  /** What the body refers to. Undefined: it is not read yet, or there is nothing. */
  stored: StoredConversation | undefined;
}

export interface StoredConversation {
  /** The turns of the conversation before this call, oldest first. */
  earlier: readonly StoredTurn[];
  /** By the id of a reference, of the body and of the turns. */
  referred: ReadonlyMap<string, ReferredItem>;
}

/** A stored response as a turn of a conversation. */
export interface StoredTurn {
  /** Of the turn that begins the conversation. Later turns do not inherit them. */
  instructions: string | undefined;
  /** The items that its request added. References stay references. */
  input: readonly JsonRecord[];
  output: readonly JsonRecord[];
  seal: string | undefined;
}

export interface ReferredItem {
  item: JsonRecord;
  /** The state of the turn whose answer it is part of, sealed. */
  seal: string | undefined;
}

export interface StorageAsked {
  /** The items that the request adds to its conversation, each with an id that ends with `suffix`. References stay references. */
  input(suffix: string): readonly JsonRecord[];
  previous: string | undefined;
  /** The call is answered at once with its id and runs by itself. */
  background: boolean;
}

export interface EndpointRequest {
  call: CanonicalCall;
  /** The items of the conversation, for the check of URLs in them. Absent: `call` has the paths of the client's body. */
  placed?: readonly PlacedItem[] | undefined;
  /** A limit on output tokens that is no field of `request`. It is sent in the channel's limit field. */
  outputTokensMax?: number | undefined;
  /** More tokens of input are refused, by a count from below. Absent: the upstream says what is too much. */
  inputTokensMax?: number | undefined;
  /** The number of declared tools that upstreams of other forms do not support, for the log. */
  droppedTools?: number | undefined;
  /** Sealed state that the client sent back, by the assistant message that it belongs to. */
  sealed?: ReadonlyMap<ChatMessage, SealedState> | undefined;
  /** A sealed item that only another provider can read was left out. */
  foreignLeftOut?: boolean | undefined;
  /** The client keeps the state of the answer, sealed, and sends it back. Absent: the relay keeps it. */
  keepsState?: boolean | undefined;
  storage?: StorageAsked | undefined;
  /**
   * What is still to be read: the call has the body's own part alone, checked as far as that can be done without the rest. Absent:
   * the call is whole.
   */
  unread?: StoredReferences | undefined;
  renderer(identity: AnswerIdentity, facts: AnswerFacts): Renderer;
}

export interface SealedState {
  text: string;
  /** The id of the item that held it; undefined: the client left it out. */
  itemId: string | undefined;
  /** The path of the text in the client's body, for errors. */
  param: string;
  /** It comes from a stored turn: one that is damaged is left out. Absent: the client sent it. */
  stored?: boolean;
}

export interface AnswerFacts {
  /** Unix seconds, for times that are set when the answer ends. */
  now: () => number;
  /** The public name of the model that answers; before its first chunk, of the one that is asked. Absent: the identity's. */
  model?: () => string;
  /** The counts of the answer so far, as they would be charged if it ended here. For clients that expect those of the input first. */
  usage: () => ChatUsage;
  /** What the answering upstream was sent; before its first chunk, that nothing was. */
  sent: () => SentFacts;
  /** The state of the turn so far, or a summary, sealed for the client; undefined: there is none, or `keepsState` is not set. */
  sealedState: (itemId: string, summary?: string) => string | undefined;
  /**
   * The number of opaque parts in the state so far. A seal that was made when there were as many is whole: what follows
   * the last opaque part is visible, and the client sends it back.
   */
  opaqueParts: () => number;
  /** Whether the answer can be read again, as far as is known now. */
  stored?: () => boolean;
  /** The stop sequence at which the answer ended. Undefined: at none, as far as is known. */
  stoppedAt?: () => string | undefined;
}

export interface SentFacts {
  /** The client's fields that were not sent. */
  dropped: readonly string[];
  /** The effort that was sent, if it is not the requested one. */
  effort?: string | undefined;
  /** What was sent instead of the tool choice, if it is not the requested one. */
  toolChoice?: string | undefined;
  /** The client's own body went up, and not the canonical call. Absent: it did not. */
  isNative?: boolean | undefined;
  /** The limit on output tokens that was sent. Null: none was. Absent: nothing is sent yet. */
  outputTokensMax?: number | null | undefined;
  /** The upstream may honestly count more than limit and input say. */
  isMultiplied?: boolean | undefined;
  /** The service tier that is charged. `default`: the standard one. Absent: neither client nor upstream named one. */
  serviceTier?: string | undefined;
  /** The one that the upstream says that it used. Absent: it says none. */
  reportedTier?: string | undefined;
  /** Stop sequences at which the relay ends the text, whether or not they were sent. */
  stop?: readonly string[] | undefined;
  /** The one at which the upstream says that it ended. Absent: it says none. */
  stoppedAt?: string | undefined;
  /** What the upstream did to the input, with the ids that the client has. Absent: it does not say. */
  inputTransformations?: readonly InputTransformation[] | undefined;
}

/**
 * Converts the canonical stream to the text of one endpoint in one mode. The first text commits status 200.
 * The renderer of a JSON answer returns its only text at the end.
 */
export interface Renderer extends Machine<ChatChunk, string, Ending<string>> {
  readonly contentType: string;
  /** After this time without output, status 200 and a heartbeat are sent, so that proxies do not time out. */
  readonly commitAfterMs: number;
  /** The text of a heartbeat, sent after each further `idleMs` without output. */
  idle(): string;
  /** The answer is sent at its end, so it can begin again with a fresh renderer. Absent: it is sent as it comes. */
  readonly sentWhole?: true;
  /** The status and code of a request that the upstream finds too large, for clients that act on them. Absent: its own. */
  readonly tooLarge?: { status: number; code: string };
  /** The last text of an answer that fails after its status was sent. `isOverloaded`: every candidate refused for load. */
  failed(error: ErrorObject, isOverloaded?: boolean): string;
  /** What `end` would return before its last text, which it then leaves out. Absent: `end` alone. */
  close?(): string[];
  /**
   * The whole answer as an object, as its last text has it. Valid from `close` on; with an error, of an answer that fails
   * with it, at any time. Absent: answers of this endpoint are not objects that are kept.
   */
  whole?(error?: ErrorObject): JsonRecord;
  /** The answer as an object, before anything of it is there. Absent: as of `whole`. */
  queued?(): JsonRecord;
}

/** For one answer that is kept. The caller asked for it, so no upstream is at fault. */
export const keptForAnswer = (): Kept =>
  new Kept(
    keptToEnd.bytesMax,
    () =>
      new InvalidRequest(
        'answer_too_large',
        null,
        'The answer is longer than the relay can hold. Ask for fewer choices, log probabilities or tokens; an answer of Chat Completions with stream: true may be longer.',
      ),
  );

/** Time between two heartbeats. The edge closes a connection after 120 s without a byte, proxies of others after 60 s. */
export const idleMs = 15_000;

/** The status of a stream is held until its first content, or for `commitAfterMs`. */
export const streamedAnswer = {
  contentType: 'text/event-stream; charset=utf-8',
  commitAfterMs: 20_000,
};

/**
 * The status of a JSON answer is held until the answer is complete, or for `commitAfterMs`. A heartbeat is a
 * space, which JSON allows before a document.
 */
export const jsonAnswer = {
  contentType: 'application/json',
  sentWhole: true as const,
  commitAfterMs: 45_000,
  idle: () => ' ',
  failed: (error: ErrorObject) => JSON.stringify({ error }),
};
