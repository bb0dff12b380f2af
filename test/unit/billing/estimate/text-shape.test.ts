/** Compares the three estimates with the counts of two vendors' public tokenizers. Decision 25 has the table. */
import { getTokenizer } from '@anthropic-ai/tokenizer';
import { get_encoding as encodingOf } from 'tiktoken';
import { afterAll, describe, expect, it } from 'vitest';
import { TextShape } from '../../../../shared/billing/estimate/input-tokens.ts';
import { corpus } from './corpus.ts';

const openai = encodingOf('o200k_base');
const anthropic = getTokenizer();
const texts = corpus(25).map(([kind, text]): [string, string, number[]] => [
  kind,
  text,
  [openai.encode(text, [], []).length, anthropic.encode(text.normalize('NFKC'), [], []).length],
]);
afterAll(() => {
  openai.free();
  anthropic.free();
});

describe('an estimate', () => {
  it.each(texts)('of %s from above is exceeded by no tokenizer by more than 5 %', (_kind, text, counts) => {
    const { tokensFromAbove } = new TextShape().add(text);
    expect(tokensFromAbove * 1.05).toBeGreaterThanOrEqual(Math.max(...counts));
  });

  it.each(texts)('of %s from below exceeds no tokenizer by more than a quarter', (_kind, text, counts) => {
    expect(new TextShape().add(text).tokensFromBelow).toBeLessThanOrEqual(Math.min(...counts) * 1.25 + 2);
  });

  it.each(texts.filter(([kind]) => /^(prose|code|JSON|base64|Chinese|Japanese|Korean)$/.test(kind)))(
    'of %s without bias is within a quarter of the tokenizers',
    (_kind, text, real) => {
      const { tokens } = new TextShape().add(text);
      expect(tokens).toBeGreaterThan(Math.min(...real) * 0.75);
      expect(tokens).toBeLessThan(Math.max(...real) * 1.25);
    },
  );

  it('of the pieces of a stream equals that of the whole text', () => {
    for (const [, text] of texts) {
      const pieces = text.match(/[^]{1,7}/g) ?? [];
      const pieced = pieces.reduce((shape, piece) => shape.add(piece), new TextShape());
      expect(pieced.tokens).toBeCloseTo(new TextShape().add(text).tokens, 6);
    }
  });
});
