/** A chat request that passed every check. Stages read it and return their results; none may change it. */
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AnswerIdentity, ChatChunk, ReportedUsage } from '../../wire/chat-response.ts';
import type { CanonicalCall, ChatMessage, ChatRequest } from '../../wire/canonical-call.ts';
import type { StateOrigin, TurnState } from '../../wire/turn-state.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { SentFacts } from '../../endpoints/endpoint.ts';
import type { Attribution } from '../../billing/ledger-row.ts';
import type { Tariff } from '../../billing/tariff.ts';

export interface ModelName {
  /** The name that whitelist, price and channels use and that every answer contains. */
  base: string;
  /** Prefix `web-`: search before answering. */
  web: boolean;
  /** Suffix `-official` or `official: true`: official billing. */
  official: boolean;
}

/** A model that may answer. */
export interface ServingModel extends Serving {
  /** Its public base name. */
  readonly model: string;
  /** As in `ChatCall`. */
  readonly outputTokensLimit?: number | undefined;
}

export interface CalledAlias {
  readonly name: string;
  /** The next model is also asked when one finds the request too long for its context. */
  readonly onContextLength: boolean;
  /** In the order in which they are tried. */
  readonly models: readonly [ServingModel, ...ServingModel[]];
}

export interface ChatCall extends CanonicalCall, Serving {
  readonly identity: AnswerIdentity;
  /** The endpoint's name, for log and ledger. */
  readonly endpoint: string;
  /** The first model of an alias. */
  readonly model: ModelName;
  /** Missing if a model was asked for: then no other may answer. */
  readonly alias?: CalledAlias | undefined;
  readonly key: KeyRow;
  readonly snapshot: Snapshot;
  /** Covers every model that may answer. */
  readonly tariff: Tariff;
  /** For an alias, the candidates of all its models. */
  readonly candidates: readonly Candidate[];
  /** The end user and the tags that its client named. */
  readonly attribution: Attribution;
  /** When the request arrived, in epoch milliseconds. */
  readonly startedMs: number;
  /** Missing without a valid row; then there is no plan. */
  readonly account: AccountRow | undefined;
  /** The concurrency that the deployment reserved for each endpoint, if it did. */
  readonly concurrencyGiven?: number | undefined;
  /** The number of shards of the account's balance, as far as known; default 1. */
  readonly shardCount?: number | undefined;
  /** The limit on output tokens that the client sent in a dialect other than the upstream's. */
  readonly outputTokensAsked: number | undefined;
  /**
   * The limit on output tokens to send to the upstream: what was reserved if the balance pays, otherwise
   * `outputTokensAsked`.
   */
  readonly outputTokensLimit?: number | undefined;
  /** The reason why that limit is lower than asked. */
  readonly limitedBy?: 'balance' | 'budget' | undefined;
  /** Number of declared tools that were dropped because no upstream of the call's dialect supports them. */
  readonly droppedTools: number | undefined;
  /** The state of earlier turns that came back or was kept, by assistant message. */
  readonly states: ReadonlyMap<ChatMessage, TurnState>;
  /** State came back or was kept that does not fit this call; it was left out. */
  readonly stateDropped: boolean;
  /** The way the call came in, so that no channel sends it back here. */
  readonly entry?: { readonly host: string; readonly hops: string } | undefined;
  /** A run answers it, for which no client waits: how long a channel may take in all does not end it. */
  readonly isRun?: boolean | undefined;
  /** When the request must end, in epoch milliseconds. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

export type NamedModels = Pick<ChatCall, 'model' | 'alias' | keyof Serving>;

// The channels that can serve a model. All calls of a snapshot share these objects, so nothing of one call
// is in them.

/** A channel with one of its secrets, for one model. Frozen. */
export interface Candidate {
  /** Contains the secret's reference, never its value. Has no model: a candidate rests for all its models. */
  readonly id: string;
  readonly channel: ChannelRow;
  readonly secret: string | undefined;
  /** The public base name of the model that it serves. */
  readonly model: string;
  /** The channel's weight divided evenly over its secrets. */
  readonly share: number;
  /** A hash of the id, 53 bits. */
  readonly hash: number;
}

export interface ChannelLimits {
  /** The largest maximum of any of them. Infinity: one has none. */
  readonly most: number;
  /** The fewest tokens that an answer is asked for: the dialects' minimum, or what a row sets. */
  readonly fewest: number;
  /** The largest limit that a row sets, which overrides every other one. Zero: none does. */
  readonly set: number;
}

/** The candidates of a model. Frozen, with all its lists. */
export interface Serving {
  /** Candidates of the enabled channels that serve it, by priority. Never empty. */
  readonly candidates: readonly Candidate[];
  readonly limits: ChannelLimits;
}

// The results of a call's dispatch, for bill and log line. They are valid however its stream ended.

/** The outcome of a web search. Every outcome except `found` leaves the request unchanged. */
export type SearchOutcome = 'found' | 'empty' | 'none' | 'no_query' | 'timeout' | 'failed';

export interface AttemptReport {
  upstreamStatus: number | undefined;
  /** The counts that the upstream has reported so far. */
  usage: ReportedUsage | undefined;
  sent: SentFacts;
  /** The state of the turn so far; undefined: the upstream wants none back. */
  state: TurnState | undefined;
  /** The source of the answer's state or thread. Undefined if nothing was sent. */
  origin: StateOrigin | undefined;
}

/** A candidate that was tried. Times in epoch milliseconds. */
export interface TriedCandidate {
  candidate: Candidate;
  /** `under_way`, `answered`, `refused`, or the reason of the failure. */
  outcome: string;
  /** Its cooldown or problem at that time. */
  health: Pick<PassedOver, 'is'> | undefined;
  startedMs: number;
  /** Time of its first content. */
  contentMs?: number;
  /** Time at which it failed or refused. */
  endedMs?: number;
  /** Time at which its answer was complete. */
  doneMs?: number;
  attempt: { report(): Pick<AttemptReport, 'upstreamStatus'> };
  /** A word of the upstream that is known. */
  vendorCode?: string | undefined;
  /** The number of forms in which it was asked; default 1. */
  forms?: number;
}

/** A candidate that was not tried. */
export interface PassedOver {
  candidate: Candidate;
  /** A state of health, `cannot_carry` (it can't take this call) or `not_needed` (no problem is known). */
  is: string;
  kind?: string;
  untilMs?: number;
}

/** Made of what there is: it is looked at when a call has ended that needs it. */
export interface DispatchHistory {
  tried: readonly TriedCandidate[];
  /** Candidates that can't take the call. */
  uncarried: readonly Candidate[];
  order: { candidates: readonly Candidate[]; passedOver(candidate: Candidate): PassedOver } | undefined;
}

export interface DispatchReport extends AttemptReport {
  /** The request sent to upstreams: the call's request with the results of its search. */
  request: ChatRequest;
  search: SearchOutcome | undefined;
  /** True if the provider bills a search. */
  isSearchBilled?: boolean | undefined;
  /** In the order in which they were tried. `outcome`: as of a TriedCandidate. */
  tried: { channel: string; outcome: string }[];
  /** The channel that was tried last; undefined: none was. */
  channel: ChannelRow | undefined;
  /** The public base name of the model that was tried last, or else will be first. */
  model: string;
  /** Time from the request's arrival to the first content. */
  firstContentMs: number | undefined;
  /** The history of each candidate, if known. */
  history?: (() => DispatchHistory) | undefined;
  /** The upstream was stopped before its end, so its counts may be of a part. */
  isCut?: boolean | undefined;
  /** The answer broke off after content, and another candidate may be asked. */
  another: boolean;
}

/** The canonical stream of a call, and a report about it. */
export interface DispatchedCall {
  /**
   * Throws a Refusal. Can be read once, and again when that ended early and the report says `another`: then the next
   * candidate answers from the beginning.
   */
  readonly chunks: AsyncIterable<ChatChunk[]>;
  /** Valid at any time: during the stream and after every kind of end. */
  report(): DispatchReport;
  /** Resolves when all writes beside the answer have finished; they must finish inside the invocation. */
  awaitWrites(): Promise<void>;
}
