/**
 * What answers taught about a model on a channel. Requests use it at once; the publisher says it on the channel's row.
 * Facts end by themselves: channels change.
 */

/**
 * `keeps_state`: its answers with tool calls carried state that it wants back. `speaks:<dialect>`: it refused calls with
 * tools until they came in this dialect. `refuses_limit:<tokens>`: its maximum of output tokens is below this limit.
 * `limit_over_context:<tokens>`: with this limit the prompt did not fit its context. `wants_back:<field>`: it refused a
 * tool loop whose turns lacked the field. `efforts:<effort>+<effort>`: it knows these alone.
 */
export type Fact =
  | 'keeps_state'
  | `refuses_limit:${number}`
  | `limit_over_context:${number}`
  | `speaks:${string}`
  | `wants_back:${string}`
  | `efforts:${string}`;

/** The lowest limit that a model is known to refuse. Undefined: none is known. */
export function refusedLimit(facts: readonly LearnedFact[]): number | undefined {
  const limits = facts.flatMap(({ fact }) => {
    const [kind, tokens] = fact.split(':');
    return kind === 'refuses_limit' ? [Number(tokens)] : [];
  });
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

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
