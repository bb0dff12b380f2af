import { expect, it } from 'vitest';
import { ChunksToCompletion } from '../../../shared/endpoints/chat/fold.ts';
import type { ChatChunk } from '../../../shared/wire/chat-response.ts';

it('an answer is folded with more log probabilities in a chunk than a call can have arguments', () => {
  const content = Array.from({ length: 1_500_000 }, () => 0);
  const chunk: ChatChunk = {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content: 'x' }, logprobs: { content }, finish_reason: null }],
    usage: null,
  };
  const fold = new ChunksToCompletion();
  fold.push(chunk);
  expect(fold.completion().choices).toMatchObject([{ logprobs: { content: { length: 1_500_000 } } }]);
});
