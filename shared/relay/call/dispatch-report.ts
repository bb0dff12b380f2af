/** The results of a call's dispatch, for bill and log line. They are valid however its stream ended. */
import type { SentFacts } from '../../endpoints/endpoint.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';

/** The outcome of a web search. Every outcome except `found` leaves the request unchanged. */
export type SearchOutcome = 'found' | 'empty' | 'none' | 'no_query' | 'timeout' | 'failed';

export interface AttemptReport {
  /** Undefined: no reply has arrived. */
  upstreamStatus: number | undefined;
  /** The counts that the upstream has reported so far. */
  usage: ChatUsage | undefined;
  /** What the upstream was sent of the call. */
  sent: SentFacts;
  /** The state of the turn so far; undefined: the upstream wants none back. */
  state: TurnState | undefined;
  /** The upstream reported an impossible count, which was clamped. */
  usageClamped: boolean;
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
  /** Time from the request's arrival to the first content. */
  firstContentMs: number | undefined;
}

/** The canonical stream of a call, and a report about it. */
export interface DispatchedCall {
  /** Can be read once. Throws a Refusal. */
  chunks: AsyncIterable<ChatChunk[]>;
  /** Valid at any time: during the stream and after every kind of end. */
  report(): DispatchReport;
  /** Resolves when all writes beside the answer have finished; they must finish inside the invocation. */
  written(): Promise<void>;
}
