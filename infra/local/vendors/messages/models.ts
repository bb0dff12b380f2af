/** What models can, as Anthropic's pages about models, migration and caching say [November 2026]. */
export interface ClaudeModel {
  /** `temperature`, `top_p`, `top_k`. */
  sampling: boolean;
  /** `tool_choice` any and tool. */
  forcedChoice: boolean;
  thinking: ('enabled' | 'disabled' | 'adaptive')[];
  /** Thinks without being asked. */
  thinksAlways: boolean;
  /** Whether thinking is shown when the request does not say. */
  display: 'summarized' | 'omitted';
  /** Thinking is valid only in the conversation that it was made in. */
  boundThinking: boolean;
  /** An assistant message may come last. */
  prefill: boolean;
  /** Texts of the system may stand among the messages. */
  systemTurns: boolean;
  effort: boolean;
  /** Shorter prompts are not cached. */
  cachedFrom: number;
  outputMax: number;
}

const newest: ClaudeModel = {
  sampling: false,
  forcedChoice: false,
  thinking: ['adaptive'],
  thinksAlways: true,
  display: 'omitted',
  boundThinking: true,
  prefill: false,
  systemTurns: true,
  effort: true,
  cachedFrom: 512,
  outputMax: 128_000,
};

const older: ClaudeModel = {
  sampling: true,
  forcedChoice: true,
  thinking: ['enabled', 'disabled'],
  thinksAlways: false,
  display: 'summarized',
  boundThinking: false,
  prefill: true,
  systemTurns: false,
  effort: false,
  cachedFrom: 1024,
  outputMax: 64_000,
};

export const claudeModels: Record<string, ClaudeModel> = {
  'claude-opus-5-5': newest,
  'claude-fable-5-1': newest,
  // Thinks unless told not to, and then a call can be forced [models/haiku-5-5/migration-guide, 2026-10-07].
  'claude-haiku-5-5': { ...newest, thinking: ['adaptive', 'disabled'], forcedChoice: true, cachedFrom: 1024 },
  'claude-sonnet-4-6': { ...older, thinking: [...older.thinking, 'adaptive'], effort: true, prefill: false },
  'claude-haiku-4-5': { ...older, cachedFrom: 4096 },
};
