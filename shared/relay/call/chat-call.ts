/** A chat request that passed every check. Stages read it and return what they learn; none writes into it. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AnswerIdentity } from '../../wire/chat-response.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ModelName } from './model-name.ts';

export interface ChatCall {
  readonly identity: AnswerIdentity;
  /** The endpoint's name, for log and ledger. */
  readonly endpoint: string;
  readonly request: ChatRequest;
  readonly model: ModelName;
  readonly key: KeyRow;
  readonly snapshot: Snapshot;
  /** The enabled channels that serve the model, by priority. */
  readonly channels: readonly [ChannelRow, ...ChannelRow[]];
  /** When the request came in, in epoch milliseconds. */
  readonly startedMs: number;
  /** Who pays; undefined: no row, so no plan. */
  readonly account: AccountRow | undefined;
  /** A limit on output tokens that came in another dialect than the upstream's. */
  readonly outputTokensAsked: number | undefined;
  /** Output tokens to ask the upstream for: what the balance covers, else what was asked for in another dialect. */
  readonly outputTokensLimit?: number | undefined;
  /** Declared tools that no upstream of the call's dialect can have. */
  readonly droppedTools: number | undefined;
  /** Until when the request may run, in epoch milliseconds. */
  readonly deadlineMs: number;
  /** Aborts when the request runs out of time. */
  readonly signal: AbortSignal;
}
