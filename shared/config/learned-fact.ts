/**
 * What answers taught about a model on a channel. Requests use it at once; the publisher says it on the channel's row.
 * Facts end by themselves: channels change.
 */

/**
 * `keeps_state`: its answers with tool calls carried state that it wants back. `speaks:<dialect>`: it refused calls with
 * tools until they came in this dialect. `refuses_limit`: its maximum of output tokens is below a limit that was sent.
 */
export type Fact = 'keeps_state' | 'refuses_limit' | `speaks:${string}`;

/** A channel's id and a public model name. */
export interface ServedModel {
  readonly channel: string;
  readonly model: string;
}

export interface LearnedFact extends ServedModel {
  readonly fact: Fact;
  /** Epoch milliseconds. */
  readonly untilMs: number;
}
