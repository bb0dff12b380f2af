/** The interface of a dialect: from canonical call to request body, from answer to canonical chunks. */
import type { Machine } from '../stream/machine.ts';
import type { CanonicalCall, ChatMessage } from '../wire/canonical-call.ts';
import type { ServiceTiers } from '../wire/service-tier.ts';
import type { FoundMedium } from '../wire/media-walk.ts';
import type { AnswerIdentity, ChatChunk, ReportedUsage } from '../wire/chat-response.ts';
import type { JsonRecord } from '../wire/json.ts';
import type { InputTransformation, StatePart } from '../wire/turn-state.ts';
import type { UpstreamEvent } from './body-events.ts';
import type { UpstreamRequest } from './exchange.ts';
import type { CallIds } from './call-ids.ts';
import type { Quirks } from './quirks.ts';

/** Fields of a request by name, each with the fields inside it. */
export type FieldRules = ReadonlyMap<string, FieldRules>;

/** A loaded dialect with the name and path of its registry line. */
export interface Dialect extends DialectCode {
  name: string;
  /** Appended to a channel's base address, such as `/chat/completions`. */
  path: string;
}

export interface DialectCode {
  /**
   * Converts the canonical call to the request for one channel. Does not change the call. Throws CannotCarry for a
   * field that must not be dropped and has no form here.
   */
  body(call: CanonicalCall, settings: RequestSettings): SentBody;
  /** Fields that a tenant may send in addition to the canonical call's. All others need a row that allows them. */
  tenantFields?: FieldRules | undefined;
  /** Headers of the protocol, in addition to those of the channel's type. */
  headers?(settings: RequestSettings, call?: CanonicalCall, sent?: SentBody): Record<string, string>;
  /** For upstreams that can count the tokens of an input. */
  counting?: CountingForm;
  /** Present if upstreams of this dialect accept calls in background windows. */
  submissions?: Submissions;
  /**
   * Its documents have long lists, so their objects are passed on as separate events before the rest of the document.
   */
  hasLongLists?: true;
  /** Reads one answer, streamed or whole. */
  Reader: new (context: ReaderContext) => AnswerReader;
}

export interface CountingForm {
  /** As of a dialect. */
  path: string;
  /** Reduces the body of a request for an answer. */
  body(body: JsonRecord): JsonRecord;
  tokens(reply: JsonRecord): unknown;
}

export interface Submissions {
  submit(request: UpstreamRequest, hours: string): UpstreamRequest;
  /** Returns the address to poll or cancel a submitted response. `url`: the address that took it. */
  address(url: string, id: string, cancels: boolean): string;
  /** Returns undefined if the text is not a response. */
  read(text: string): SubmittedResponse | undefined;
}

export interface SubmittedResponse {
  id: string;
  isRunning: boolean;
  /** In the dialect's form. A stopped response is an answer that was cut off, or a failure. */
  response: JsonRecord;
}

export interface SentBody {
  body: JsonRecord;
  /** The client's fields that were left out, by name. `reasoning` is the state of an earlier turn. */
  dropped: readonly string[];
  /** The media of the canonical messages that were left out. */
  unsentMedia?: readonly FoundMedium[] | undefined;
  /** The effort that was sent, if it is not the requested one. */
  effort?: string | undefined;
  /** The tool choice that was sent, if it is not the requested one. */
  toolChoice?: string | undefined;
  outputTokensMax?: number | undefined;
  /** The upstream may correctly count more than limit and input allow. */
  isMultiplied?: boolean | undefined;
  /** The service tier that was requested, in the client's words. */
  serviceTier?: string | undefined;
  /** A repeat without the limit would send one that is no lower. */
  isLimitLowest?: boolean | undefined;
  /** Stop sequences at which the relay ends the text, whether or not they were sent. */
  stop?: readonly string[] | undefined;
  /** Custom tools that were sent as functions with one text `input`. Their calls are unwrapped by the reader. */
  wrappedTools: ReadonlySet<string>;
  /** The path that the body is for, where it is not the dialect's own. */
  path?: string | undefined;
  /** The upstream was asked to compact the conversation. */
  compacts?: boolean | undefined;
  /** Items of the client's form that no message can hold were sent. */
  carriesItems?: boolean | undefined;
  /** The body was sent in the client's own form, so its answer is passed on in that form. */
  isNative?: boolean | undefined;
  /** The upstream was asked to store the conversation under its answer's id. */
  holdsThread?: boolean | undefined;
  /** Features of the API, sent by name, that the upstream may not know. */
  features?: readonly string[] | undefined;
}

/** Applies the row's `set` and `drop`. Only the row decides whether the answer is streamed. Changes `body`. */
export function applyRowFields(body: JsonRecord, { set, drop, stream }: RequestSettings): void {
  Object.assign(body, set);
  for (const field of drop) delete body[field];
  delete body['stream'];
  if (stream) body['stream'] = true;
}

/** A field that this upstream does not support and that must not be dropped. Another candidate may support it. */
export class CannotCarry extends Error {
  override readonly name = 'CannotCarry';
  /** The field's path in chat form, such as `n`. */
  readonly param: string;
  /** Shown to clients whose error format has details. */
  readonly details: JsonRecord | undefined;
  constructor(param: string, message: string, details?: JsonRecord) {
    super(message);
    this.param = param;
    this.details = details;
  }
}

/** This upstream does not hold the conversation that the call continues. The client must send all messages again. */
export class StateLost extends CannotCarry {}

/** Describes the request whose answer is read. */
export interface ReaderContext {
  identity: AnswerIdentity;
  sent: SentBody;
  callIds: CallIds;
  quirks: Quirks;
  /** Called at most once, with a finish reason that the vocabulary lacks. */
  noteUnknownWord?: ((word: string) => void) | undefined;
}

/** Throws an UpstreamFailure for an unusable answer, and an ErrorInAnswer for an error event. */
export interface AnswerReader extends Machine<UpstreamEvent, ChatChunk> {
  /** The upstream marked the end. Later events are ignored. */
  readonly done: boolean;
  readonly finishedChoices: number;
  /** Valid at any time, for the answer so far. */
  report(): AnswerReport;
}

export interface AnswerReport {
  /** As the upstream reported it (`UsageCounts`). The meter checks it before any chunk has it. */
  usage: ReportedUsage | undefined;
  /**
   * Layout and state of the first choice, if they say more than the visible turn. Complete once a finish chunk was
   * returned.
   */
  state: readonly StatePart[] | undefined;
  serviceTier: string | undefined;
  /** The stop sequence that ended the first choice, if the upstream says so. */
  stopSequence?: string | undefined;
  /** At most 20, with the vendor's ids. */
  inputTransformations?: readonly InputTransformation[] | undefined;
}

/** The settings of one channel for its request bodies. */
export interface RequestSettings {
  model: string;
  /** false: the upstream is asked for one JSON answer. */
  stream: boolean;
  /** false: the usage of a stream is not requested. */
  includeUsage: boolean;
  set: JsonRecord;
  /** Fields that are not sent to the upstream. */
  drop: readonly string[];
  /** The channel's maximum. Higher limits are lowered to it. */
  maxOutputTokens?: number | undefined;
  /** The limit that the balance covers, or a limit from outside `request`. Sent even if `request` has none. */
  outputTokensLimit?: number | undefined;
  /** For dialects that require a limit, if nobody set one. */
  outputTokensDefault: number;
  /** The field for a limit that the client did not set. A limit that the client set keeps its field. */
  limitField: string;
  /** Fields that change the price, and hosted tools, that are sent nevertheless. */
  allow: readonly string[];
  quirks: Quirks;
  /** The quirks that the row itself sets: they also bind bodies that are sent in the client's own form. */
  rowQuirks?: ReadonlySet<string> | undefined;
  apiVersion?: string | undefined;
  /** The upstream can store a conversation, so that the client sends only new messages. */
  holdsThreads?: boolean | undefined;
  /** The upstream's id of the answer that the call continues, if this upstream stores it. */
  threadId?: string | undefined;
  /** The state of earlier turns that this candidate may get. Turns without an entry get the vendor's replacement. */
  states: ReadonlyMap<ChatMessage, readonly StatePart[]>;
  /** Turns whose state belongs to another upstream, so what the client sent back of it means nothing here. */
  foreignTurns?: ReadonlySet<ChatMessage> | undefined;
  /** A client's own state may belong to another candidate: foreign state is to be dropped, not refused. */
  dropsForeign?: boolean | undefined;
  callIds: CallIds;
  /** A repeat leaves these out, because the upstream refused them. */
  omissions: ReadonlySet<Omission>;
  refusedFeatures?: readonly string[] | undefined;
  /** A cache write for an hour has no price of its own, so it is sent as one for five minutes. */
  unpricedHour?: boolean | undefined;
  /** The service tiers that have a price and so may be requested. */
  serviceTiers?: ServiceTiers | undefined;
  /** True if calls in a background window are submitted to the vendor. */
  submitsWindows?: boolean | undefined;
}

/**
 * An upstream may refuse these, and the same candidate is then asked once more without: the `limit` on output tokens,
 * `state` of earlier turns (the vendor's replacement is sent), `echoes` (no field for such state is), `include` of
 * encrypted reasoning, `items` that no message holds, and `stop` sequences, which the relay applies itself.
 */
export type Omission = 'limit' | 'state' | 'echoes' | 'include' | 'items' | 'stop';

/** The code of an answer without the compaction item that was asked for. */
export const noCompaction = 'no_compaction';
