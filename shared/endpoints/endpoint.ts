/** The interface that every endpoint implements: paths, key header, reader of a body, renderer of an answer. */
import { type CanonicalCall, type ChatMessage, keptToEnd } from '../wire/canonical-call.ts';
import type { JsonRecord } from '../wire/json.ts';
import { type AnswerIdentity, type ChatUsage, type ChatChunk, Kept } from '../wire/chat-response.ts';
import { type ErrorObject, InvalidRequest } from '../wire/invalid-request.ts';
import type { FoundMedium } from '../wire/media-walk.ts';
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
   * Loads the reader of bodies with fields of other endpoints. Undefined: `read` itself. Absent: its clients
   * send no such bodies.
   */
  otherForm?(body: unknown): Promise<Pick<Endpoint, 'read'> | undefined>;
  /** How many values its bodies may have, where that is more than others may. */
  bodyValuesMax?: number;
  /** The header in which clients send their key. */
  keyHeader?: KeyHeader;
  /** Renders a refusal before any part of an answer was sent. The default is OpenAI's form. */
  refused?(refusal: { status: number; error: ErrorObject } & RefusalFacts, requestId: string): RefusedAnswer;
  /** Headers of every answer, besides the relay's own. `budget`: the key's, if it has one. */
  answerHeaders?(requestId: string, budget?: BudgetShare): Record<string, string>;
  /** How its clients ask for the tokens of an input alone. */
  counting?: Counting;
  /** How its clients ask for a summary of a conversation, to go on from. */
  compacting?: Pick<Endpoint, 'path' | 'read'>;
  /** Loaded by the first call of a key that may store. */
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

/** How much of a key's budget is used. */
export interface BudgetShare {
  period: 'day' | 'month';
  /** From 0 to 1. */
  used: number;
  resetsAtMs: number;
}

/** Facts about a refusal that some forms show. */
export interface RefusalFacts {
  /** Every candidate refused for load. */
  isOverloaded: boolean;
  /** The vendor's details, scrubbed. */
  details?: JsonRecord | undefined;
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
  /** Reads the key. `conflict`: why it is not clear which key is meant. */
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

/** Anthropic's clients send the key as `x-api-key` or as `Authorization`. */
export const eitherHeader: KeyHeader = {
  // Shows the header that the client used.
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

/** Reads bodies of keys that may store. */
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
  /** The response that the id names. */
  response: string | undefined;
}

/** Given only for keys that may store. */
export interface StorageAtHand {
  reading: StoredReading;
  /** The conversation that the body refers to, once it was read. */
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
  /** Instructions of the first turn. Later turns do not inherit them. */
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
  /** The service tier of its completion window. */
  tier?: string | undefined;
}

export interface EndpointRequest {
  call: CanonicalCall;
  /** The items of the conversation, for the check of URLs in them. Absent: `call` has the paths of the client's body. */
  placed?: readonly PlacedItem[] | undefined;
  /** A limit on output tokens that is no field of `request`. It is sent in the channel's limit field. */
  outputTokensMax?: number | undefined;
  /** More tokens of input are refused, by a count from below. */
  inputTokensMax?: number | undefined;
  /** The number of declared tools that upstreams of other forms do not support, for the log. */
  droppedTools?: number | undefined;
  /** Sealed state that the client sent back, by the assistant message that it belongs to. */
  sealed?: ReadonlyMap<ChatMessage, SealedState> | undefined;
  /** An encrypted item that only another provider can read was left out. */
  foreignLeftOut?: boolean | undefined;
  /** The id of the answer that the request continues. Such a request has only new messages. */
  continues?: string | undefined;
  /** The client keeps the state of the answer, sealed, and sends it back. */
  keepsState?: boolean | undefined;
  storage?: StorageAsked | undefined;
  /**
   * References that are still to be read. The call then has only the body's own items, checked as far as possible without the others. Absent:
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
  /** It comes from a stored turn: one that is damaged is left out. */
  stored?: boolean;
}

export interface AnswerFacts {
  /** Unix seconds, for times that are set when the answer ends. */
  now: () => number;
  /** The public name of the model that answers; before its first chunk, of the one that is asked. */
  model?: () => string;
  /** The counts of the answer so far, as they would be charged if it ended here. For clients that expect those of the input first. */
  usage: () => ChatUsage;
  /** Facts of the request to the answering upstream, empty before its first chunk. */
  sent: () => SentFacts;
  /** The state of the turn so far, or a summary, sealed for the client; undefined: there is none, or `keepsState` is not set. */
  sealedState: (itemId: string, summary?: string) => string | undefined;
  /**
   * The number of opaque parts in the state so far. A seal that was made when there were as many is whole: what follows
   * the last opaque part is visible, and the client sends it back.
   */
  opaqueParts: () => number;
  /** Turns the upstream's id of an answer into the client's. Returns undefined if the upstream does not store the conversation. */
  threadId?: (vendorId: string) => string | undefined;
  /** True while the answer can still be read again. */
  stored?: () => boolean;
  /** The stop sequence at which the answer ended. */
  stoppedAt?: () => string | undefined;
}

export interface SentFacts {
  /** The client's fields that were not sent. */
  dropped: readonly string[];
  /** The media of the canonical messages that were not sent. */
  unsentMedia?: readonly FoundMedium[] | undefined;
  /** The effort that was sent, if it is not the requested one. */
  effort?: string | undefined;
  /** The tool choice that was sent, if it is not the requested one. */
  toolChoice?: string | undefined;
  /** The client's own body went up, and not the canonical call. */
  isNative?: boolean | undefined;
  /** The upstream was asked to hold the conversation. */
  holdsThread?: boolean | undefined;
  /** The limit on output tokens that was sent. Null: none was. */
  outputTokensMax?: number | null | undefined;
  /** The upstream may honestly count more than limit and input say. */
  isMultiplied?: boolean | undefined;
  /** The service tier that is charged. `default`: the standard one. */
  serviceTier?: string | undefined;
  /** The one that the upstream says that it used. */
  reportedTier?: string | undefined;
  /** Stop sequences at which the relay ends the text, whether or not they were sent. */
  stop?: readonly string[] | undefined;
  /** The one at which the upstream says that it ended. */
  stoppedAt?: string | undefined;
  /** Changes that the upstream made to the input, with the ids that the client has. */
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
  /** The answer is sent at its end, so it can begin again with a fresh renderer. */
  readonly sentWhole?: true;
  /** The status and code of a request that the upstream finds too large, for clients that act on them. */
  readonly tooLarge?: { status: number; code: string };
  /** The last text of an answer that fails after its status was sent. */
  failed(error: ErrorObject, facts?: RefusalFacts): string;
  /** The texts that `end` would return before its last one, which it then leaves out. */
  close?(): string[];
  /**
   * The whole answer as an object, as its last text has it. Valid from `close` on; with an error, of an answer that fails
   * with it, at any time. Absent: answers of this endpoint are not objects that are kept.
   */
  whole?(error?: ErrorObject): JsonRecord;
  /** The answer as an object, before anything of it is there. */
  queued?(): JsonRecord;
}

/** For one answer that is kept. The caller asked for it, so no upstream is at fault. */
export const createKeptForAnswer = (): Kept =>
  new Kept(
    keptToEnd.bytesMax,
    () =>
      new InvalidRequest(
        'answer_too_large',
        null,
        'The answer is too long for the relay. Ask for fewer choices, log probabilities or tokens; an answer of Chat Completions with stream: true may be longer.',
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
