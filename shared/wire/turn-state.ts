/**
 * State that a vendor wants back unchanged with the assistant turn that it came with: signatures, encrypted
 * reasoning, reasoning text. Clients never read it.
 */
import type { JsonRecord } from './json-record.ts';

/**
 * One part of a turn, in the order of the answer, so that the turn can be rebuilt exactly. `text`: a stretch of
 * visible text, by its length in UTF-16 code units. `call`: a tool call, by its index. `opaque`: what the vendor
 * wants back; only the dialect that wrote it reads it.
 */
export type StatePart =
  | { readonly text: number }
  | { readonly call: number }
  | { readonly opaque: JsonRecord };

/** Where a state came from. Encrypted state is valid only there. */
export interface StateOrigin {
  readonly dialect: string;
  /** The channel's id. */
  readonly channel: string;
  /** A fingerprint of the reference to the channel's secret; empty: the channel has none. */
  readonly secret: string;
  /** The upstream's name of the model. */
  readonly model: string;
}

/** The state of one assistant turn. */
export interface TurnState {
  readonly origin: StateOrigin;
  /** The ids of the turn's tool calls as the client saw them, by index. */
  readonly callIds: readonly string[];
  readonly parts: readonly StatePart[];
}
