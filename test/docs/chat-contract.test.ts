import { describe, expect, it } from 'vitest';
import { CoreRig, data, delta, done, finish, frames, hello, usage } from '../support/core-rig.ts';

/** Every field of the contract's chat request, with a valid value. */
const everyField = {
  model: 'm',
  messages: [
    { role: 'system', content: 'Be brief.', name: 'rules' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          index: 0,
          type: 'function',
          id: 'call_abcdefghij0123456789',
          function: { name: 'look', arguments: '{"at":1}' },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'call_abcdefghij0123456789', content: 'a cat' },
    { role: 'function', name: 'look', content: 'a cat', function_call: { name: 'look', arguments: '{}' } },
  ],
  max_tokens: 64,
  temperature: 0.5,
  top_p: 0.9,
  top_k: 40,
  presence_penalty: 0.1,
  frequency_penalty: -0.1,
  repetition_penalty: 1.1,
  tools: [
    { type: 'function', function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } } },
  ],
  tool_choice: 'auto',
};

const piece = (call: object): string => data({ choices: [{ index: 0, delta: { tool_calls: [call] } }] });

/** Answers of a given size: in units of 1,048,576 characters, in choices, in tool calls. */
const text = (millions: number): string[] =>
  Array.from({ length: millions }, () => delta('x'.repeat(1 << 20)));
const choices = (count: number): string =>
  data({
    choices: Array.from({ length: count }, (_, index) => ({
      index,
      delta: { content: 'x' },
      finish_reason: null,
    })),
  });
const calls = (count: number): string => {
  const call = (index: number): object => ({
    index,
    id: `c${index}`,
    function: { name: 'f', arguments: '{}' },
  });
  return data({
    choices: [{ index: 0, delta: { tool_calls: Array.from({ length: count }, (_, index) => call(index)) } }],
  });
};

describe('the chat contract', () => {
  it.each([false, true])('sends every field unchanged (stream: %s)', async (stream) => {
    const rig = new CoreRig().upstream({ steps: hello });
    expect((await rig.post({ ...everyField, stream, official: false })).status).toBe(200);
    expect(rig.sent[0]?.json).toEqual({
      ...everyField,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('streams only on request', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const answer = await rig.post({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    expect(answer.headers['content-type']).toBe('application/json');
  });

  it('streams tool calls with index, type, id, name and arguments, and ends with tool_calls', async () => {
    const first = {
      index: 0,
      id: 'call_abcdefghij0123456789',
      type: 'function',
      function: { name: 'look', arguments: '{"at"' },
    };
    const rest = { index: 0, function: { arguments: ':1}' } };
    const rig = new CoreRig().upstream({
      steps: [piece(first), piece(rest), finish('tool_calls'), usage(3, 4), done],
    });
    const answer = await rig.post({ ...everyField, stream: true });
    const choices = (frames(answer.text).slice(0, -1) as { choices: object[] }[]).flatMap(
      (chunk) => chunk.choices,
    );
    expect(choices).toEqual([
      { index: 0, delta: { role: 'assistant', tool_calls: [first] }, logprobs: null, finish_reason: null },
      { index: 0, delta: { tool_calls: [rest] }, logprobs: null, finish_reason: null },
      { index: 0, delta: {}, logprobs: null, finish_reason: 'tool_calls' },
    ]);
  });

  it('has every key of the contract in every chunk', async () => {
    const rig = new CoreRig().upstream({ steps: [delta('a'), finish(), usage(1, 1), done] });
    const chunks = frames((await rig.post({ ...everyField, stream: true })).text).slice(0, -1) as object[];
    expect(chunks.length).toBeGreaterThan(1);
    for (const chunk of chunks)
      expect(chunk).toEqual({
        id: expect.stringMatching(/^chatcmpl-/) as string,
        object: 'chat.completion.chunk',
        created: expect.any(Number) as number,
        model: 'm',
        choices: [expect.objectContaining({ index: 0, delta: expect.any(Object) as object })],
        usage: expect.toSatisfy((value) => value === null || typeof value === 'object') as object,
      });
  });

  it.each([
    ['4 M characters', text(4), [...text(4), delta('x')]],
    ['128 choices', [choices(128)], [choices(129)]],
    ['1,024 tool calls', [calls(1024)], [calls(1025)]],
  ])('accepts an answer of %s, and fails a larger one', async (_limit, most, more) => {
    const statusOf = async (steps: string[]): Promise<number> => {
      const rig = new CoreRig().upstream({ steps: [...steps, finish(), done] });
      return (await rig.post({ ...everyField, stream: false })).status;
    };
    expect(await statusOf(most)).toBe(200);
    expect(await statusOf(more)).toBe(502);
  });

  it('returns length and content_filter as finish reasons', async () => {
    for (const reason of ['length', 'content_filter']) {
      const rig = new CoreRig().upstream({ steps: [delta('a'), finish(reason), done] });
      const answer = await rig.post({ ...everyField, stream: false });
      expect(JSON.parse(answer.text)).toMatchObject({ choices: [{ finish_reason: reason }] });
    }
  });
});
