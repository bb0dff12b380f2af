/** The results of a call's dispatch, for bill and log line. They are valid however its stream ended. */
import type { SentFacts } from '../../endpoints/endpoint.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatChunk, ReportedUsage } from '../../wire/chat-response.ts';

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
