/**
 * What vendors' models want whoever serves them, by the upstream's name of the model. Defaults below those of the
 * channel's type and of its row. Sources: docs/channels.md.
 */
import type { Quirks } from '../quirks.ts';

const byName: { pattern: RegExp; quirks: Partial<Quirks> }[] = [
  // DeepSeek V4 refuses a tool loop whose earlier turns lack the field; `chat` and `reasoner` are V4 by other names.
  { pattern: /\bdeepseek-(v([4-9]|\d{2})|chat|reasoner)\b/i, quirks: { wantsBack: 'reasoning_content' } },
  // OpenAI's reasoning models accept no temperature but 1.
  { pattern: /(^|[./])(o[134]\b|gpt-([5-9]|\d{2})(?!.*chat))/i, quirks: { sampling: 'none' } },
  { pattern: /\bkimi-/i, quirks: { wantsBack: 'reasoning_content' } },
];

export const modelQuirks = (model: string): Partial<Quirks> =>
  byName.find(({ pattern }) => pattern.test(model))?.quirks ?? {};
