/**
 * What models of the Claude family accept, by the name that the upstream has for them: `claude-opus-4-7`,
 * `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku-20241022`. Source: the vendor's pages about
 * models, thinking, effort and prompt caching, November 2026.
 */
import type { ChatRequest } from '../../../wire/canonical-call.ts';
import { recordsIn, type JsonRecord } from '../../../wire/json.ts';
import type { RequestSettings } from '../../dialect.ts';
import { knownEffort } from '../../request-parts.ts';

/** How thinking is asked for. */
type ThinkingForm =
  /** `adaptive`, with an effort. */
  | 'adaptive'
  /** `enabled`, with a budget of tokens: models before 4.6. */
  | 'budget'
  | 'none';

/** What keeps a model from thinking. `omit`: it does not think unless asked. `always`: nothing does. */
type ThinkingOff = 'omit' | 'disabled' | 'between_tools' | 'always';

export interface ModelRules {
  thinking: ThinkingForm;
  off: ThinkingOff;
  /** It accepts `temperature`, `top_p` and `top_k`. */
  samples: boolean;
  /** It accepts a tool choice that forces a call while it does not think. No model does while it thinks. */
  forcesCalls: boolean;
  /** A thinking block is valid only while all that stood before it is unchanged. */
  bindsThinking: boolean;
  efforts: readonly string[];
  /** The shortest prompt that its cache takes. */
  cachedTokensMin: number;
  outputTokensMax?: number;
}

const allEfforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Other vendors' models and Claude models that are not known yet. */
const unknownModel: ModelRules = {
  thinking: 'adaptive',
  off: 'omit',
  samples: true,
  forcesCalls: true,
  bindsThinking: false,
  efforts: allEfforts,
  cachedTokensMin: 1024,
};

interface ClaudeModel {
  family: string;
  /** Major and minor version as one number: 4.7 is 407. */
  version: number;
}

const familyFirst = /(opus|sonnet|haiku|fable|mythos)-(?:(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?|preview)/i;
const versionFirst = /claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)/i;

export function modelRules(model: string): ModelRules {
  const claude = claudeModel(model);
  if (!claude) return unknownModel;
  const { family, version } = claude;
  const isMythical = family === 'fable' || family === 'mythos';
  const isBound = version >= 505 || (isMythical && version >= 501);
  return {
    thinking: thinkingForm(claude),
    off: isMythical ? 'always' : thinkingOff(claude),
    samples: !isMythical && version < (family === 'opus' ? 407 : 500),
    forcesCalls: !isMythical && (version < 505 || family === 'haiku'),
    bindsThinking: isBound,
    efforts: version < 407 && !isMythical ? allEfforts.filter((each) => each !== 'xhigh') : allEfforts,
    cachedTokensMin: cachedTokensMin(claude),
    outputTokensMax: outputTokensMax(claude),
  };
}

function claudeModel(model: string): ClaudeModel | undefined {
  const old = versionFirst.exec(model);
  const [, family, major, minor] = old ? [old[0], old[3], old[1], old[2]] : (familyFirst.exec(model) ?? []);
  if (family === undefined) return undefined;
  return { family: family.toLowerCase(), version: Number(major ?? 0) * 100 + Number(minor ?? 0) };
}

function thinkingForm({ family, version }: ClaudeModel): ThinkingForm {
  if (family === 'fable' || family === 'mythos' || version >= 406) return 'adaptive';
  return version >= 400 || (family === 'sonnet' && version === 307) ? 'budget' : 'none';
}

function thinkingOff({ family, version }: ClaudeModel): ThinkingOff {
  if (version < 500) return 'omit';
  if (version < 505 || family === 'haiku') return 'disabled';
  return family === 'sonnet' ? 'between_tools' : 'always';
}

function cachedTokensMin({ family, version }: ClaudeModel): number {
  if (family === 'fable' || family === 'mythos') return version === 0 ? 2048 : 512;
  if (family === 'opus') {
    if (version >= 500) return 512;
    if (version === 407) return 2048;
    return version === 405 || version === 406 ? 4096 : 1024;
  }
  if (family === 'haiku' && version < 500) return version >= 405 ? 4096 : 2048;
  return 1024;
}

function outputTokensMax({ family, version }: ClaudeModel): number {
  if (family === 'fable' || family === 'mythos' || version >= 406) return 128_000;
  if (version === 405) return 64_000;
  if (version >= 400) return family === 'opus' ? 32_000 : 64_000;
  if (version === 307) return 64_000;
  return version === 305 ? 8192 : 4096;
}

// Thinking, effort and sampling of a request: which of them the model accepts, and together with what.

/** From this version of the API on, sampling is refused on every model, even with the default values. */
const versionWithoutSampling = '2026-10-21';

/** Tokens that a model which wants a budget may think, by effort. The vendor's least is 1,024. */
const budgets = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
]);
const budgetMost = 32_768;
export const budgetLeast = 1024;

interface ThinkingFields {
  thinking?: JsonRecord;
  /** For `output_config`. */
  effort?: string | undefined;
  /** The effort that was sent instead of the requested one. */
  changedEffort?: string | undefined;
  /** The model will think, so that it accepts neither sampling nor a forced call. */
  isOn: boolean;
  /** The thinking of an earlier turn is lost, so that this one goes up without. */
  isLost?: true;
  dropped: string[];
}

interface ThinkingFacts {
  rules: ModelRules;
  settings: RequestSettings;
  outputTokensMax: number;
  /** The tool loop that the call continues began without thinking, or its thinking is lost; for some models, any loop. */
  isLoopWithoutThinking: boolean;
}

/**
 * Models that think by default are asked for the text of it, which they leave out otherwise. A model that
 * cannot stop thinking thinks least for the effort `none`.
 */
export function thinkingFields(request: ChatRequest, facts: ThinkingFacts): ThinkingFields {
  const { rules, settings, isLoopWithoutThinking } = facts;
  const asked = request.reasoning_effort ?? undefined;
  const none = { isOn: false, dropped: [] };
  const unthinking = { isOn: false, dropped: (asked ?? 'none') === 'none' ? [] : ['reasoning_effort'] };
  if (isLoopWithoutThinking && settings.quirks.wantsBack === 'thinking' && rules.off !== 'always')
    return { ...unthinking, thinking: switchedOff(rules), isLost: true };
  if (rules.thinking === 'none') return unthinking;
  if (asked === 'none' && rules.off !== 'always')
    return rules.off === 'omit' ? none : { ...none, thinking: { type: rules.off } };
  if (asked === undefined)
    return rules.off === 'omit' ? none : { ...none, thinking: adaptive(rules), isOn: true };
  if (rules.thinking === 'budget') {
    // The budget has to be smaller than the limit. A loop of calls whose last turn has no thinking block is refused with
    // thinking on.
    const budget = Math.min(budgets.get(asked) ?? budgetMost, facts.outputTokensMax - budgetLeast);
    return budget < budgetLeast || isLoopWithoutThinking
      ? { ...none, dropped: ['reasoning_effort'] }
      : { ...none, thinking: { type: 'enabled', budget_tokens: budget }, isOn: true };
  }
  const efforts = settings.quirks.efforts?.filter((effort) => effort !== 'none') ?? rules.efforts;
  const effort = knownEffort(asked, efforts) ?? efforts[0];
  const changedEffort = effort === asked ? undefined : effort;
  return { ...none, thinking: adaptive(rules), effort, changedEffort, isOn: true };
}

/** As thinking is turned off where its field has to say so. */
export const switchedOff = ({ off }: ModelRules): JsonRecord => ({ type: off === 'omit' ? 'disabled' : off });

export const isThinkingBlock = (block: JsonRecord | undefined): boolean =>
  block?.['type'] === 'thinking' || block?.['type'] === 'redacted_thinking';

type Turn = Readonly<{ content?: unknown }>;

/**
 * Whether the call continues a loop of calls that lacks its thinking: its last turn does not begin with thinking, or, where the
 * upstream wants that of every turn back, any turn with a call.
 */
export function lacksThinking(turns: readonly Turn[], { ofEveryTurn }: { ofEveryTurn: boolean }): boolean {
  const has = (turn: Turn | undefined, kind: string): boolean =>
    recordsIn(turn?.['content']).some(({ type }) => type === kind);
  const begins = (turn: Turn | undefined): boolean => isThinkingBlock(recordsIn(turn?.['content'])[0]);
  if (ofEveryTurn) return turns.some((turn) => has(turn, 'tool_use') && !begins(turn));
  return has(turns.at(-1), 'tool_result') && !begins(turns.at(-2));
}

const adaptive = ({ bindsThinking }: ModelRules): JsonRecord => ({
  type: 'adaptive',
  display: 'summarized',
  // A changed prefix costs the thinking of earlier turns, not the answer.
  ...(bindsThinking && { block_binding: { prefix_mismatch_behavior: 'drop_block' } }),
});

/** The sampling fields that go up, and the names of those that do not or not as they were. */
export function samplingFields(
  request: ChatRequest,
  facts: { isThinking: boolean; rules: ModelRules; apiVersion: string },
): { fields: JsonRecord; dropped: string[] } {
  const { temperature, top_p: topP, top_k: topK } = request;
  const penalties = ['presence_penalty', 'frequency_penalty', 'repetition_penalty'] as const;
  const asked = (['temperature', 'top_p', 'top_k', ...penalties] as const).filter(
    (field) => typeof request[field] === 'number',
  );
  const isRefused = facts.isThinking || !facts.rules.samples || facts.apiVersion >= versionWithoutSampling;
  if (isRefused) return { fields: {}, dropped: asked };
  const dropped: string[] = asked.filter((field) => penalties.some((each) => each === field));
  const fields: JsonRecord = {};
  if (typeof temperature === 'number') {
    fields['temperature'] = Math.min(temperature, 1);
    if (temperature > 1) dropped.push('temperature');
    if (typeof topP === 'number') dropped.push('top_p');
  } else if (typeof topP === 'number') fields['top_p'] = topP;
  if (typeof topK === 'number') fields['top_k'] = topK;
  return { fields, dropped };
}
