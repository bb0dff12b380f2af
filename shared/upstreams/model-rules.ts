/**
 * Rules of models, whoever serves them: one table of families, one line per rule with its source. A channel's row
 * overrides a line (`params.model_rules`), and the refusals of a model override both for an hour. No other file knows
 * a model's name.
 */
import { effortScale, type Quirks } from './quirks.ts';

/**
 * Earlier lines win, field by field.
 * @param limitField the channel's own: servers of such a model that accept another field for a limit keep it
 */
export function findModelRules(model: string, limitField: string): Partial<Quirks> {
  const fitting = table.filter(([models]) => models.test(model)).toReversed();
  const { limitField: own, ...rules }: Partial<Quirks> = Object.assign({}, ...fitting.map((line) => line[1]));
  return own !== undefined && own === limitField ? { ...rules, limitField: own } : rules;
}

const lowToHigh = ['low', 'medium', 'high'];
const lowToXhigh = [...lowToHigh, 'xhigh'];
const lowToMax = [...lowToXhigh, 'max'];

/** OpenAI's names, alone or behind a vendor's name as `openai/` and `openai.`. */
const gpt = (name: string): RegExp => new RegExp(String.raw`(?:^|[./])gpt-${name}`, 'i');
const gemini = (name: string): RegExp => new RegExp(String.raw`\bgemini-${name}`, 'i');

/** No minor version after the major one. A date is not a minor version. */
const noMinor = String.raw`(?![-.]\d{1,2}(?!\d))`;
/**
 * Claude's names: `claude-opus-4-7`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku-20241022`.
 * A version without its minor one fits all minor ones.
 */
const claude = (families: string, version: string): RegExp =>
  new RegExp(
    String.raw`(?:${families})-(?:${version})(?!\d)|claude-(?:${version})(?:[-.]\d)?-(?:${families})`,
    'i',
  );
const anyClaude = 'opus|sonnet|haiku';
const mythical = 'fable|mythos';

/** Most specific first. Sources: the vendors' pages of November 2026, or the thread that is named with its date. */
const table: readonly [models: RegExp, Partial<Quirks>][] = [
  // OpenAI. Models that reason accept no sampling but 1 while they do, no stop sequences but o1, and one of the fields for a limit
  // [platform.openai.com/docs/guides/reasoning; EleutherAI/lm-evaluation-harness 3247, 2025-08-18].
  [/(^|[./])o1\b/i, { supportsStop: true }],
  [
    /(^|[./])(o[134]\b|gpt-(?!35)([5-9]|\d{2})(?!.*chat))/i,
    { sampling: 'without_reasoning', supportsStop: false, limitField: 'max_completion_tokens' },
  ],
  // Efforts by variant [anomalyco/opencode 26268, 2026-05-08, by the vendor's own refusals; openai/codex 6647, 2025-11-14].
  [gpt(String.raw`5-chat`), { efforts: [] }],
  [gpt(String.raw`5\.\d-chat`), { efforts: ['medium'] }],
  [gpt(String.raw`5-pro`), { efforts: ['high'] }],
  [gpt(String.raw`5\.[2-5]-pro`), { efforts: ['medium', 'high', 'xhigh'] }],
  [gpt(String.raw`5\.1-codex-max`), { efforts: lowToXhigh }],
  [gpt(String.raw`5(\.1)?-codex`), { efforts: lowToHigh }],
  [gpt(String.raw`5\.[2-5]-codex`), { efforts: lowToXhigh }],
  // Efforts by version: "Supported values are" of the vendor's refusals [anomalyco/opencode 4451, 2025-11-18, for 5.1;
  // docs.rs meerkat-core 0.6.25 for 5.2 to 5.5; pydantic/pydantic-ai 7081, July 2026, for 5.6].
  [gpt(String.raw`5(?![.\d])`), { efforts: ['minimal', ...lowToHigh] }],
  [gpt(String.raw`5\.1(?!\d)`), { efforts: ['none', ...lowToHigh] }],
  [gpt(String.raw`5\.[2-5](?!\d)`), { efforts: ['none', ...lowToXhigh] }],
  [gpt(String.raw`5\.[6-9](?!\d)`), { efforts: ['none', ...lowToMax] }],
  // [UKGovernmentBEIS/inspect_ai 5254, 2026-09-04; latest-model guide of 6.1, 2026-09-29: Sol has no `none`, Terra has]
  // Few have access to Rosalind, and nobody published its efforts. It gets those of Astra, which has the same size.
  [gpt(String.raw`(6-astra|6-rosalind|6\.1-sol)`), { efforts: lowToMax }],
  [gpt(String.raw`6(\.[01])?(?![.\d])`), { efforts: ['none', ...lowToMax] }],
  // Reasoning is dropped after an edit of the prefix [guides/keep-prefix-unchanged, 2026-11-17]. A GPT that nobody knows
  // is like this, the newest.
  [gpt(String.raw`(?!35)(6\.([2-9]|\d{2})|[7-9]|\d{2})`), { efforts: lowToMax, bindsPrefix: true }],
  // [platform.openai.com/docs/guides/reasoning; for gpt-oss its model card, 2025-08-05]
  [/(^|[./])(o[134]\b|gpt-oss)/i, { efforts: lowToHigh }],
  // They do not reason: "Unrecognized request argument supplied: reasoning_effort".
  [gpt(String.raw`(3\.?5|4)`), { efforts: [] }],

  // Claude [platform.claude.com, "Models overview", "Adaptive thinking", "Effort", "Prompt caching", November 2026].
  [claude(mythical, 'preview'), { cacheMinTokens: 2048, bindsThinking: false }],
  [claude(mythical, `5${noMinor}`), { bindsThinking: false }],
  [claude('opus', String.raw`4[-.]7`), { cacheMinTokens: 2048 }],
  [claude('opus', String.raw`4[-.][7-9]`), { sampling: 'none' }],
  [claude(anyClaude, String.raw`4[-.][7-9]`), { efforts: ['none', ...lowToMax] }],
  [claude('opus', String.raw`4[-.][56]`), { cacheMinTokens: 4096 }],
  [claude('haiku', String.raw`4[-.][5-9]`), { cacheMinTokens: 4096 }],
  [claude('haiku', '[34]'), { cacheMinTokens: 2048 }],
  [claude(anyClaude, String.raw`4[-.][6-9]`), { thinkingForm: 'adaptive', outputTokensMax: 128_000 }],
  [claude(anyClaude, String.raw`4[-.]5|3[-.]7`), { thinkingForm: 'budget', outputTokensMax: 64_000 }],
  [claude('opus', '4'), { thinkingForm: 'budget', outputTokensMax: 32_000 }],
  [claude(anyClaude, '4'), { thinkingForm: 'budget', outputTokensMax: 64_000 }],
  [claude(anyClaude, String.raw`3[-.]5`), { thinkingForm: 'none', outputTokensMax: 8192 }],
  [claude(anyClaude, '3'), { thinkingForm: 'none', outputTokensMax: 4096 }],
  [
    claude(anyClaude, '[34]'),
    {
      thinkingOff: 'omit',
      sampling: 'one',
      supportsForcedCalls: true,
      bindsThinking: false,
      efforts: ['none', ...lowToHigh, 'max'],
      cacheMinTokens: 1024,
    },
  ],
  [
    claude(anyClaude, String.raw`5(?![-.](?:[5-9]|[1-9]\d)(?!\d))`),
    {
      thinkingOff: 'disabled',
      supportsForcedCalls: true,
      bindsThinking: false,
      efforts: ['none', ...lowToMax],
    },
  ],
  // Haiku 5.5 [models/haiku-5-5/migration-guide, 2026-10-07].
  [
    claude('haiku', String.raw`\d{1,2}`),
    {
      thinkingOff: 'disabled',
      supportsForcedCalls: true,
      efforts: ['none', ...lowToMax],
      cacheMinTokens: 1024,
    },
  ],
  // Sonnet 5.5 takes `between_tools` at efforts up to high alone, so none goes up with it, which means high [2026-09-28].
  [
    claude('sonnet', String.raw`\d{1,2}`),
    { thinkingOff: 'between_tools', efforts: ['none', ...lowToMax], cacheMinTokens: 1024 },
  ],
  // Opus 5.5, whose own effort is medium [models/opus-5-5/migration-guide, 2026-09-22], Fable and Mythos to 5.2 [release
  // notes, 2026-11-09], and what comes after them.
  [
    claude(`${anyClaude}|${mythical}`, String.raw`preview|\d{1,2}`),
    {
      thinkingForm: 'adaptive',
      thinkingOff: 'always',
      sampling: 'none',
      supportsForcedCalls: false,
      bindsThinking: true,
      efforts: lowToMax,
      cacheMinTokens: 512,
      outputTokensMax: 128_000,
    },
  ],
  // An unknown Claude is sent nothing that the newest models refuse. Its endpoint may not know `block_binding`, and it
  // may think without being asked, so neither is set; its refusals teach it.
  [/\bclaude\b/i, { sampling: 'none', supportsForcedCalls: false, efforts: ['none', ...lowToMax] }],

  // Google. Its total has thinking that the count of the output has not [mozilla-ai/any-llm 1290, 2026-08-16].
  [gemini(''), { totalHidesThinking: true }],
  // [docs.cloud.google.com, "Gemini 4 Hydrogen", 2026-11-12]
  [gemini('4-hydrogen'), { efforts: lowToXhigh }],
  // Thinking levels [ai.google.dev, "Thinking", "OpenAI compatibility"; ENTERPILOT/GoModel 862, 2026-09-02;
  // vercel/ai 18986, 2026-08-18]. None of these models stops thinking, but for 2.5 Flash.
  [gemini(String.raw`3(\.1)?-pro`), { efforts: lowToHigh }],
  [gemini(String.raw`3(\.[0-5])?(?![.\d])`), { efforts: ['minimal', ...lowToHigh] }],
  [gemini(String.raw`2\.5-pro`), { efforts: ['minimal', ...lowToHigh] }],
  [gemini(String.raw`2\.5`), { efforts: ['none', 'minimal', ...lowToHigh] }],
  // "Requests ending with a model turn are not supported" [LibreChat-AI/agents 323, 2026-07-21, tried model by model;
  // anomalyco/opencode 47034, 2026-09-03].
  [gemini(String.raw`3\.5-flash-lite`), { lastTurnRole: 'user' }],
  [gemini(String.raw`3(\.[0-5])?(?![.\d])`), { lastTurnRole: 'any' }],
  // A tool loop whose calls lack their signature is refused [ai.google.dev, "Thought signatures"]. A Gemini that nobody
  // knows is like this, the newest; the `-latest` names are such models.
  [
    gemini(String.raw`([3-9]|\d{2}|.*-latest$)`),
    { wantsBack: 'thought_signature', efforts: lowToHigh, lastTurnRole: 'user' },
  ],

  // Grok. Models that reason refuse stop sequences [langchain-ai/langchain 38335, 2026-06-20; lidge-jun/opencodex 5278].
  [/\bgrok-(3-mini|[4-9])(?!.*non-reasoning)/i, { supportsStop: false }],

  // Threads. Other vendors that speak Messages ignore unknown fields, so they would answer from the thread's last message alone
  // [platform.claude.com, "Message threads", supported models, November 2026].
  [/deepseek|\b(?:kimi|glm|minimax|qwen|mimo|gpt|gemini)\b|(?:^|\/)k[2-9]\b/i, { holdsThreads: false }],

  // DeepSeek. Forced calls are refused while it thinks, which it does unless told not to [BerriAI/litellm 37470, 2026-08-19].
  [/deepseek.*(v[123]\b|coder|chat)/i, { supportsForcedCalls: true }],
  // A tool loop whose earlier turns lack the field is refused. The names change faster than this table, so every name
  // counts [ad-naan/Adnify 193, 2026-09-15, for `deepseek-flash`]; servers that refuse the field are asked without it. It
  // maps efforts itself: to low, high and max [api-docs.deepseek.com/guides/thinking_mode, 2026-09-10].
  [/deepseek/i, { wantsBack: 'reasoning_content', supportsForcedCalls: false, efforts: effortScale }],
  // Kimi K3 always thinks [platform.kimi.ai, "Reasoning Effort"; huggingface/tau 560, 2026-08-06].
  [/\bkimi-k3|(^|\/)k3(?!\d)/i, { efforts: ['low', 'high', 'max'] }],
  // GLM 5.3 refuses other efforts [docs.z.ai, "Deep Thinking"; charmbracelet/catwalk 603, 2026-09-16]. 5.2 accepts the whole scale.
  [/\bglm-5\.3/i, { efforts: ['low', 'high', 'max'] }],
  // Mistral Small 4 and Medium 3.5 [docs.mistral.ai, "Reasoning"; pydantic/pydantic-ai 5285].
  [/\bmistral-(?:small|medium)/i, { efforts: ['none', 'high'] }],
  // Kimi. `k3` is the name in its plan for coding [MoonshotAI/kimi-cli 2141].
  [/\bkimi\b|(^|\/)k[2-9]\b/i, { wantsBack: 'reasoning_content' }],
];
