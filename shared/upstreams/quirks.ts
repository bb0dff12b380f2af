/**
 * How an upstream differs from its dialect, and a model from others. A channel's row says it under `params`; else its type
 * knows it, else the table of models. This file names no type, no dialect and no model: docs/tables.md has the defaults.
 */
/** The fields of Chat Completions for a limit on output tokens. */
export const limitFields = ['max_tokens', 'max_completion_tokens'] as const;
export type LimitField = (typeof limitFields)[number];
/** The fields of all dialects for it. */
export const limitNames = [...limitFields, 'max_output_tokens'] as const;

/** Types of tools that the caller runs. All others run at the upstream, which charges for them. */
export const callerToolTypes: ReadonlySet<string> = new Set(['function', 'custom']);
/** Those of which the vendor of Claude knows the schema. */
const claudeToolTypes = /^(?:bash|text_editor|computer|memory)_\d+$/;

/** A tool without a type has a schema of its own. */
export const isCallerTool = (type: unknown): boolean =>
  type === undefined ||
  type === null ||
  (typeof type === 'string' && (callerToolTypes.has(type) || claudeToolTypes.test(type)));

/** Efforts from none to the most; every vendor knows some of them. */
export const effortScale = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** What a row may say of its upstream. The first of each is the default. */
export const callIdForms = ['max64', 'max40', 'alnum9'] as const;
export const systemPlaces = ['anywhere', 'first'] as const;
export const nullContents = ['null', 'empty'] as const;
export const returnedFields = ['reasoning_content', 'thought_signature', 'thinking'] as const;
export const unknownFieldChoices = ['drop', 'pass'] as const;
export const samplings = ['any', 'one', 'without_reasoning', 'none'] as const;
export const lastTurns = ['any', 'user'] as const;
export const thinkingForms = ['adaptive', 'budget', 'none'] as const;
export const thinkingOffs = ['omit', 'disabled', 'between_tools', 'always'] as const;

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
  callIdForm: (typeof callIdForms)[number];
  /** `first`: it accepts one system message, at the beginning. */
  systemPosition: (typeof systemPlaces)[number];
  /** `empty`: an assistant message of calls alone has the content "" instead of null. */
  nullContent: (typeof nullContents)[number];
  /** Reasoning comes inside the content, between `<think>` and `</think>`. */
  usesThinkTags: boolean;
  /** `user`: it refuses a conversation that ends with an answer. */
  lastTurnRole: (typeof lastTurns)[number];
  /** Which of `temperature` and `top_p` it accepts: both, one of them, neither unless it is sent the effort `none`, or neither. */
  sampling: (typeof samplings)[number];
  /** It accepts stop sequences. */
  supportsStop: boolean;
  /** The one kind of summary of its reasoning that it knows; every other one that is asked for becomes it. Absent: all. */
  summaryKind?: 'auto' | undefined;
  /** The efforts that it knows. Absent: the dialect's own. */
  efforts?: readonly string[] | undefined;
  /** How Messages asks it to think: `adaptive` with an effort, `budget` of tokens, or not at all. */
  thinkingForm: (typeof thinkingForms)[number];
  /** What keeps it from thinking there. `omit`: it does not think unless asked. `always`: nothing does. */
  thinkingOff: (typeof thinkingOffs)[number];
  /** It accepts a tool choice that forces a call. No Claude does while it thinks. */
  supportsForcedCalls: boolean;
  /** A thinking block is valid only while all that stood before it is unchanged. */
  bindsThinking: boolean;
  /** Encrypted reasoning is dropped when what stood before it was changed, and instructions hold for one turn. */
  bindsPrefix: boolean;
  /** It compacts conversations, where its dialect has a form for that. Else it is asked for a summary in words. */
  supportsCompaction: boolean;
  /** The shortest prompt that its cache takes. */
  cacheMinTokens: number;
  /** How many cache breakpoints it takes. */
  cacheBreakpointsMax: number;
  /** Its documented maximum. Absent: unknown. */
  outputTokensMax?: number | undefined;
  /** It accepts tools whose input is free text. Absent: as most upstreams of its dialect do. */
  supportsCustomTools?: boolean | undefined;
  /**
   * What it wants back with every turn that called tools; where it is lost, the vendor's replacement goes up. `thinking`
   * has none: such a call goes up without thinking. Absent: what a turn's own state says.
   */
  wantsBack?: (typeof returnedFields)[number] | undefined;
  /**
   * Which of `echoedFields` it accepts in an assistant message; others are not sent, nor is the index of calls.
   * Absent: all, so that state comes back by itself from clients that keep it.
   */
  acceptedEchoes?: readonly string[] | undefined;
  /**
   * The fields of a request that it accepts; others are dropped, as are unknown fields of messages, their parts and
   * tools. Absent: all.
   */
  acceptedFields?: ReadonlySet<string> | undefined;
  /** It counts its thinking in the total alone. Absent: its counts name it. */
  totalHidesThinking?: true | undefined;
  /** It gives vectors as base64, a third of the length. Absent: not asked, since some servers refuse that [stevereiner/flexible-graphrag 17]. */
  packsVectors?: boolean | undefined;
  /** The one field for a limit that it accepts; a limit in another one moves to it. Absent: both. */
  limitField?: LimitField | undefined;
}

export const defaultQuirks: Quirks = {
  callIdForm: 'max64',
  systemPosition: 'anywhere',
  nullContent: 'null',
  usesThinkTags: false,
  lastTurnRole: 'any',
  sampling: 'any',
  supportsStop: true,
  thinkingForm: 'adaptive',
  thinkingOff: 'omit',
  supportsForcedCalls: true,
  bindsThinking: false,
  bindsPrefix: false,
  supportsCompaction: true,
  cacheMinTokens: 1024,
  cacheBreakpointsMax: 4,
};

// The same as a channel's row writes it, in `params` and for some models in `params.model_rules`.

/** What a rule may be: one of some texts, a list of them, a whole number between two, true or false. */
export type RuleForm =
  | { oneOf: readonly string[] }
  | { listOf: readonly string[] }
  | { least: number; most: number }
  | 'flag';

/** The rules that a row may name, facts too: the quirk of each, and what it may be. */
export const ruleForms = {
  efforts: ['efforts', { listOf: effortScale }],
  thinking: ['thinkingForm', { oneOf: thinkingForms }],
  thinking_off: ['thinkingOff', { oneOf: thinkingOffs }],
  forced_calls: ['supportsForcedCalls', 'flag'],
  sampling: ['sampling', { oneOf: samplings }],
  stop: ['supportsStop', 'flag'],
  wants_back: ['wantsBack', { oneOf: returnedFields }],
  binds_thinking: ['bindsThinking', 'flag'],
  binds_prefix: ['bindsPrefix', 'flag'],
  compaction: ['supportsCompaction', 'flag'],
  cache_min_tokens: ['cacheMinTokens', { least: 0, most: 10_000_000 }],
  cache_breakpoints: ['cacheBreakpointsMax', { least: 0, most: 4 }],
  max_output_tokens: ['outputTokensMax', { least: 1, most: 10_000_000 }],
  limit_field: ['limitField', { oneOf: limitFields }],
  last_turn: ['lastTurnRole', { oneOf: lastTurns }],
  system: ['systemPosition', { oneOf: systemPlaces }],
  null_content: ['nullContent', { oneOf: nullContents }],
  call_ids: ['callIdForm', { oneOf: callIdForms }],
  think_tags: ['usesThinkTags', 'flag'],
  custom_tools: ['supportsCustomTools', 'flag'],
} as const satisfies Record<string, readonly [keyof Quirks, RuleForm]>;

export type RuleName = keyof typeof ruleForms;
/** The rules of a model as a row writes them. Names that are unknown here are not used. */
export type WrittenRules = { [Name in RuleName]?: Quirks[(typeof ruleForms)[Name][0]] | undefined };

const forms = Object.entries(ruleForms) as [RuleName, readonly [keyof Quirks, RuleForm]][];

/** The quirks that written rules name. */
export const convertRules = (written: WrittenRules): Partial<Quirks> =>
  Object.fromEntries(
    forms.flatMap(([name, [quirk]]) => (written[name] === undefined ? [] : [[quirk, written[name]]])),
  ) as Partial<Quirks>;

/** Quirks as a row would write them. */
export const writeRules = (quirks: Partial<Quirks>): WrittenRules =>
  Object.fromEntries(
    forms.flatMap(([name, [quirk]]) => (quirks[quirk] === undefined ? [] : [[name, quirks[quirk]]])),
  );

/** A rule as a fact: `efforts:low+high`, `sampling:none`. */
export const listRuleFacts = (quirks: Partial<Quirks>): `${RuleName}:${string}`[] =>
  Object.entries(writeRules(quirks)).map(
    ([name, value]) => `${name as RuleName}:${[value].flat().join('+')}` as const,
  );

/** The rule of a fact. Empty for other facts, and for values that no rule has. */
export function parseRuleFact(fact: string): WrittenRules {
  const [name = '', text = ''] = fact.split(':');
  if (!Object.hasOwn(ruleForms, name)) return {};
  const form: RuleForm = ruleForms[name as RuleName][1];
  if (form === 'flag') return { [name]: text === 'true' };
  if ('most' in form) return { [name]: Number(text) };
  if ('listOf' in form) return { [name]: text.split('+').filter((each) => form.listOf.includes(each)) };
  return form.oneOf.includes(text) ? { [name]: text } : {};
}

/**
 * What answers taught about a model on a channel. Requests use it at once; the publisher says it on the channel's row.
 * Facts end by themselves: channels change.
 */

/**
 * `keeps_state`: its answers with tool calls carried state that it wants back. `speaks:<dialect>`: it refused calls with
 * tools until they came in this dialect. `refuses_limit:<tokens>`: its maximum of output tokens is below this limit.
 * `limit_over_context:<tokens>`: with this limit the prompt did not fit its context. `<rule>:<value>`: a rule of the model
 * (model-rules.ts), as `efforts:low+high`.
 */
export type Fact =
  | 'keeps_state'
  | `refuses_limit:${number}`
  | `limit_over_context:${number}`
  | `speaks:${string}`
  | `${RuleName}:${string}`;

/** The lowest limit that a model is known to refuse. Undefined: none is known. */
export function findRefusedLimit(facts: readonly LearnedFact[]): number | undefined {
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

/** What a fact is about: of facts about one rule of a model the newest counts. */
export const subjectOf = ({ fact, channel, model }: ServedModel & Pick<LearnedFact, 'fact'>): string =>
  `${Object.keys(parseRuleFact(fact))[0] ?? fact}|${channel}|${model}`;

/** Of facts about one thing the one that ends last, which was learned last. */
export function pickNewestFacts(facts: readonly LearnedFact[]): LearnedFact[] {
  const newest = new Map<string, LearnedFact>();
  for (const one of facts) {
    const subject = subjectOf(one);
    if (one.untilMs > (newest.get(subject)?.untilMs ?? 0)) newest.set(subject, one);
  }
  return [...newest.values()];
}
