import { get_encoding as encodingOf } from 'tiktoken';
import { expect, it } from 'vitest';
import { texts } from './texts.ts';

it('the prompts of the simulation have the token counts of a public tokenizer', () => {
  const encoding = encodingOf('o200k_base');
  const counted = texts.map(([text]) => [text, encoding.encode(text, [], []).length]);
  encoding.free();
  expect(counted).toEqual(texts);
});
