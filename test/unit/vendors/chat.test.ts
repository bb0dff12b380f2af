import { describe, expect, test } from 'vitest';
import { chat, chatTool, user } from './examples.ts';
import { doubleOf, jsonOf, send, textOf, type Json } from './rig.ts';
import { callPiecesOf, eventsOf, joined } from './streams.ts';

const messageOf = (reply: Json): Json => (reply['choices'] as { message: Json }[])[0]!.message;
const tools = [chatTool];
const answered = (message: Json, id: string): Json[] => [
  user('weather'),
  message,
  { role: 'tool', tool_call_id: id, content: 'sunny' },
];

describe('DeepSeek', () => {
  const model = 'deepseek-v4-pro';
  const asked = (more: Json = {}) => chat(model, { messages: [user('weather')], tools, ...more });

  test('streams the same thinking that it returns without streaming, and requires it back byte for byte', async () => {
    const double = doubleOf('deepseek');
    const message = messageOf(jsonOf(await send(double, asked())));
    const thinking = joined(await send(double, asked({ stream: true })), 'reasoning_content');
    expect(thinking).toBe(message['reasoning_content']);
    expect(thinking).toMatch(/ {2}.*\u2028.*🧭\n$/su);
    const [{ id }] = message['tool_calls'] as [{ id: string }];
    const next = (reasoning: unknown) =>
      send(
        double,
        chat(model, { tools, messages: answered({ ...message, reasoning_content: reasoning }, id) }),
      );
    expect((await next(thinking)).status).toBe(200);
    expect((await next(thinking.trim())).rule).toBe('reasoning-content');
    expect((await next('')).notes).toEqual(['an empty reasoning_content']);
  });
});

describe('Gemini', () => {
  const asked = (model: string, more: Json = {}) =>
    chat(model, { messages: [user('weather in three places')], tools, ...more });
  const signatureOf = (piece: Json | undefined): unknown =>
    (piece?.['extra_content'] as { google?: { thought_signature?: string } } | undefined)?.google
      ?.thought_signature;

  test('signs only the first of parallel calls', async () => {
    const message = messageOf(jsonOf(await send(doubleOf('gemini'), asked('gemini-3-pro-preview'))));
    const signatures = (message['tool_calls'] as Json[]).map(signatureOf);
    expect(signatures).toEqual([expect.stringMatching(/^\S{40,}$/), undefined, undefined]);
  });

  test('sends the signature on a piece without an index, and gives all calls the index 0', async () => {
    const reply = await send(doubleOf('gemini'), asked('gemini-3-flash-preview', { stream: true }));
    const pieces = callPiecesOf(reply);
    expect(pieces.map(({ index }) => index)).toEqual([0, undefined, 0, 0]);
    expect(pieces[1]).toEqual({ extra_content: { google: { thought_signature: expect.any(String) } } });
  });

  test('accepts its own signature, but rejects that of another call', async () => {
    const double = doubleOf('gemini');
    const message = messageOf(
      jsonOf(await send(double, chat('gemini-3-pro-preview', { messages: [user('weather')], tools }))),
    );
    const [call] = message['tool_calls'] as [Json & { id: string }];
    const next = (more: Json) =>
      send(
        double,
        chat('gemini-3-pro-preview', {
          tools,
          messages: answered({ ...message, tool_calls: [{ ...call, ...more }] }, call.id),
        }),
      );
    expect((await next({})).status).toBe(200);
    expect((await next({ function: { name: 'get_weather', arguments: '{}' } })).rule).toBe('signature-valid');
  });
});

const failures: [vendor: string, model: string, word: string, status: number, says: RegExp][] = [
  ['openai', 'gpt-5.6', 'quota', 429, /insufficient_quota/],
  ['openai', 'gpt-5.6', 'overload', 503, /overloaded_error/],
  ['openai', 'gpt-5.6', 'throttle', 429, /rate_limit_exceeded/],
  ['openai', 'gpt-5.6', 'window', 400, /context_length_exceeded/],
  ['gemini', 'gemini-2.5-flash', 'quota', 429, /^\[.*RESOURCE_EXHAUSTED/],
  ['gemini', 'gemini-2.5-flash', 'overload', 503, /UNAVAILABLE/],
  ['gemini', 'gemini-2.5-flash', 'throttle', 429, /RetryInfo/],
  ['gemini', 'gemini-2.5-flash', 'window', 400, /exceeds the maximum number of tokens/],
  ['deepseek', 'deepseek-v4-pro', 'quota', 402, /Insufficient Balance/],
  ['deepseek', 'deepseek-v4-pro', 'overload', 503, /too busy/],
  ['deepseek', 'deepseek-v4-pro', 'throttle', 429, /Rate limit/],
  ['deepseek', 'deepseek-v4-pro', 'window', 400, /maximum context length/],
  ['picky', 'picky', 'quota', 402, /Payment required/],
  ['picky', 'picky', 'overload', 503, /busy/],
  ['picky', 'picky', 'throttle', 429, /rate limit/],
  ['picky', 'picky', 'window', 400, /maximum context length/],
  ['openai', 'gpt-4.1', 'cut', 500, /server_error/],
];

test.each(failures)('%s, %s fails at the word %s with %s', async (vendor, model, word, status, says) => {
  const reply = await send(doubleOf(vendor), chat(model, { messages: [user(`please ${word}`)] }));
  expect({ status: reply.status, text: textOf(reply) }).toEqual({
    status,
    text: expect.stringMatching(says),
  });
});

test.each(['openai', 'gemini', 'deepseek', 'picky'])('a stream of %s is cut by an error', async (vendor) => {
  const double = doubleOf(vendor);
  const model = vendor === 'openai' ? 'gpt-4.1' : double.models[0]!;
  const reply = await send(double, chat(model, { messages: [user('please cut')], stream: true }));
  expect(reply.status).toBe(200);
  expect(JSON.stringify(eventsOf(reply).at(-1))).toMatch(/"error":/);
  expect(textOf(reply)).not.toContain('[DONE]');
});

test.each([
  ['openai', 'gpt-4.1', { error: { code: 'context_length_exceeded' } }],
  ['deepseek', 'deepseek-v4-pro', { error: { message: expect.stringContaining('maximum context length') } }],
])('a stream of %s starts well and fails with its first event', async (vendor, model, first) => {
  const reply = await send(doubleOf(vendor), chat(model, { messages: [user('overlong')], stream: true }));
  expect(reply.status).toBe(200);
  expect(eventsOf(reply)).toMatchObject([first]);
});
