/** What the dispatch of a call learned, for bill and log line. Valid however its stream ended. */
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';

/** How a web search went; all but `found` leave the request as it is. */
export type SearchOutcome = 'found' | 'empty' | 'none' | 'no_query' | 'timeout' | 'failed';

export interface AttemptReport {
  /** Undefined: no answer has come. */
  upstreamStatus: number | undefined;
  /** The upstream's own counts, as far as it reported any. */
  usage: ChatUsage | undefined;
  /** A count was beyond belief and was clamped. */
  usageClamped: boolean;
}

export interface DispatchReport extends AttemptReport {
  /** What upstreams were asked: the call's request with what a search added. */
  request: ChatRequest;
  /** Undefined: the call wanted no search. */
  search: SearchOutcome | undefined;
  /** Candidates in the order in which they were tried. `outcome`: `under_way`, `answered`, `refused`, or why it failed. */
  tried: { channel: string; outcome: string }[];
  /** From the request's arrival to its first content. */
  firstContentMs: number | undefined;
}

/** The canonical stream of a call, and what is learned while it is made. */
export interface DispatchedCall {
  /** Can be read once. Throws a Refusal. */
  chunks: AsyncIterable<ChatChunk[]>;
  /** Valid at any moment: while the stream runs and after any of its endings. */
  report(): DispatchReport;
  /** Resolves when the writes about candidates' health are through; they have to end inside the invocation. */
  healthWritten(): Promise<void>;
}
