/** The interface of a dialect: from canonical call to request body, from answer to canonical chunks. */
import type { Machine } from '../stream/machine.ts';
import type { CanonicalCall, ChatMessage } from '../wire/canonical-call.ts';
import type { AnswerIdentity, ChatChunk, ReportedUsage } from '../wire/chat-response.ts';
import type { JsonRecord } from '../wire/json.ts';
import type { ServiceTiers } from '../wire/service-tier.ts';
import type { InputTransformation, StatePart } from '../wire/turn-state.ts';
import type { UpstreamEvent } from './body-events.ts';
import type { CallIds } from './call-ids.ts';
import type { Quirks } from './quirks.ts';

/** Fields of a request by name, each with the fields inside it. */
export type FieldRules = ReadonlyMap<string, FieldRules>;

/** A dialect as it is loaded, with what its line in the registry says. */
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
  /** What a tenant may send, beside what the canonical call has: all else goes up only where a row says so. Absent: nothing. */
  tenantFields?: FieldRules | undefined;
  /** Headers of the protocol, beside those of the channel's type. `sent`: what the call became. */
  headers?(settings: RequestSettings, call?: CanonicalCall, sent?: SentBody): Record<string, string>;
  /** How the upstream is asked for the tokens of an input alone. Absent: it is not. */
  counting?: CountingForm;
  /** The lists in its documents may be long: their objects are events of their own, in front of the document without them. */
  hasLongLists?: true;
  /** Reads one answer, streamed or whole. */
  Reader: new (context: ReaderContext) => AnswerReader;
}

export interface CountingForm {
  /** As of a dialect. */
  path: string;
  /** What is left of the body that asks for an answer. */
  body(body: JsonRecord): JsonRecord;
  /** Where the reply has the number. */
  tokens(reply: JsonRecord): unknown;
}

export interface SentBody {
  body: JsonRecord;
  /** The client's fields that were left out, by name. `reasoning`: state of an earlier turn. */
  dropped: readonly string[];
  /** The effort that was sent, if it is not the requested one. */
  effort?: string | undefined;
  /** What was sent instead of the tool choice, if it is not the requested one. */
  toolChoice?: string | undefined;
  outputTokensMax?: number | undefined;
  /** The upstream may honestly count more than limit and input say. */
  isMultiplied?: boolean | undefined;
  /** The service tier that was asked for as the client asked for it. Absent: none was. */
  serviceTier?: string | undefined;
  /** true: a repeat without the limit would send one that is no lower. */
  isLimitLowest?: boolean | undefined;
  /** Stop sequences at which the relay ends the text, whether or not they were sent. */
  stop?: readonly string[] | undefined;
  /** Custom tools that were sent as functions with one text `input`. Their calls are unwrapped by the reader. */
  wrappedTools: ReadonlySet<string>;
  /** The path that the body is for, where it is not the dialect's own. */
  path?: string | undefined;
  /** The upstream was asked to compact the conversation. */
  compacts?: boolean | undefined;
  /** What of the client's form no message holds went up in its place. */
  carriesItems?: boolean | undefined;
  /** The body went up in its client's own form, so its answer is passed on in that form, too. */
  isNative?: boolean | undefined;
  /** Features of the API that go up by name and that the upstream may not know. Absent: none. */
  features?: readonly string[] | undefined;
}

/** A field that this upstream cannot be sent and that must not be dropped. Another candidate may take it. */
export class CannotCarry extends Error {
  override readonly name = 'CannotCarry';
  /** The field's path in chat form, such as `n`. */
  readonly param: string;
  constructor(param: string, message: string) {
    super(message);
    this.param = param;
  }
}

/** What a reader needs to know of the request that it reads the answer to. */
export interface ReaderContext {
  identity: AnswerIdentity;
  sent: SentBody;
  callIds: CallIds;
  quirks: Quirks;
}

/** Throws an UpstreamFailure for an unusable answer, and an ErrorInAnswer for an error event. */
export interface AnswerReader extends Machine<UpstreamEvent, ChatChunk> {
  /** The upstream marked the end. Later events are ignored. */
  readonly done: boolean;
  readonly finishedChoices: number;
  /** Valid at any time, of what came so far. */
  report(): AnswerReport;
}

export interface AnswerReport {
  /** As the upstream reported it, see `UsageCounts`. It is in no chunk: the meter checks it first. */
  usage: ReportedUsage | undefined;
  /**
   * The parts of the first choice's turn, if they say more than the visible turn does. Complete once a finish chunk was
   * returned.
   */
  state: readonly StatePart[] | undefined;
  serviceTier: string | undefined;
  /** The stop sequence at which the upstream ended the first choice. Absent: it did not, or does not say. */
  stopSequence?: string | undefined;
  /** At most 20, with the vendor's ids. Absent: the upstream does not say. */
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
  /** The channel's maximum of output tokens. Higher limits are lowered to it. */
  maxOutputTokens?: number | undefined;
  /**
   * The limit that the balance covers, or a limit from outside `request`. Sent even if `request` has none.
   */
  outputTokensLimit?: number | undefined;
  /** The limit to send where the dialect requires one and nobody set it. */
  outputTokensDefault: number;
  /** The field for a limit that the client did not set. A limit that the client set keeps its field. */
  limitField: string;
  /** Fields that change the price, and tools that run at the upstream, which are sent nevertheless. */
  allow: readonly string[];
  quirks: Quirks;
  /** Which of these the row itself says, so that they bind what else goes up as its client wrote it. Absent: none. */
  rowQuirks?: ReadonlySet<string> | undefined;
  /** The version of the API that the row names, for dialects that send one. */
  apiVersion?: string | undefined;
  /** The state of earlier turns that may go to this candidate. Turns without an entry get the vendor's replacement. */
  states: ReadonlyMap<ChatMessage, readonly StatePart[]>;
  /** Turns whose state is another upstream's, so that what a client sent back of it means nothing here. */
  foreignTurns?: ReadonlySet<ChatMessage> | undefined;
  /** A client's own state may be another candidate's: what is not this one's is to be dropped, not refused. Absent: it is not. */
  dropsForeign?: boolean | undefined;
  callIds: CallIds;
  /** What a repeat leaves out, because the upstream refused it. */
  omissions: ReadonlySet<Omission>;
  /** Features of the API that the upstream refused. Absent: none. */
  refusedFeatures?: readonly string[] | undefined;
  /** What is written to a cache for an hour has no price of its own, so it is written for five minutes. */
  unpricedHour?: boolean | undefined;
  /** The service tiers that have a price: these may be asked for. */
  serviceTiers?: ServiceTiers | undefined;
}

/**
 * What an upstream may refuse on its own account, so that the same candidate is asked once more without it:
 * `limit` on output tokens, `state` of earlier turns (the vendor's replacement goes up), `echoes`, the fields for such
 * state (nothing does), `include` of encrypted reasoning, `items` that no message holds, `stop` sequences, which the relay cuts.
 */
export type Omission = 'limit' | 'state' | 'echoes' | 'include' | 'items' | 'stop';

/** The code of an answer without the compaction item that was asked for. */
export const noCompaction = 'no_compaction';
