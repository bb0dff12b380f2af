/** Decides the thinking, effort and sampling of a request: which of them the model accepts, and in which combination. */
import type { ChatRequest } from '../../../wire/canonical-call.ts';
import { recordsIn, type JsonRecord } from '../../../wire/json.ts';
import type { RequestSettings } from '../../dialect.ts';
import type { Quirks } from '../../quirks.ts';
import { chooseEffort } from '../../request-fields.ts';

/** For models of which nothing else is known. */
const defaultEfforts = ['low', 'medium', 'high', 'xhigh', 'max'];

/** From this version of the API on, sampling is refused on every model, even with the default values. */
const versionWithoutSampling = '2026-10-21';

/** Thinking budgets by effort. The vendor's minimum is 1,024. */
const budgets = new Map([
  ['none', 1024],
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
]);
const budgetMax = 32_768;
export const budgetMin = 1024;

interface ThinkingFields {
  thinking?: JsonRecord;
  /** For `output_config`. */
  effort?: string | undefined;
  /** The effort that was sent instead of the requested one. */
  changedEffort?: string | undefined;
  /** The model will think, so it accepts neither sampling nor a forced call. */
  isOn: boolean;
  /** The thinking of an earlier turn is lost, so this turn is sent without. */
  isLost?: true;
  dropped: string[];
}

interface ThinkingFacts {
  settings: RequestSettings;
  outputTokensMax: number;
  /** The call continues a tool loop that began without thinking or lost it; for some models, any loop. */
  isLoopWithoutThinking: boolean;
}

/**
 * Models that think by default leave out the text unless asked for it. A model that cannot stop thinking gets the
 * lowest effort for `none`.
 */
export function decideThinking(request: ChatRequest, facts: ThinkingFacts): ThinkingFields {
  const { quirks } = facts.settings;
  const { thinkingOff: off } = quirks;
  const asked = request.reasoning_effort ?? undefined;
  const none = { isOn: false, dropped: [] };
  const withoutThinking = { isOn: false, dropped: (asked ?? 'none') === 'none' ? [] : ['reasoning_effort'] };
  if (facts.isLoopWithoutThinking && quirks.wantsBack === 'thinking' && off !== 'always')
    return { ...withoutThinking, thinking: disableThinking(quirks), isLost: true };
  if (quirks.thinkingForm === 'none') return withoutThinking;
  if (asked === 'none' && off !== 'always')
    return off === 'omit' ? none : { ...none, thinking: { type: off } };
  if (asked === undefined && (off === 'omit' || quirks.thinkingForm === 'budget')) return none;
  if (asked === undefined) return { ...none, thinking: requestAdaptiveThinking(quirks), isOn: true };
  if (quirks.thinkingForm === 'budget') {
    // The budget must be below the limit. A tool loop whose last turn has no thinking block is refused while thinking
    // is on.
    const budget = Math.min(budgets.get(asked) ?? budgetMax, facts.outputTokensMax - budgetMin);
    return budget < budgetMin || facts.isLoopWithoutThinking
      ? { ...none, dropped: ['reasoning_effort'] }
      : { ...none, thinking: { type: 'enabled', budget_tokens: budget }, isOn: true };
  }
  const efforts = quirks.efforts?.filter((effort) => effort !== 'none') ?? defaultEfforts;
  const effort = chooseEffort(asked, efforts) ?? efforts[0];
  const changedEffort = effort === asked ? undefined : effort;
  const dropped = effort === undefined && asked !== 'none' ? ['reasoning_effort'] : [];
  return { thinking: requestAdaptiveThinking(quirks), effort, changedEffort, isOn: true, dropped };
}

/** For models whose field must say that thinking is off. */
export const disableThinking = ({ thinkingOff: off }: Quirks): JsonRecord => ({
  type: off === 'omit' ? 'disabled' : off,
});

export const isThinkingBlock = (block: JsonRecord | undefined): boolean =>
  block?.['type'] === 'thinking' || block?.['type'] === 'redacted_thinking';

type Turn = Readonly<{ content?: unknown }>;

/**
 * The call continues a tool loop without its thinking: its last turn does not begin with thinking, or, if the upstream
 * wants that of every turn, any turn with a call does not.
 */
export function lacksThinking(turns: readonly Turn[], { ofEveryTurn }: { ofEveryTurn: boolean }): boolean {
  const has = (turn: Turn | undefined, kind: string): boolean =>
    recordsIn(turn?.['content']).some(({ type }) => type === kind);
  const beginsThinking = (turn: Turn | undefined): boolean =>
    isThinkingBlock(recordsIn(turn?.['content'])[0]);
  if (ofEveryTurn) return turns.some((turn) => has(turn, 'tool_use') && !beginsThinking(turn));
  return has(turns.at(-1), 'tool_result') && !beginsThinking(turns.at(-2));
}

const requestAdaptiveThinking = ({ bindsThinking }: Quirks): JsonRecord => ({
  type: 'adaptive',
  display: 'summarized',
  ...(bindsThinking && { block_binding: dropsBlocks }),
});

/** A changed prefix or another account loses the thinking of earlier turns, not the answer. */
export const dropsBlocks: JsonRecord = { prefix_mismatch_behavior: 'drop_block' };

/** Returns the sampling fields to send, and the names of dropped or changed ones. */
export function filterSampling(
  request: ChatRequest,
  facts: { isThinking: boolean; quirks: Quirks; apiVersion: string },
): { fields: JsonRecord; dropped: string[] } {
  const { temperature, top_p: topP, top_k: topK } = request;
  const penalties = ['presence_penalty', 'frequency_penalty', 'repetition_penalty'] as const;
  const asked = (['temperature', 'top_p', 'top_k', ...penalties] as const).filter(
    (field) => typeof request[field] === 'number',
  );
  const isRefused =
    facts.isThinking || facts.quirks.sampling === 'none' || facts.apiVersion >= versionWithoutSampling;
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
