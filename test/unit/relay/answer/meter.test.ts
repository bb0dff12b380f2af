import { describe, expect, it } from 'vitest';
import type { CheckedUsage, StreamedText } from '../../../../shared/billing/usage.ts';
import { Meter } from '../../../../shared/relay/answer/meter.ts';
import type { ChatChunk } from '../../../../shared/wire/chat-response.ts';

const chunkOf = (changes: Partial<ChatChunk>): ChatChunk => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: null,
  ...changes,
});
const textChunk = (content: string, index = 0): ChatChunk =>
  chunkOf({ choices: [{ index, delta: { content }, logprobs: null, finish_reason: null }] });

/** What was streamed as completion, and whether the answer broke off as prompt. */
const check = ({ all: { unbiased } }: StreamedText, isCut: boolean): CheckedUsage => ({
  flags: [],
  usage: { prompt_tokens: Number(isCut), completion_tokens: unbiased, total_tokens: unbiased },
});

describe('the meter', () => {
  it('adds the usage in a last chunk, the same for the client and the bill', () => {
    const meter = new Meter({ check });
    const chunks = [textChunk('12345678'), textChunk('1234', 1)];
    expect(chunks.flatMap((chunk) => meter.push(chunk))).toEqual(chunks);
    const usage = { prompt_tokens: 0, completion_tokens: 7, total_tokens: 7 };
    expect(meter.end()).toEqual([chunkOf({ usage })]);
    expect(meter.measure()).toEqual({ usage, flags: [], anyContent: true, atLimit: false });
  });

  it('measures at any time, and says that the answer broke off', () => {
    const meter = new Meter({ check });
    expect(meter.measure()).toMatchObject({ usage: { prompt_tokens: 1 }, anyContent: false });
    meter.push(textChunk('12345678'));
    const usage = { prompt_tokens: 1, completion_tokens: 5 };
    expect(meter.measure()).toMatchObject({ usage, anyContent: true });
  });

  it('adds nothing to an answer without chunks', () => {
    expect(new Meter({ check }).end()).toEqual([]);
  });

  it('takes an image for content', () => {
    const meter = new Meter({ check });
    meter.push(
      chunkOf({ choices: [{ index: 0, delta: { images: [{}] }, logprobs: null, finish_reason: null }] }),
    );
    expect(meter.measure().anyContent).toBe(true);
  });

  it('adds the cost to the usage in official mode alone', () => {
    const meter = new Meter({ check, quota: ({ completion_tokens: tokens }) => tokens / 2 });
    expect(meter.push(textChunk('12345678'))).toMatchObject([{ quota: null }]);
    expect(meter.end()).toMatchObject([{ quota: 2.5 }]);
  });
});
