/**
 * What refusals teach of a model, a line a lesson with its source. A lesson decides only whether the same candidate is asked
 * once more, in the form that the model wants; it cools, bills and excludes nothing. A sentence may quote what the caller wrote,
 * so it counts only where the request does not hold it.
 */
import { effortScale, type Quirks } from '../../upstreams/quirks.ts';
import type { JsonRecord } from '../../wire/json.ts';

interface Lesson {
  /** The machine-readable fields that have to fit. Absent: the sentence decides alone. */
  param?: RegExp;
  code?: RegExp;
  /** A sentence of the message. */
  says?: RegExp;
  /** Undefined: nothing. `sent`: the body that was refused. */
  teaches: Partial<Quirks> | ((message: string, sent: JsonRecord) => Partial<Quirks> | undefined);
}

export interface Lecture {
  param: string;
  code: string;
  message: string;
  /** Whether the message has the sentence, and the request has not. */
  says: (sentence: RegExp) => boolean;
}

/** What a refusal teaches that is not in force. Undefined: nothing, so that the refusal stands. */
export function taughtBy(
  { param, code, message, says }: Lecture,
  { sent, inForce }: { sent: JsonRecord; inForce: Partial<Quirks> },
): Partial<Quirks> | undefined {
  for (const lesson of lessons) {
    const isRight =
      lesson.param?.test(param) !== false &&
      lesson.code?.test(code) !== false &&
      (lesson.says === undefined || says(lesson.says));
    if (!isRight) continue;
    const { teaches } = lesson;
    const quirks = typeof teaches === 'function' ? teaches(message, sent) : teaches;
    if (quirks && !isKnown(quirks, inForce)) return quirks;
  }
  return undefined;
}

const isKnown = (quirks: Partial<Quirks>, inForce: Partial<Quirks>): boolean =>
  Object.entries(quirks).every(
    ([name, value]) => JSON.stringify(value) === JSON.stringify(inForce[name as keyof Quirks]),
  );

/** OpenAI's codes for a field that the model does not take, or not with this value. */
const unsupported = /^unsupported_(?:parameter|value)$/;
const effortField = /^reasoning[_.]effort$/;
const listed = /supported (?:values|levels|efforts)|input should be|expected one of/i;

/** The efforts that the message lists. */
function listedEfforts(message: string): Partial<Quirks> | undefined {
  const named = new Set(message.slice(message.search(listed)).match(/[a-z]+/g));
  const efforts = effortScale.filter((effort) => named.has(effort));
  return efforts.length === 0 ? undefined : { efforts };
}

/** A value outside the range that vendors have is the caller's mistake, whatever it is refused for. */
function noSampling(_message: string, sent: JsonRecord): Partial<Quirks> | undefined {
  const { temperature = 1, top_p: topP = 1 } = sent;
  const isOdd = Number(temperature) < 0 || Number(temperature) > 2 || Number(topP) < 0 || Number(topP) > 1;
  return isOdd ? undefined : { sampling: 'none' };
}

const lessons: readonly Lesson[] = [
  // A turn came back without its state. Gemini [ai.google.dev, "Thought signatures", 2026-06-22]
  { says: /\bmissing a thought_signature\b/, teaches: { wantsBack: 'thought_signature' } },
  // DeepSeek [api-docs.deepseek.com, "Thinking mode", 2026-05-25] and Kimi [MoonshotAI/kimi-cli 2141]
  {
    says: /`?reasoning_content`? in the thinking mode must be passed back|\breasoning_content is missing in assistant tool call message\b/,
    teaches: { wantsBack: 'reasoning_content' },
  },
  // DeepSeek in Anthropic's form [decolua/9router 2397, 2026-07-05], Claude ["Extended thinking", November 2026]
  {
    says: /`?content\[\]\.thinking`? in the thinking mode must be passed back|\bmust start with a thinking block\b/,
    teaches: { wantsBack: 'thinking' },
  },
  // Claude [pydantic/pydantic-ai 7989, 2026-09-02]
  {
    says: /set `thinking\.block_binding\.prefix_mismatch_behavior` to/,
    teaches: { bindsThinking: true },
  },
  // OpenAI's form: the field and the code are machine-readable, the values are named after them [livekit/agents 7169,
  // 2026-09-08].
  { param: effortField, code: /^unsupported_value$/, says: /Supported values are/, teaches: listedEfforts },
  { param: effortField, code: /^unsupported_parameter$/, teaches: { efforts: [] } },
  // OpenAI's models that do not reason; Claude before 4.5 [anthropics/claude-code 30010, 2026-03-02]
  {
    says: /Unrecognized request argument supplied: reasoning_effort|does not support the effort parameter/,
    teaches: { efforts: [] },
  },
  // Servers that validate by type: Anthropic's newest, DeepSeek's [theopenco/llmgateway 3462, 2026-08-07]
  {
    says: /effort\b.{0,80}(?:supported (?:values|levels|efforts)|input should be|expected one of)/i,
    teaches: listedEfforts,
  },
  // OpenAI [OpenHands/software-agent-sdk 1837, 2026-01-27; johny-b/llmcomp 69, 2026-04-20]
  { param: /^(?:temperature|top_p|top_k)$/, code: unsupported, teaches: noSampling },
  // Claude ["Migration guide", 2026-09-22; its version 2026-10-21; The-PR-Agent/pr-agent 2456, 2026-06-18], with the words
  // of OpenAI where a server leaves out the code
  {
    says: /\b(?:temperature|top_p|top_k)\b[`'"]? (?:is deprecated for|is not supported|does not support|may only be set to 1)|\b(?:temperature|top_p|top_k): Extra inputs are not permitted/,
    teaches: noSampling,
  },
  { says: /`temperature` and `top_p` cannot both be specified/, teaches: { sampling: 'one' } },
  // A forced call. Claude ["Extended thinking", can1357/oh-my-pi 12939, 2026-09-23], DeepSeek [BerriAI/litellm 37470,
  // 2026-08-19]
  { param: /^tool_choice/, code: unsupported, teaches: { forcedCalls: false } },
  {
    says: /does not support this tool_choice|when tool_choice forces tool use|\btool_choice\b.{0,60}\b(?:not supported|incompatible)\b/,
    teaches: { forcedCalls: false },
  },
  // How to think: Claude 4.5 and before [docker/docker-agent 3381, 2026-07-01], 4.7 and later [SigmaNight/basiliskLLM 1185,
  // 2026-05-05]
  {
    says: /adaptive thinking is not supported|thinking\.type\.adaptive"? is not supported/,
    teaches: { thinking: 'budget' },
  },
  { says: /thinking\.type\.enabled"? is not supported/, teaches: { thinking: 'adaptive' } },
  {
    says: /\bdoes not support (?:extended )?thinking\b|\bthinking: Extra inputs are not permitted/,
    teaches: { thinking: 'none' },
  },
  // Claude that thinks always [Fable 5, 2026-06-09; Opus 5.5's migration guide, 2026-09-22]
  {
    says: /thinking\.type\.(?:disabled|between_tools)"? is not supported/,
    teaches: (message) => ({
      thinkingOff: /Use .{0,20}between_tools/.test(message) ? 'between_tools' : 'always',
    }),
  },
  // OpenAI's reasoning models [EleutherAI/lm-evaluation-harness 3247, 2025-08-18]
  { param: /^stop$/, code: unsupported, teaches: { stops: false } },
  { says: /\bstop(?:_sequences)?\b[`'"]? (?:is|are) not supported/, teaches: { stops: false } },
  // The field for a limit: OpenAI ["Create chat completion"], Bedrock [CherryHQ/cherry-studio 9655]; older servers
  {
    param: /^max_tokens$/,
    code: /^unsupported_parameter$/,
    teaches: { limitField: 'max_completion_tokens' },
  },
  { says: /\buse [`'"]?max_completion_tokens/i, teaches: { limitField: 'max_completion_tokens' } },
  {
    param: /^max_completion_tokens$/,
    code: /^un(?:supported|known)_parameter$/,
    teaches: { limitField: 'max_tokens' },
  },
  {
    says: /Unrecognized request argument supplied: max_completion_tokens|\bmax_completion_tokens\b.{0,20}(?:not supported|not permitted)/,
    teaches: { limitField: 'max_tokens' },
  },
  // Gemini 3.6 [LibreChat-AI/agents 323, 2026-07-21], Claude ["Migration guide"]
  {
    says: /ending with a model turn are not supported|conversation must end with a user message|does not support assistant message prefill/,
    teaches: { lastTurn: 'user' },
  },
  // Templates of Qwen and others [BerriAI/litellm 39282]
  { says: /\bSystem message must be at the beginning\b/i, teaches: { system: 'first' } },
];
