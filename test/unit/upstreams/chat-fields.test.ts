import { describe, expect, it } from 'vitest';
import type { RequestSettings, SentBody } from '../../../shared/upstreams/dialect.ts';
import { chatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { noQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const send = (
  request: object,
  quirks: Partial<Quirks> = {},
  more: Partial<RequestSettings> = {},
): SentBody => {
  const messages = [{ role: 'user' as const, content: 'hi' }];
  const settings = settingsWith({ quirks: { ...noQuirks, ...quirks }, stream: false, ...more });
  return chatBody(chatCall({ model: 'm', messages, ...request }), settings);
};
const few = { fields: new Set(['model', 'messages', 'tools']) };

describe('fields that an upstream does not know', () => {
  it.each([
    ['user', 'me'],
    ['metadata', { a: 'b' }],
    ['safety_identifier', 'x'],
    ['prompt_cache_key', 'x'],
    ['seed', 1],
    ['logprobs', true],
    ['top_logprobs', 2],
    ['temperature', 1],
    ['verbosity', 'low'],
    ['unheard_of', 1],
    ['n', 1],
    ['stop', []],
    ['response_format', { type: 'text' }],
  ])('are left out and named: %s', (field, value) => {
    const { body, dropped } = send({ [field]: value }, few);
    expect([Object.keys(body), dropped]).toEqual([['model', 'messages'], [field]]);
  });

  it.each([
    ['response_format', { type: 'json_object' }],
    ['stop', 'END'],
    ['n', 2],
    ['max_tokens', 5],
    ['max_completion_tokens', 5],
    ['functions', [{ name: 'f' }]],
  ])('are the next candidate’s if the answer depends on them: %s', (field, value) => {
    expect(() => send({ [field]: value }, few)).toThrow(
      expect.objectContaining({ name: 'CannotCarry', param: field }),
    );
  });

  it('move a limit to the field that it knows first', () => {
    const { body } = send(
      { max_completion_tokens: 5 },
      { fields: new Set(['max_tokens']), limitFields: ['max_tokens'] },
    );
    expect(body).toMatchObject({ max_tokens: 5 });
  });

  it('of a client that did not write chat are left out and named', () => {
    const call = chatCall({ model: 'm', messages: [{ role: 'user', content: 'hi' }], truncation: 'auto' });
    const { body, dropped } = chatBody({ ...call, form: 'responses' }, settingsWith());
    expect([body['truncation'], dropped]).toEqual([undefined, ['truncation']]);
    expect(chatBody(call, settingsWith()).body['truncation']).toBe('auto');
  });
});

describe('what a channel says of a request', () => {
  it.each([
    ['a replaced field is not', { seed: 1 }, {}, { set: { seed: 2 } }, []],
    [
      'one of two sampling fields is named',
      { temperature: 1, top_p: 1 },
      { sampling: 'one' } as const,
      {},
      ['top_p'],
    ],
    ['sampling of a reasoning model is named', { top_p: 0.5 }, { sampling: 'none' } as const, {}, ['top_p']],
  ])('%s', (_case, request, quirks, more, expected) => {
    expect(send(request, quirks, more).dropped).toEqual(expected);
  });

  it.each([
    ['a known effort is sent', 'low', 'low', undefined, []],
    ['an unknown one becomes the nearest lower', 'max', 'high', 'high', []],
    ['an unknown none is the lowest', 'none', 'low', 'low', []],
  ])('%s', (_case, asked, inBody, effort, dropped) => {
    const sent = send({ reasoning_effort: asked }, { efforts: ['low', 'high'] });
    expect([sent.body['reasoning_effort'], sent.effort, sent.dropped]).toEqual([inBody, effort, dropped]);
  });

  it('the limit that is sent is reported, and a repeat without it sends none', () => {
    const limits = { outputTokensLimit: 50, maxOutputTokens: 40 };
    expect(send({ max_tokens: 90 }, {}, limits)).toMatchObject({
      outputTokensMax: 40,
      body: { max_tokens: 40 },
    });
    expect(send({}, {}, limits).outputTokensMax).toBe(40);
    expect(send({}).outputTokensMax).toBeUndefined();
    const { body, outputTokensMax } = send(
      { max_tokens: 90 },
      {},
      { ...limits, without: new Set(['limit'] as const) },
    );
    expect([Object.keys(body), outputTokensMax]).toEqual([['model', 'messages'], undefined]);
  });
});

describe('an upstream that refuses unknown fields gets none inside', () => {
  const marked = { cache_control: { type: 'ephemeral' } };
  const look = { name: 'look', description: 'Looks.', parameters: {}, strict: true };
  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const text = { type: 'text', text: 'Hi' };
  const plain = {
    messages: [
      { role: 'user', content: [text, image], name: 'n' },
      { role: 'assistant', content: null, tool_calls: [{ ...call, extra_content: { a: 1 } }] },
      { role: 'tool', content: 'x', tool_call_id: 'c1' },
    ],
    tools: [{ type: 'function', function: look }],
  };
  const request = {
    messages: [
      {
        ...plain.messages[0],
        content: [
          { ...text, ...marked },
          { ...image, ...marked },
        ],
        ...marked,
      },
      {
        ...plain.messages[1],
        tool_calls: [{ ...call, extra_content: { a: 1 }, ...marked }],
        annotations: [],
        refusal: 'no',
        unheard_of: 1,
      },
      { ...plain.messages[2], ...marked },
    ],
    tools: [{ type: 'function', function: { ...look, ...marked }, ...marked }],
  };

  it('of messages, parts, calls and tools', () => {
    expect(send(request, { ...few, echoes: ['extra_content'] }).body).toEqual({ model: 'up', ...plain });
  });

  it('and another upstream gets them all', () => {
    expect(send(request).body).toEqual({ model: 'up', ...request });
  });
});
