/** The results of a call's dispatch, for bill and log line. They are valid however its stream ended. */
import type { SentFacts } from '../../endpoints/endpoint.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatChunk, ReportedUsage } from '../../wire/chat-response.ts';
import type { Candidate } from './candidate.ts';

/** The outcome of a web search. Every outcome except `found` leaves the request unchanged. */
export type SearchOutcome = 'found' | 'empty' | 'none' | 'no_query' | 'timeout' | 'failed';

export interface AttemptReport {
  /** Undefined: no reply has arrived. */
  upstreamStatus: number | undefined;
  /** The counts that the upstream has reported so far. */
  usage: ReportedUsage | undefined;
  /** What the upstream was sent of the call. */
  sent: SentFacts;
  /** The state of the turn so far; undefined: the upstream wants none back. */
  state: TurnState | undefined;
}

/** A candidate that was tried. Times in epoch milliseconds. */
export interface TriedCandidate {
  candidate: Candidate;
  /** `under_way`, `answered`, `refused`, or the reason of the failure. */
  outcome: string;
  /** What was known against it. */
  standing: Pick<PassedOver, 'is'> | undefined;
  startedMs: number;
  /** Its first content. Absent: it had none. */
  contentMs?: number;
  /** It failed or refused. Absent: it did not. */
  endedMs?: number;
  attempt: { report(): Pick<AttemptReport, 'upstreamStatus'> };
  /** A word of the upstream that is known. */
  vendorCode?: string | undefined;
  /** In how many forms it was asked. Absent: in one. */
  forms?: number;
}

/** A candidate that was not tried. */
export interface PassedOver {
  candidate: Candidate;
  /** A standing; `cannot_carry`: it cannot be sent this call; `not_needed`: nothing is known against it. */
  is: string;
  /** The kind of its rest. */
  kind?: string;
  untilMs?: number;
}

/** Made of what there is: it is looked at when a call has ended that needs it. */
export interface DispatchStory {
  tried: readonly TriedCandidate[];
  /** Those that cannot be sent the call. */
  uncarried: readonly Candidate[];
  /** Undefined: the call ended before there was one. */
  order: { candidates: readonly Candidate[]; passedOver(candidate: Candidate): PassedOver } | undefined;
}

export interface DispatchReport extends AttemptReport {
  /** The request sent to upstreams: the call's request with the results of its search. */
  request: ChatRequest;
  /** Undefined: the call requested no search. */
  search: SearchOutcome | undefined;
  /**
   * Candidates in the order in which they were tried. `outcome`: `under_way`, `answered`, `refused`, or the
   * reason of the failure.
   */
  tried: { channel: string; outcome: string }[];
  /** The channel that was tried last; undefined: none was. */
  channel: ChannelRow | undefined;
  /** The public base name of the model that was tried last, or else will be first. */
  model: string;
  /** Time from the request's arrival to the first content. */
  firstContentMs: number | undefined;
  /** The first content was later than of nearly all calls of its channel: within which time those have theirs. */
  usualMs?: number | undefined;
  /** What happened to each candidate. Absent: not known. */
  story?: (() => DispatchStory) | undefined;
  /** The upstream was stopped before its end, so its counts may be of a part. */
  isCut?: boolean | undefined;
}

/** The canonical stream of a call, and a report about it. */
export interface DispatchedCall {
  /**
   * Throws a Refusal. Can be read once, and again when that ended early while `another` was true: then the next
   * candidate answers from the beginning.
   */
  readonly chunks: AsyncIterable<ChatChunk[]>;
  /** The answer broke off after content, and another candidate may be asked. */
  readonly another: boolean;
  /** Valid at any time: during the stream and after every kind of end. */
  report(): DispatchReport;
  /** Resolves when all writes beside the answer have finished; they must finish inside the invocation. */
  written(): Promise<void>;
}
