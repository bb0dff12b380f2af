/** What a call may be sent to. Nothing of one call is in it, so every call of a snapshot uses the same objects. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';

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
  /** Of the id, 53 bits. */
  readonly hash: number;
}

/** What channels make of a limit on output tokens. */
export interface ChannelLimits {
  /** The largest maximum of any of them. Infinity: one has none. */
  readonly most: number;
  /** The fewest tokens that an answer is asked for: the dialects' minimum, or what a row sets. */
  readonly fewest: number;
  /** The largest limit that a row sets, which overrides every other one. Zero: none does. */
  readonly set: number;
}

/** What serves a model. Frozen, with all its lists. */
export interface Serving {
  /** Those of the enabled channels that serve it, by priority. Never empty. */
  readonly candidates: readonly Candidate[];
  /** The rules that name it. */
  readonly charges: readonly ChargeRow[];
  readonly limits: ChannelLimits;
}
