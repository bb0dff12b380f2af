import { describe, expect, it } from 'vitest';
import { repeatFor } from '../../../../shared/relay/dispatch/repeats.ts';

describe('a refused limit', () => {
  const error = { message: 'max_tokens is too large: 100. At most 50.' };
  const variant = { without: new Set<never>() };
  const refused = { error, variant, otherDialects: [], hadTools: false, limitIsBalance: false };

  it('is repeated where that lowers it, and else stands', () => {
    const repeated = repeatFor({ ...refused, sent: { outputTokensMax: 100 } });
    expect([...(repeated?.without ?? [])]).toEqual(['limit']);
    expect(repeatFor({ ...refused, sent: { outputTokensMax: 100, limitIsLeast: true } })).toBeUndefined();
  });
});
