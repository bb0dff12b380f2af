/**
 * Quirks: how an upstream differs from its dialect, and a model from others; as a row writes them, and as learned from
 * refusals. Names no type, dialect or model: docs/tables.md has the defaults.
 */
import type { Words } from './vocabulary.ts';

/** The fields of Chat Completions for a limit on output tokens. */
export const limitFields = ['max_tokens', 'max_completion_tokens'] as const;
export type LimitField = (typeof limitFields)[number];
/** The fields of all dialects for it. */
export const limitNames = [...limitFields, 'max_output_tokens'] as const;

/** Types of tools that the caller runs. The upstream runs all others and charges for them. */
export const callerToolTypes: ReadonlySet<string> = new Set(['function', 'custom']);
/** Tools whose schema Claude's vendor knows. */
const claudeToolTypes = /^(?:bash|text_editor|computer|memory)_\d+$/;

/** A tool without a type has a schema of its own. */
export const isCallerTool = (type: unknown): boolean =>
  type === undefined ||
  type === null ||
  (typeof type === 'string' && (callerToolTypes.has(type) || claudeToolTypes.test(type)));

/** In ascending order. Every vendor knows some of them. */
export const effortScale = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
/** Clients' words for efforts above the scale [openai/codex, `ReasoningEffort::Ultra`, November 2026]. */
const highestEfforts: ReadonlySet<string> = new Set(['ultra', 'maximum', 'highest', 'extreme']);

export const effortWordOf = (effort: string): string => effort.trim().toLowerCase();

export const rankEffort = (effort: string): number =>
  effortScale.indexOf(effort as (typeof effortScale)[number]);

/** Returns undefined for `auto` and for unknown words, which must not become the most expensive effort. */
export function readEffort(asked: string): string | undefined {
  const word = effortWordOf(asked);
  return rankEffort(word) >= 0 || highestEfforts.has(word) ? word : undefined;
}

/** Values of a row's rules. The first of each is the default. */
export const callIdForms = ['max64', 'max40', 'alnum9'] as const;
export const systemPlaces = ['anywhere', 'first'] as const;
export const nullContents = ['null', 'empty'] as const;
export const returnedFields = ['reasoning_content', 'thought_signature', 'thinking'] as const;
export const unknownFieldChoices = ['drop', 'pass'] as const;
export const windowChoices = ['submit', 'run_at_once'] as const;
export const samplings = ['any', 'one', 'without_reasoning', 'none'] as const;
export const lastTurns = ['any', 'user'] as const;
export const thinkingForms = ['adaptive', 'budget', 'none'] as const;
export const thinkingOffs = ['omit', 'disabled', 'between_tools', 'always'] as const;

/** A user's turn for vendors that require one. */
export const continuation = 'Continue.';

/** Fields of answers, besides OpenAI's, that clients send back with a message. */
export const echoedFields = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'extra_content',
  'images',
] as const;

/**
 * Fields that a call can do without: none changes its price or the content that the answer may hold. `x-relay-dropped` names those
 * that were left out.
 */
export const optionalRequestFields = [
  'user',
  'safety_identifier',
  'metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'seed',
  'logprobs',
  'top_logprobs',
  'verbosity',
  'top_k',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'stream_options',
] as const;

export interface Quirks {
  /** Other ids of tool calls are mapped one to one within the request. */
  callIdForm: (typeof callIdForms)[number];
  /** `first`: only one system message, at the beginning. */
  systemPosition: (typeof systemPlaces)[number];
  /** `empty`: an assistant message with calls only has the content "" instead of null. */
  nullContent: (typeof nullContents)[number];
  /** Its reasoning is in the content, between `<think>` and `</think>`. */
  usesThinkTags: boolean;
  /** `user`: it refuses a conversation that ends with an answer. */
  lastTurnRole: (typeof lastTurns)[number];
  /** Support of `temperature` and `top_p`: both, one, neither unless the effort is `none`, or neither. */
  sampling: (typeof samplings)[number];
  supportsStop: boolean;
  /** The only kind of reasoning summary that it accepts, sent in place of any other. */
  summaryKind?: 'auto' | undefined;
  /** The default is the dialect's own. */
  efforts?: readonly string[] | undefined;
  /** In Messages: `adaptive` with an effort, a `budget` of tokens, or no thinking. */
  thinkingForm: (typeof thinkingForms)[number];
  /** How Messages turns thinking off. `omit`: it does not think unless asked. `always`: nothing turns it off. */
  thinkingOff: (typeof thinkingOffs)[number];
  /** No Claude supports it while it thinks. */
  supportsForcedCalls: boolean;
  /** A thinking block is valid only while everything before it is unchanged. */
  bindsThinking: boolean;
  /** Encrypted reasoning is dropped when anything before it changes, and instructions hold for one turn. */
  bindsPrefix: boolean;
  /** Compacts conversations, if its dialect can ask for it. Others are asked for a summary in words. */
  supportsCompaction: boolean;
  /** Can store a conversation for its client, provided that the channel's type can, or that its row sets this. */
  holdsThreads: boolean;
  /** The shortest prompt that its cache accepts. */
  cacheMinTokens: number;
  cacheBreakpointsMax: number;
  /** As documented. */
  outputTokensMax?: number | undefined;
  /** Supports tools whose input is free text. */
  supportsCustomTools?: boolean | undefined;
  /**
   * The state that must come back with every turn that called tools. If it is lost, the vendor's replacement is sent;
   * `thinking` has none, so such a call is sent without thinking. The default is what a turn's own state says.
   */
  wantsBack?: (typeof returnedFields)[number] | undefined;
  /**
   * The `echoedFields` that it accepts in an assistant message; others are not sent, nor is the index of calls. The
   * default is all, so that state returns by itself from clients that keep it.
   */
  acceptedEchoes?: readonly string[] | undefined;
  /**
   * The fields of a request that it accepts. Others are dropped, as are unknown fields of messages, their content and
   * tools. The default is all.
   */
  acceptedFields?: ReadonlySet<string> | undefined;
  /** Counts its thinking only in the total. */
  totalHidesThinking?: true | undefined;
  /**
   * Sends vectors as base64, a third of the length. Not requested by default, since some servers refuse it
   * [stevereiner/flexible-graphrag 17].
   */
  packsVectors?: boolean | undefined;
  /** Optional fields that its server refused as unknown. */
  refusedFields?: readonly string[] | undefined;
  /** Accepts `user` and `reasoning_effort`, which the relay derives from a Messages request. */
  takesDerivedFields?: true | undefined;
  /** The only field for a limit that it accepts; a limit in another field moves to it. */
  limitField?: LimitField | undefined;
  /** Vocabulary lines of the channel's row. */
  words?: Words | undefined;
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
  holdsThreads: true,
  cacheMinTokens: 1024,
  cacheBreakpointsMax: 4,
};

// Rules as a channel's row writes them, in `params` and for some models in `params.model_rules`.

/** One of some texts, a list of them, a whole number in a range, true or false. */
export type RuleForm =
  | { oneOf: readonly string[] }
  | { listOf: readonly string[] }
  | { least: number; most: number }
  | 'flag';

/** The rules of rows and facts: the quirk of each, and its values. */
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
  threads: ['holdsThreads', 'flag'],
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
  refused_fields: ['refusedFields', { listOf: optionalRequestFields }],
} as const satisfies Record<string, readonly [keyof Quirks, RuleForm]>;

export type RuleName = keyof typeof ruleForms;
/** Unknown names are ignored. */
export type WrittenRules = { [Name in RuleName]?: Quirks[(typeof ruleForms)[Name][0]] | undefined };

const forms = Object.entries(ruleForms) as [RuleName, readonly [keyof Quirks, RuleForm]][];

export const convertRules = (written: WrittenRules): Partial<Quirks> =>
  Object.fromEntries(
    forms.flatMap(([name, [quirk]]) => (written[name] === undefined ? [] : [[quirk, written[name]]])),
  ) as Partial<Quirks>;

export const writeRules = (quirks: Partial<Quirks>): WrittenRules =>
  Object.fromEntries(
    forms.flatMap(([name, [quirk]]) => (quirks[quirk] === undefined ? [] : [[name, quirks[quirk]]])),
  );

/** Facts such as `efforts:low+high`, `sampling:none`. */
export const listRuleFacts = (quirks: Partial<Quirks>): `${RuleName}:${string}`[] =>
  Object.entries(writeRules(quirks)).map(
    ([name, value]) => `${name as RuleName}:${[value].flat().join('+')}` as const,
  );

/** Empty for facts of other kinds and for invalid values. */
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
 * Facts that answers taught about a model on a channel. Requests use them at once; the publisher writes them on the
 * channel's row. They expire, because channels change.
 */

/**
 * `keeps_state`: its answers with tool calls carried state that it wants back. `speaks:<dialect>`: it refused calls with
 * tools until they came in this dialect. `refuses_limit:<tokens>`: its maximum of output tokens is below this limit.
 * `limit_over_context:<tokens>`: with this limit the prompt did not fit its context. `finish_word:<word>+<count>`,
 * `error_word:<word>+<count>`: how often the channel sent a word that the vocabulary lacks. `<rule>:<value>`: a rule of
 * the model (model-rules.ts), such as `efforts:low+high`.
 */
export type Fact =
  | 'keeps_state'
  | `refuses_limit:${number}`
  | `limit_over_context:${number}`
  | `speaks:${string}`
  | `${WordKind}_word:${string}+${number}`
  | `${RuleName}:${string}`;

/** A word is a finish reason or belongs to an error. */
export type WordKind = 'finish' | 'error';
/** The model in facts about words, because words depend on the channel alone. */
export const anyModel = '*';

export function parseWordFact(fact: string): { kind: WordKind; word: string; count: number } | undefined {
  const [, kind, word = '', count] = /^(finish|error)_word:(\w+)\+(\d+)$/.exec(fact) ?? [];
  return kind === 'finish' || kind === 'error' ? { kind, word, count: Number(count) } : undefined;
}

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

/** Only the newest fact about one rule of a model counts. */
export const subjectOf = ({ fact, channel, model }: ServedModel & Pick<LearnedFact, 'fact'>): string =>
  `${Object.keys(parseRuleFact(fact))[0] ?? fact.replace(/(?<=_word:\w+)\+\d+$/, '')}|${channel}|${model}`;

/** The fact that expires last was learned last. */
export function pickNewestFacts(facts: readonly LearnedFact[]): LearnedFact[] {
  const newest = new Map<string, LearnedFact>();
  for (const one of facts) {
    const subject = subjectOf(one);
    if (one.untilMs > (newest.get(subject)?.untilMs ?? 0)) newest.set(subject, one);
  }
  return [...newest.values()];
}
