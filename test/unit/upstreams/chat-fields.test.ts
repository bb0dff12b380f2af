import { describe, expect, it } from 'vitest';
import type { RequestSettings, SentBody } from '../../../shared/upstreams/dialect.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { defaultQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const send = (
  request: object,
  quirks: Partial<Quirks> = {},
  more: Partial<RequestSettings> = {},
): SentBody => {
  const messages = [{ role: 'user' as const, content: 'hi' }];
  const settings = settingsWith({ quirks: { ...defaultQuirks, ...quirks }, stream: false, ...more });
  return buildChatBody(chatCall({ model: 'm', messages, ...request }), settings);
};
const few = { acceptedFields: new Set(['model', 'messages', 'tools']) };

describe('fields that an upstream does not support', () => {
  it.each([
    ['response_format', { type: 'json_object' }],
    ['stop', 'END'],
    ['n', 2],
    ['max_tokens', 5],
    ['max_completion_tokens', 5],
    ['functions', [{ name: 'f' }]],
  ])('are left to the next candidate if the answer depends on them: %s', (field, value) => {
    expect(() => send({ [field]: value }, few)).toThrow(
      expect.objectContaining({ name: 'CannotCarry', param: field }),
    );
  });
});

describe('an upstream that rejects unknown fields receives none', () => {
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

  it('in messages, parts, calls and tools', () => {
    expect(send(request, { ...few, acceptedEchoes: ['extra_content'] }).body).toEqual({
      model: 'up',
      ...plain,
    });
  });

  it('while another upstream receives them all', () => {
    expect(send(request).body).toEqual({ model: 'up', ...request });
  });
});

describe('sampling depends on the sent effort', () => {
  const sampled = { temperature: 0.3, top_p: 1 };
  it.each<[string, object, Partial<Quirks>, Partial<RequestSettings>, boolean]>([
    ['none is known', { reasoning_effort: 'none' }, { efforts: ['none', 'low'] }, {}, true],
    ['none goes up as it came', { reasoning_effort: 'none' }, {}, {}, true],
    ['none becomes another', { reasoning_effort: 'none' }, { efforts: ['low'] }, {}, false],
    ['none is not sent', { reasoning_effort: 'none' }, { efforts: [] }, {}, false],
    ['there is none', {}, {}, {}, false],
    ['the row sets another', { reasoning_effort: 'none' }, {}, { set: { reasoning_effort: 'high' } }, false],
    ['the row sets none', {}, {}, { set: { reasoning_effort: 'none' } }, true],
    ['the model takes no sampling at all', { reasoning_effort: 'none' }, { sampling: 'none' }, {}, false],
  ])('%s', (_case, request, quirks, more, isSent) => {
    const { body, dropped } = send(
      { ...sampled, ...request },
      { sampling: 'without_reasoning', ...quirks },
      more,
    );
    expect(body['temperature']).toBe(isSent ? 0.3 : undefined);
    expect(body['top_p']).toBe(1);
    expect(dropped.includes('temperature')).toBe(!isSent);
  });
});
