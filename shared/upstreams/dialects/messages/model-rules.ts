/**
 * What models of the Claude family accept, by the name that the upstream has for them: `claude-opus-4-7`,
 * `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku-20241022`. Source: the vendor's pages about
 * models, thinking, effort and prompt caching, November 2026.
 */

/** How thinking is asked for. */
export type ThinkingForm =
  /** `adaptive`, with an effort. */
  | 'adaptive'
  /** `enabled`, with a budget of tokens: models before 4.6. */
  | 'budget'
  /** The model does not think. */
  | 'none';

/** What keeps a model from thinking. `omit`: it does not think unless asked. `always`: nothing does. */
export type ThinkingOff = 'omit' | 'disabled' | 'between_tools' | 'always';

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
  /** The documented maximum of `max_tokens`. */
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
