import { describe, expect, it } from 'vitest';
import { Meter } from '../../../../shared/relay/answer/meter.ts';
import type { ChatChunk, ChatUsage } from '../../../../shared/wire/chat-response.ts';

const chunkOf = (changes: Partial<ChatChunk>): ChatChunk => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: null,
  ...changes,
});
const textChunk = (content: string): ChatChunk =>
  chunkOf({ choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] });
const usage: ChatUsage = {
  prompt_tokens: 100,
  completion_tokens: 5,
  total_tokens: 105,
  prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30, cache_write_1h_tokens: 10 },
};
const tooMuch: ChatUsage = {
  ...usage,
  prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 30, cache_write_1h_tokens: 10 },
};
const bounded = { cached_tokens: 90, cache_write_tokens: 10 };

describe('the split of a prompt', () => {
  it('is the same for the client and the bill', () => {
    const meter = new Meter(() => 1);
    meter.push(textChunk('hello'));
    expect(meter.push(chunkOf({ usage }))).toEqual([chunkOf({ usage })]);
    expect(meter.measure()).toEqual({ usage, estimated: false, anyContent: true, atLimit: false });
  });

  it('never exceeds the prompt, for neither of them', () => {
    const meter = new Meter(() => 1);
    const [chunk] = meter.push(chunkOf({ usage: tooMuch }));
    expect(chunk?.usage?.prompt_tokens_details).toEqual(bounded);
    expect(meter.measure().usage.prompt_tokens_details).toEqual(bounded);
  });

  it('is kept, and bounded, when the counts came in no chunk before the answer broke off', () => {
    const meter = new Meter(() => 1);
    meter.push(textChunk('hello'));
    expect(meter.measure(tooMuch)).toMatchObject({
      estimated: false,
      usage: { prompt_tokens_details: bounded },
    });
  });

  it('is kept with the prompt when the output is estimated, since much more of it was streamed', () => {
    const meter = new Meter(() => 1);
    meter.push(textChunk('word '.repeat(100)));
    const { usage: measured, estimated } = meter.measure(tooMuch);
    expect(estimated).toBe(true);
    expect(measured.completion_tokens).toBeGreaterThan(50);
    expect(measured).toMatchObject({ prompt_tokens: 100, prompt_tokens_details: bounded });
  });

  it('is zero when the prompt is estimated', () => {
    const meter = new Meter(() => 7);
    meter.push(textChunk('hello'));
    const [last] = meter.end();
    expect(last?.usage).toMatchObject({ prompt_tokens: 7, prompt_tokens_details: { cached_tokens: 0 } });
    expect(last?.usage).toEqual(meter.measure().usage);
  });
});
