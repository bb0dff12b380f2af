/**
 * How an upstream differs from its dialect. A channel's row says it under `params`; else its type knows it. This
 * file names no type and no dialect: docs/channels.md has the defaults.
 */
/** The fields of Chat Completions for a limit on output tokens. */
export const limitFields = ['max_tokens', 'max_completion_tokens'] as const;
export type LimitField = (typeof limitFields)[number];
/** The fields of all dialects for it. */
export const limitNames = [...limitFields, 'max_output_tokens'] as const;

/** Types of tools that the caller runs. All others run at the upstream, which charges for them. */
export const callersTools: ReadonlySet<string> = new Set(['function', 'custom']);
/** Those of which the vendor of Claude knows the schema. */
const knownTools = /^(?:bash|text_editor|computer|memory)_\d+$/;

/** A tool without a type has a schema of its own. */
export const isCallersTool = (type: unknown): boolean =>
  type === undefined ||
  type === null ||
  (typeof type === 'string' && (callersTools.has(type) || knownTools.test(type)));

/** Efforts from none to the most; every vendor knows some of them. */
export const effortScale = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** What a row may say of its upstream. The first of each is the default. */
export const callIdForms = ['max64', 'max40', 'alnum9'] as const;
export const systemPlaces = ['anywhere', 'first'] as const;
export const nullContents = ['null', 'empty'] as const;
export const returnedFields = ['reasoning_content', 'thought_signature', 'thinking'] as const;
export const unknownFieldChoices = ['pass', 'drop'] as const;

/** A user's turn where the vendor wants one and nobody wrote it. */
export const continuation = 'Continue.';

/** Fields beside OpenAI's of an answer, which clients that keep a whole message send back with it. */
export const echoedFields = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'extra_content',
  'images',
] as const;

export interface Quirks {
  /** Which ids of tool calls it accepts. Others are mapped one to one within the request. */
  callIds: (typeof callIdForms)[number];
  /** `first`: it accepts one system message, at the beginning. */
  system: (typeof systemPlaces)[number];
  /** `empty`: an assistant message of calls alone has the content "" instead of null. */
  nullContent: (typeof nullContents)[number];
  /** Reasoning comes inside the content, between `<think>` and `</think>`. */
  thinkTags: boolean;
  /** `user`: it refuses a conversation that ends with an answer. */
  lastTurn: 'any' | 'user';
  /** Which of `temperature` and `top_p` it accepts: both, one of them, or neither while it reasons. */
  sampling: 'any' | 'one' | 'none';
  /** The one kind of summary of its reasoning that it knows; every other one that is asked for becomes it. Absent: all. */
  summary?: 'auto' | undefined;
  /** The efforts that it knows. Absent: the dialect's own. */
  efforts?: readonly string[] | undefined;
  /** It accepts tools whose input is free text. Absent: as most upstreams of its dialect do. */
  customTools?: boolean | undefined;
  /**
   * What it wants back with every turn that called tools; where it is lost, the vendor's replacement goes up. `thinking`
   * has none: such a call goes up without thinking. Absent: what a turn's own state says.
   */
  wantsBack?: (typeof returnedFields)[number] | undefined;
  /**
   * Which of `echoedFields` it accepts in an assistant message; others are not sent, nor is the index of calls.
   * Absent: all, so that state comes back by itself from clients that keep it.
   */
  echoes?: readonly string[] | undefined;
  /**
   * The fields of a request that it accepts; others are dropped, as are unknown fields of messages, their parts and
   * tools. Absent: all.
   */
  fields?: ReadonlySet<string> | undefined;
  /** The fields for a limit that it accepts; a limit in another one moves to the first. Absent: both. */
  limitFields?: readonly LimitField[] | undefined;
}

export const noQuirks: Quirks = {
  callIds: 'max64',
  system: 'anywhere',
  nullContent: 'null',
  thinkTags: false,
  lastTurn: 'any',
  sampling: 'any',
};

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

export interface ServedModel {
  readonly channel: string;
  readonly model: string;
}

export interface LearnedFact extends ServedModel {
  readonly fact: Fact;
  /** Epoch milliseconds. */
  readonly untilMs: number;
}
