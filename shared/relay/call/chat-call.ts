import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AnswerIdentity, ChatUsage } from '../../wire/chat-response.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ModelName } from './model-name.ts';
import type { RequestLog } from '../ports/telemetry.ts';

/** A chat request that passed every check: what the rest of the pipeline works on. */
export interface ChatCall {
  identity: AnswerIdentity;
  request: ChatRequest;
  model: ModelName;
  key: KeyRow;
  snapshot: Snapshot;
  /** In the order in which they are to be tried. */
  route: [ChannelRow, ...ChannelRow[]];
  /** When the request came in, in epoch milliseconds. */
  startedMs: number;
  /** Who pays; undefined: no row, so no plan. */
  account: AccountRow | undefined;
  /** A limit on output tokens that came in another dialect than the upstream's. */
  outputTokensAsked: number | undefined;
  /** Output tokens to ask the upstream for: what the balance covers, else what was asked for in another dialect. */
  outputTokensLimit?: number | undefined;
  /** Until when the request may run, in epoch milliseconds. */
  deadlineMs: number;
  /** Aborts when the request runs out of time. */
  signal: AbortSignal;
  /** Writes that go on beside the answer and have to end inside the invocation. None rejects. */
  afterwards: Promise<unknown>[];
  /** What the upstream told of its usage; stands for the answer's when that breaks off. */
  told: { usage?: ChatUsage | undefined };
  /** What the upstream was really asked, with what a search added; undefined until then. */
  sent: { request?: ChatRequest | undefined };
  /** The request's log line, filled in on the way. */
  record: RequestLog;
}
