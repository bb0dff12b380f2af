/** Thinking, effort and sampling of a request: which of them the model accepts, and together with what. */
import type { ChatRequest } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { RequestSettings } from '../../dialect.ts';
import { knownEffort } from '../../quirks.ts';
import type { ModelRules } from './model-rules.ts';

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

export interface ThinkingFields {
  /** Undefined: the field is not sent. */
  thinking: JsonRecord | undefined;
  /** For `output_config`. */
  effort: string | undefined;
  /** The effort that was sent instead of the requested one. */
  changedEffort: string | undefined;
  /** The model will think, so that it accepts neither sampling nor a forced call. */
  isOn: boolean;
  /** The thinking of an earlier turn is lost, so that this one goes up without. */
  isLost?: true;
  dropped: string[];
}

export interface ThinkingFacts {
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
export function thinkingFields(
  { reasoning_effort: asked }: ChatRequest,
  facts: ThinkingFacts,
): ThinkingFields {
  const { rules, settings } = facts;
  const none = { thinking: undefined, effort: undefined, changedEffort: undefined, isOn: false, dropped: [] };
  if (facts.isLoopWithoutThinking && settings.quirks.wantsBack === 'thinking' && rules.off !== 'always') {
    const dropped = (asked ?? 'none') === 'none' ? [] : ['reasoning_effort'];
    const thinking = { type: rules.off === 'omit' ? 'disabled' : rules.off };
    return { ...none, thinking, isLost: true, dropped };
  }
  if (rules.thinking === 'none')
    return { ...none, dropped: (asked ?? 'none') === 'none' ? [] : ['reasoning_effort'] };
  if (asked === 'none' && rules.off !== 'always') {
    return rules.off === 'omit' ? none : { ...none, thinking: { type: rules.off } };
  }
  if ((asked ?? undefined) === undefined) {
    return rules.off === 'omit' ? none : { ...none, thinking: adaptive(rules), isOn: true };
  }
  if (rules.thinking === 'budget') return budgetFields(String(asked), facts, none);
  const efforts = settings.quirks.efforts?.filter((effort) => effort !== 'none') ?? rules.efforts;
  const effort = knownEffort(String(asked), efforts) ?? efforts[0];
  const changedEffort = effort === asked ? undefined : effort;
  return { ...none, thinking: adaptive(rules), effort, changedEffort, isOn: true };
}

const adaptive = ({ bindsThinking }: ModelRules): JsonRecord => ({
  type: 'adaptive',
  display: 'summarized',
  // A changed prefix costs the thinking of earlier turns, not the answer.
  ...(bindsThinking && { block_binding: { prefix_mismatch_behavior: 'drop_block' } }),
});

/**
 * The budget has to be smaller than the limit. A loop of calls whose last turn has no thinking block is refused with
 * thinking on.
 */
function budgetFields(asked: string, facts: ThinkingFacts, none: ThinkingFields): ThinkingFields {
  const budget = Math.min(budgets.get(asked) ?? budgetMost, facts.outputTokensMax - budgetLeast);
  if (budget < budgetLeast || facts.isLoopWithoutThinking) return { ...none, dropped: ['reasoning_effort'] };
  return { ...none, thinking: { type: 'enabled', budget_tokens: budget }, isOn: true };
}

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
