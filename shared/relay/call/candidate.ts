/** What a call may be sent to. Nothing of one call is in it, so every call of a snapshot uses the same objects. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';

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
