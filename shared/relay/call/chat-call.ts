/** A chat request that passed every check. Stages read it and return their results; none may change it. */
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AnswerIdentity } from '../../wire/chat-response.ts';
import type { CanonicalCall } from '../../wire/canonical-call.ts';
import type { ChatMessage } from '../../wire/chat-request.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import type { Candidate, Serving } from './candidate.ts';
import type { ModelName } from './model-name.ts';

/** A model that may answer. */
export interface ServingModel extends Serving {
  /** Its public base name. */
  readonly model: string;
  /** As in `ChatCall`. */
  readonly outputTokensLimit?: number | undefined;
}

/** The alias that a call asked for. */
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
  /** Of a call to an alias: its first model. */
  readonly model: ModelName;
  /** Undefined: a model was asked for, and no other may answer. */
  readonly alias?: CalledAlias | undefined;
  readonly key: KeyRow;
  readonly snapshot: Snapshot;
  /** Of an alias, those of all its models. */
  readonly candidates: readonly Candidate[];
  /** When the request arrived, in epoch milliseconds. */
  readonly startedMs: number;
  /** The account that pays. Undefined: it has no valid row and therefore no plan. */
  readonly account: AccountRow | undefined;
  /** How many calls at once the deployment reserved for each endpoint. Undefined: no number was given. */
  readonly concurrencyGiven?: number | undefined;
  /** The number of parts of the account's balance, as far as known. Undefined: one. */
  readonly parts?: number | undefined;
  /** The limit on output tokens that the client sent in a dialect other than the upstream's. */
  readonly outputTokensAsked: number | undefined;
  /**
   * The limit on output tokens to send to the upstream: what was reserved if the balance pays, otherwise
   * `outputTokensAsked`.
   */
  readonly outputTokensLimit?: number | undefined;
  /** What made that limit lower than it would have been otherwise. */
  readonly limitedBy?: 'balance' | 'budget' | undefined;
  /** Number of declared tools that were dropped because no upstream of the call's dialect supports them. */
  readonly droppedTools: number | undefined;
  /** The state of earlier turns that came back or was kept, by assistant message. */
  readonly states: ReadonlyMap<ChatMessage, TurnState>;
  /** State came back or was kept that does not fit this call; it was left out. */
  readonly stateDropped: boolean;
  /** Which way the call came in, so that no channel sends it back here. Absent: the host does not say. */
  readonly entry?: { readonly host: string; readonly hops: string } | undefined;
  /** A run of its own answers it, which has not begun. */
  readonly queued?: boolean | undefined;
  /** A run answers it, for which no client waits: how long a channel may take in all does not end it. */
  readonly isRun?: boolean | undefined;
  /** When the request must end, in epoch milliseconds. */
  readonly deadlineMs: number;
  /** Aborts at the deadline. */
  readonly signal: AbortSignal;
}

/** The models that may answer a call. */
export type NamedModels = Pick<ChatCall, 'model' | 'alias' | keyof Serving>;
