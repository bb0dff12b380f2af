import { describe, expect, it } from 'vitest';
import { chatEndpoint } from '../../../shared/endpoints/chat/chat-endpoint.ts';
import { ChunksToCompletion } from '../../../shared/endpoints/chat/fold.ts';
import { responsesEndpoint } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { computeDefaultOutputTokens } from '../../../shared/relay/call/serving-channels.ts';
import { buildTariff } from '../../../shared/billing/tariff.ts';
import type { ChatRequest } from '../../../shared/wire/canonical-call.ts';
import type { ChatChunk, ChunkChoice } from '../../../shared/wire/chat-response.ts';

const messages = [{ role: 'user', content: 'x' }];
const chat = (more: object) => chatEndpoint.read({ model: 'm', messages, logprobs: true, ...more }, {});
const responses = (more: object) => responsesEndpoint.read({ model: 'm', input: 'x', ...more }, {});

describe('log probabilities', () => {
  it.each<[string, () => unknown]>([
    ['JSON', () => chat({ top_logprobs: 20, max_tokens: 6000 })],
    ['several choices', () => chat({ top_logprobs: 20, n: 8, max_completion_tokens: 1000 })],
    ['no limit, but many choices', () => chat({ top_logprobs: 20, n: 8 })],
    ['a stream', () => chat({ top_logprobs: 20, n: 8, stream: true, max_tokens: 8000 })],
    ['an absurd number', () => chat({ top_logprobs: 1e9, stream: true })],
    ['Responses', () => responses({ top_logprobs: 20, max_output_tokens: 6000, stream: true })],
  ])('are rejected beyond what the relay can hold: %s', (_case, read) => {
    expect(read).toThrow(expect.objectContaining({ code: 'logprobs_too_many', param: 'top_logprobs' }));
  });

  it.each<[string, () => unknown]>([
    ['JSON', () => chat({ top_logprobs: 20, max_tokens: 3900 })],
    ['no limit', () => chat({ top_logprobs: 20 })],
    ['a stream', () => chat({ top_logprobs: 20, stream: true, max_tokens: 32_000 })],
    ['none of them', () => chat({ logprobs: false, n: 8, max_tokens: 200_000 })],
    ['Responses', () => responses({ top_logprobs: 4, max_output_tokens: 16_384 })],
  ])('that fit are served: %s', (_case, read) => {
    expect(read).not.toThrow();
  });

  it('lower the limit of a call without one', () => {
    const limitOf = (more: Partial<ChatRequest>): number =>
      computeDefaultOutputTokens({
        request: { model: 'm', messages: [], ...more },
        tariff: buildTariff({ models: ['m'], rulesOf: () => [], defaultOutputTokens: 16_384, nowMs: 0 }),
        model: { base: 'm' } as never,
      });
    expect(limitOf({})).toBe(16_384);
    expect(limitOf({ logprobs: true, top_logprobs: 4 })).toBe(16_384);
    expect(limitOf({ logprobs: true, top_logprobs: 20 })).toBe(3994);
  });
});

describe('a stored answer', () => {
  const part = 'x'.repeat(1024 * 1024);
  const fold = (count: number, choice: Partial<ChunkChoice>): void => {
    const folding = new ChunksToCompletion();
    const chunk = { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, ...choice }] };
    for (let at = 0; at < count; at += 1) folding.push(chunk as unknown as ChatChunk);
  };
  it.each<[string, Partial<ChunkChoice>]>([
    ['text', { delta: { content: part } }],
    ['reasoning', { delta: { reasoning_content: part } }],
    ['refusal', { delta: { refusal: part } }],
    ['arguments', { delta: { tool_calls: [{ index: 0, function: { arguments: part } }] } }],
    ['details of reasoning', { delta: { reasoning_details: [{ data: part }] } }],
    ['images', { delta: { images: [{ url: part }] } }],
    ['log probabilities', { logprobs: { content: [{ token: part }], refusal: null } }],
  ])('has a size that counts all its parts: %s', (_case, choice) => {
    expect(() => fold(15, choice)).not.toThrow();
    expect(() => fold(17, choice)).toThrow(expect.objectContaining({ code: 'answer_too_large' }));
  });
});

const long = 'n'.repeat(65);
it.each<[string, object, string]>([
  ['a function', { tools: [{ type: 'function', function: { name: long } }] }, 'tools[0].function.name'],
  ['a custom tool', { tools: [{ type: 'custom', custom: { name: long } }] }, 'tools[0].custom.name'],
  ['an older function', { functions: [{ name: long }] }, 'functions[0].name'],
  [
    'a call',
    { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', function: { name: long } }] }] },
    'messages[0].tool_calls[0].function.name',
  ],
  ['an author', { messages: [{ role: 'user', content: 'x', name: long }] }, 'messages[0].name'],
])('a name over 64 characters is rejected: %s', (_case, more, param) => {
  expect(() => chat(more)).toThrow(expect.objectContaining({ code: 'string_above_max_length', param }));
});
