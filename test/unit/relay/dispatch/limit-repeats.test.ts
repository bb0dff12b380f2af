import { describe, expect, it } from 'vitest';
import { defaultQuirks } from '../../../../shared/upstreams/quirks.ts';
import { findRepeat, type RefusedForm } from '../../../../shared/relay/dispatch/refused-attempt.ts';

const sent = (outputTokensMax: number, more: object = {}): Pick<RefusedForm, 'built'> =>
  ({
    built: { request: { body: '' }, sent: { body: {}, outputTokensMax, ...more }, quirks: defaultQuirks },
  }) as Pick<RefusedForm, 'built'>;
const refused: RefusedForm = {
  status: 400,
  error: { message: 'max_tokens is too large: 16384. This model supports at most 4096.' },
  ...sent(16_384),
  variant: { without: new Set(), quirks: {} },
  type: {},
  dialectName: 'chat',
  hadContent: false,
  hadTools: false,
  limitLowered: false,
};

describe('a refused limit', () => {
  it('is left out of one retry only', () => {
    const repeated = findRepeat(refused);
    expect([...(repeated?.without ?? [])]).toEqual(['limit']);
    expect(repeated?.limitRefusal).toEqual({ tokens: 16_384, overContext: false });
    expect(findRepeat({ ...refused, variant: { without: new Set(['limit']), quirks: {} } })).toBeUndefined();
    expect(findRepeat({ ...refused, ...sent(16_384, { isLimitLowest: true }) })).toBeUndefined();
  });

  it.each([
    'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]',
    'max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022',
    'max_tokens must be less than or equal to `8192` for gpt-4-9000',
  ])('that the balance lowered is cut to the named maximum, never left out: %s', (message) => {
    const lowered = { ...refused, error: { message }, limitLowered: true };
    const repeated = findRepeat(lowered);
    expect(repeated).toMatchObject({ limitMost: 8192, without: new Set() });
    expect(findRepeat({ ...lowered, variant: repeated ?? lowered.variant })).toBeUndefined();
  });

  it('below the named range is not retried', () => {
    const error = { message: 'Invalid max_tokens value, the valid range of max_tokens is [16, 8192]' };
    expect(findRepeat({ ...refused, error, ...sent(1) })).toBeUndefined();
    expect(findRepeat({ ...refused, error, ...sent(100_000) })).toBeDefined();
  });

  it('that the balance lowered is not retried without a named maximum, or if the prompt is too long', () => {
    for (const message of [
      'max_tokens is too large.',
      "This model's maximum context length is 8192 tokens, but max_tokens is 16384.",
    ])
      expect(findRepeat({ ...refused, error: { message }, limitLowered: true })).toBeUndefined();
  });

  const vllm = (prompt: number, limit: number): string =>
    `This model's maximum context length is 262144 tokens. However, you requested ${limit} output tokens and your prompt contains at least ${prompt} input tokens, for a total of at least ${prompt + limit} tokens. (parameter=input_tokens, value=${prompt})`;
  const openai = (prompt: number, limit: number): string =>
    `This model's maximum context length is 262144 tokens. However, you requested ${prompt + limit} tokens (${prompt} in the messages, ${limit} in the completion).`;
  const claude = (prompt: number, limit: number): string =>
    `input length and \`max_tokens\` exceed context limit: ${prompt} + ${limit} > 262144`;

  const old = (prompt: number, limit: number): string =>
    `'max_tokens' is too large: ${limit}. This model's maximum context length is 262144 tokens and your request has ${prompt} input tokens (${limit} > 262144 - ${prompt}).`;
  const openrouter = (prompt: number, limit: number): string =>
    `This endpoint's maximum context length is 262144 tokens. However, you requested about ${prompt + limit} tokens (${prompt - 2000} of text input, 2000 of tool input, ${limit} in the output). max_tokens exceeds it.`;

  it.each([vllm, openai, claude, old, openrouter])(
    'that the relay added is cut to the room left by the prompt: %s',
    (sentence) => {
      const added = { ...refused, isLimitAdded: true, error: { message: sentence(250_000, 16_384) } };
      for (const more of [{ limitLowered: true }, sent(16_384, { isLimitLowest: true })])
        expect(findRepeat({ ...added, ...more })).toMatchObject({ limitMost: 12_144, without: new Set() });
      expect([...(findRepeat(added)?.without ?? [])]).toEqual(['limit']);
    },
  );

  it.each([vllm, openai, openrouter])(
    'is not retried if the prompt alone fills the context: %s',
    (sentence) => {
      for (const prompt of [262_000, 300_000])
        expect(findRepeat({ ...refused, error: { message: sentence(prompt, 16_384) } })).toBeUndefined();
    },
  );

  it('as large as the context is left out', () => {
    const error = { message: openrouter(9_000, 262_144) };
    expect([...(findRepeat({ ...refused, error, ...sent(262_144) })?.without ?? [])]).toEqual(['limit']);
  });

  it('from the client is not retried if it cannot be left out', () => {
    const error = { message: claude(250_000, 16_384) };
    expect(findRepeat({ ...refused, error, ...sent(16_384, { isLimitLowest: true }) })).toBeUndefined();
  });
});
