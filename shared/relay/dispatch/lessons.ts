/**
 * Lessons that refusals teach about a model, one a line with its source. A lesson decides only whether the same candidate is
 * asked once more, in the form that the model wants. It never cools, bills or excludes anything.
 */
import { effortScale, limitFields, optionalRequestFields, type Quirks } from '../../upstreams/quirks.ts';
import { asRecord, type JsonRecord } from '../../wire/json.ts';

type Taught = Partial<Quirks> | ((refused: Refused) => Partial<Quirks> | undefined);
type Lesson = readonly [when: RegExp, teaches: Taught];

interface Refused {
  /** The machine-readable code and field of the error, as `unsupported_value temperature`. */
  field: string;
  message: string;
  /** Tests for a sentence that only the message has: it may quote what the caller wrote. */
  says: (sentence: RegExp) => boolean;
  /** The body that was refused. */
  sent: JsonRecord;
  inForce: Partial<Quirks>;
}

/** Finds the first lesson of a refusal that is not in force yet. */
export function findLesson(refused: Refused): Partial<Quirks> | undefined {
  const { field, says, inForce } = refused;
  const right = [...fields.filter(([when]) => when.test(field)), ...sentences.filter(([when]) => says(when))];
  const taught = right.map(([, teaches]) => (typeof teaches === 'function' ? teaches(refused) : teaches));
  const isInForce = ([name, value]: [string, unknown]): boolean =>
    JSON.stringify(value) === JSON.stringify(inForce[name as keyof Quirks]);
  return taught.find((quirks) => quirks && !Object.entries(quirks).every(isInForce));
}

const beforeEfforts =
  /effort\b.{0,80}(?:supported (?:values|levels|efforts)|input should be|expected (?:one of )?(?=[`'"]))/i;
/** Matches messages that list the values while another field of the error names the parameter. */
const supported = /\bsupported values\b/i;
/** Words, in quotation marks or not, between commas, bars, `or` and `and`. */
const wordList = /[`'"]?[a-z]+[`'"]?(?:\s*(?:[,|]|\b(?:or|and)\b)\s*(?:(?:or|and)\s+)?[`'"]?[a-z]+[`'"]?)*/g;

/**
 * The first list behind `before`, since validators repeat the value that was refused behind it. One that is quoted in front
 * may be made to look like a list: then the request holds `before`, too.
 */
const readEffortsBehind =
  (before: RegExp) =>
  ({ message, says }: Refused) => {
    if (!says(before)) return undefined;
    const { 0: found = '', index = 0 } = before.exec(message) ?? {};
    for (const [list] of message.slice(index + found.length).matchAll(wordList)) {
      const named = new Set(list.match(/[a-z]+/g));
      const efforts = effortScale.filter((effort) => named.has(effort));
      if (efforts.length > 0) return { efforts };
    }
    return undefined;
  };

/** A value outside the range that vendors have is the caller's mistake, whatever it is refused for. */
function learnSampling({ sent }: Refused): Partial<Quirks> | undefined {
  const { temperature = 1, top_p: topP = 1 } = sent;
  const isOdd = Number(temperature) < 0 || Number(temperature) > 2 || Number(topP) < 0 || Number(topP) > 1;
  return isOdd ? undefined : { sampling: 'none' };
}

/** A form of choice that few servers know may be refused where a usual one is not. */
function learnForcedCalls({ sent: { tool_choice: choice } }: Refused): Partial<Quirks> | undefined {
  const { type, function: called, ...more } = asRecord(choice);
  const isUsual =
    choice === 'required' ||
    (['function', 'tool', 'any'].includes(String(type)) &&
      [...Object.keys(more), ...Object.keys(asRecord(called))].every((field) => choiceFields.has(field)));
  return isUsual ? { supportsForcedCalls: false } : undefined;
}

const choiceFields = new Set(['name', 'disable_parallel_tool_use']);

// Servers that reject unknown fields.

/**
 * The sentences of Groq and Cerebras (`property 'x' is unsupported`), JSON Schema, Google, Pydantic in vLLM and Anthropic's form, and
 * common ones. Sources: continuedev/continue 2461, BerriAI/litellm 12635 and 30835, editor-code-assistant/eca 231.
 */
const unknownFieldSentences = [
  /\b(?:unknown|unrecognized|unexpected|unsupported)(?: request| keyword)? (?:argument|parameter|property|field|key|name)s?(?: supplied)?:? *\\?[`'"]?(\w+)/i,
  /(?:^|[\s`'"])(\w+)[`'"]?(?:: Extra inputs are not permitted|[`'"] (?:is|was|were) (?:unsupported|unexpected|not (?:supported|permitted|allowed|recognized)))/i,
  /'extra_forbidden', 'loc': \('body', '(\w+)'/,
];
/** Without it the relay estimates the usage of streams, so it goes only if the server rejects it by name. */
const usageField = 'stream_options';
const unknownFieldCodes = /^(?:unknown|unrecognized)_(?:parameter|field|argument) (\w+)$/;

/**
 * Finds the optional fields that the server rejects as unknown, plus those already left out. Any other field, such as one
 * with a price or a meaning, is still sent. A server that rejects a second one is strict, so it gets none of the optional fields.
 */
export function findRefusedFields(
  { field, message, says, sent, inForce }: Refused,
  listed: readonly string[],
): Partial<Quirks> | undefined {
  const inWords = unknownFieldSentences.flatMap((sentence) => {
    const [words = '', name] = sentence.exec(message) ?? [];
    return name !== undefined && says(new RegExp(words.replaceAll(/[^\w ]/g, String.raw`\$&`))) ? [name] : [];
  });
  const named = new Set([...listed, unknownFieldCodes.exec(field)?.[1], ...inWords]);
  const isRejected = (name: string): boolean => named.has(name) && Object.hasOwn(sent, name);
  const { refusedFields: known = [] } = inForce;
  const isStrict = known.length > 0 && optionalRequestFields.some(isRejected);
  const refused = optionalRequestFields.filter(
    (name) => isRejected(name) || (isStrict && name !== usageField && Object.hasOwn(sent, name)),
  );
  const isEffort = isRejected('reasoning_effort');
  const limit = limitFields.find(isRejected);
  if (refused.length === 0 && !isEffort && limit === undefined) return undefined;
  return {
    ...(limit && { limitField: limit === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens' }),
    ...(refused.length > 0 && { refusedFields: [...new Set([...known, ...refused])] }),
    ...(isEffort && { efforts: [] }),
  };
}

/**
 * Templates of Qwen, Mistral and others want one system message, first [BerriAI/litellm 39282; ollama/ollama 17774;
 * vllm-project/vllm 41114]. Some servers answer their errors with a 500.
 */
export const systemInMiddle =
  /\bsystem (?:message|role|prompt)s?\b.{0,40}\b(?:beginning|start|first|not (?:supported|allowed))|\bconversation roles must alternate\b|\bjinja\b/i;

/** OpenAI's form [OpenHands/software-agent-sdk 1837, 2026-01-27; johny-b/llmcomp 69, 2026-04-20; "Create chat completion"]. */
const fields: readonly Lesson[] = [
  [/^unsupported_parameter reasoning[_.]effort$/, { efforts: [] }],
  // [anomalyco/opencode 4451, 2025-11-18; openai/openai-agents-python 2089]
  [/^(?:unsupported_value|undefined) reasoning[_.]effort$/, readEffortsBehind(supported)],
  [/^unsupported_(?:parameter|value) (?:temperature|top_p|top_k)$/, learnSampling],
  [/^unsupported_(?:parameter|value) tool_choice/, learnForcedCalls],
  [/^unsupported_(?:parameter|value) stop$/, { supportsStop: false }],
  [/^unsupported_parameter max_tokens$/, { limitField: 'max_completion_tokens' }],
  [/^(?:unsupported|unknown)_parameter max_completion_tokens$/, { limitField: 'max_tokens' }],
];

const sentences: readonly Lesson[] = [
  // A turn came back without its state. Gemini [ai.google.dev, "Thought signatures", 2026-06-22]
  [/\bmissing a thought_signature\b/, { wantsBack: 'thought_signature' }],
  // DeepSeek [api-docs.deepseek.com, "Thinking mode", 2026-05-25] and Kimi [MoonshotAI/kimi-cli 2141]
  [/`?reasoning_content`? in the thinking mode must be passed back/, { wantsBack: 'reasoning_content' }],
  [/\breasoning_content is missing in assistant tool call message\b/, { wantsBack: 'reasoning_content' }],
  // DeepSeek in Anthropic's form [decolua/9router 2397, 2026-07-05], Claude ["Extended thinking", November 2026]
  [/`?content\[\]\.thinking`? in the thinking mode must be passed back/, { wantsBack: 'thinking' }],
  [/\bmust start with a thinking block\b/, { wantsBack: 'thinking' }],
  // Claude [pydantic/pydantic-ai 7989, 2026-09-02]
  [/set `thinking\.block_binding\.prefix_mismatch_behavior` to/, { bindsThinking: true }],
  // OpenAI [livekit/agents 7169, 2026-09-08] and servers that validate by type [theopenco/llmgateway 3462, 2026-08-07]
  [beforeEfforts, readEffortsBehind(beforeEfforts)],
  // OpenAI's models that do not reason, Claude before 4.5 [anthropics/claude-code 30010, 2026-03-02], typed servers in Rust
  // [docs.rs/serde, "Error": unknown_field]
  [
    /Unrecognized request argument supplied: reasoning_effort|unknown field `reasoning_effort`|not support the effort parameter/,
    { efforts: [] },
  ],
  // Claude ["Migration guide", 2026-09-22; its version 2026-10-21; The-PR-Agent/pr-agent 2456, 2026-06-18]
  [
    /\b(?:temperature|top_[pk])\b[`'"]? (?:is deprecated|is not supported|does not support|may only be)/,
    learnSampling,
  ],
  [/\b(?:temperature|top_[pk]): Extra inputs are not permitted/, learnSampling],
  [/`temperature` and `top_p` cannot both be specified/, { sampling: 'one' }],
  // Claude ["Extended thinking"; can1357/oh-my-pi 12939, 2026-09-23], DeepSeek [BerriAI/litellm 37470, 2026-08-19]
  [/not support this tool_choice|when tool_choice forces tool use/, learnForcedCalls],
  [/\btool_choice\b.{0,60}\b(?:not supported|incompatible)\b/, learnForcedCalls],
  // Claude 4.5 and before [docker/docker-agent 3381, 2026-07-01], 4.7 and later [SigmaNight/basiliskLLM 1185, 2026-05-05]
  [
    /adaptive thinking is not supported|thinking\.type\.adaptive"? is not supported/,
    { thinkingForm: 'budget' },
  ],
  [/thinking\.type\.enabled"? is not supported/, { thinkingForm: 'adaptive' }],
  [
    /\bnot support (?:extended )?thinking\b|\bthinking: Extra inputs are not permitted/,
    { thinkingForm: 'none' },
  ],
  // Claude that thinks always [Fable 5, 2026-06-09; Opus 5.5's migration guide, 2026-09-22] or between calls at least
  [
    /thinking\.type\.disabled"? is not supported.{0,20} Use .{0,20}between_tools/,
    { thinkingOff: 'between_tools' },
  ],
  [/thinking\.type\.(?:disabled|between_tools)"? is not supported/, { thinkingOff: 'always' }],
  // OpenAI's reasoning models [EleutherAI/lm-evaluation-harness 3247, 2025-08-18], Grok [lidge-jun/opencodex 5278, 2026-09-20;
  // BerriAI/litellm 12635, 2025-07-16]
  [/\bstop(?:_sequences)?\b[`'"]? (?:is|are) not supported/, { supportsStop: false }],
  [/\bnot support(?: parameter|ed on this model:) stop\b/, { supportsStop: false }],
  // Bedrock [CherryHQ/cherry-studio 9655]; older servers, and typed ones
  [/\buse [`'"]?max_completion_tokens|unknown field `max_tokens`/i, { limitField: 'max_completion_tokens' }],
  [
    /(?:Unrecognized request argument supplied: |unknown field `)max_completion_tokens/,
    { limitField: 'max_tokens' },
  ],
  // Gemini 3.6 [LibreChat-AI/agents 323, 2026-07-21], Claude ["Migration guide"]
  [
    /ending with a model turn are not supported|not support assistant message prefill/,
    { lastTurnRole: 'user' },
  ],
  [/\bconversation must end with a user message\b/, { lastTurnRole: 'user' }],
  [systemInMiddle, { systemPosition: 'first' }],
  // These reject another vendor's tool call ids: Mistral [anomalyco/opencode 1680, 2025-08-07], OpenAI, and Claude behind chat
  // [farion1231/cc-switch 1181].
  [/\btool call id\b.{0,200}\bmust be a-z, A-Z, 0-9, with a length of 9\b/i, { callIdForm: 'alnum9' }],
  [/\btool_(?:calls?|use)\b.{0,20}\bid\b.{0,20}String should match pattern/, { callIdForm: 'alnum9' }],
  [/\btool_calls?\b.{0,20}\bid\b.{0,80}maximum length 40\b/, { callIdForm: 'max40' }],
];
