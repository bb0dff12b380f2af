import { describe, expect, it } from 'vitest';
import type { SentBody } from '../../../shared/upstreams/dialect.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { defaultQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import type { ChatRequest } from '../../../shared/wire/canonical-call.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const plain = (name: string): object => ({ type: 'function', function: { name, strict: true } });
const send = (
  request: object,
  quirks: Partial<Quirks> = {},
  form = 'responses',
  allow: string[] = [],
): SentBody => {
  const messages = [{ role: 'user' as const, content: 'hi' }];
  const call = { ...chatCall({ model: 'm', messages, ...request }), form };
  return buildChatBody(call, settingsWith({ allow, quirks: { ...defaultQuirks, ...quirks } }));
};

describe('the choice among tools', () => {
  const tools = [plain('f'), plain('g')];
  const allowed = (mode: string, ...names: string[]): object => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: names.map((name) => ({ type: 'function', function: { name } })) },
  });
  it.each([
    ['any call', 'required', {}, { tools, tool_choice: 'auto' }, 'auto'],
    [
      'a named one',
      { type: 'function', function: { name: 'f' } },
      {},
      { tools: [plain('f')], tool_choice: 'auto' },
      'auto',
    ],
    ['a listed one', allowed('required', 'g'), {}, { tools: [plain('g')], tool_choice: 'auto' }, 'auto'],
    ['none', 'none', {}, { tools, tool_choice: 'none' }, undefined],
    [
      'any call, and no thinking',
      'required',
      { thinking: { type: 'disabled' } },
      { tools, tool_choice: 'required' },
      undefined,
    ],
  ])('is left to a model that rejects a forced choice: %s', (_case, choice, more, expected, changed) => {
    const messages = [{ role: 'user' as const, content: 'hi' }];
    const call = chatCall({
      model: 'm',
      messages,
      tools,
      tool_choice: choice,
      ...more,
    } as object as ChatRequest);
    const { body, toolChoice } = buildChatBody(
      call,
      settingsWith({ quirks: { ...defaultQuirks, supportsForcedCalls: false } }),
    );
    expect(body).toMatchObject(expected);
    expect([(body['tools'] as object[]).length, toolChoice]).toEqual([expected.tools.length, changed]);
  });

  it.each([
    ['a word', 'required', { tools, tool_choice: 'required' }],
    [
      'a name',
      { type: 'function', function: { name: 'f' } },
      { tools, tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
    ['a list: the others are left out', allowed('auto', 'g'), { tools: [plain('g')], tool_choice: 'auto' }],
    [
      'a list of which one is required',
      allowed('required', 'g'),
      { tools: [plain('g')], tool_choice: 'required' },
    ],
    ['a tool that runs at the upstream', { type: 'web_search' }, { tools, tool_choice: 'auto' }],
  ])('is %s', (_case, choice, expected) => {
    const { body } = send({ tools, tool_choice: choice, parallel_tool_calls: false });
    expect(body).toMatchObject(expected);
  });

  it('from a list without a known name means no tools at all', () => {
    const { body } = send({ tools, tool_choice: allowed('required', 'x'), parallel_tool_calls: false });
    expect(Object.keys(body)).toEqual(['model', 'messages', 'stream', 'stream_options']);
  });

  it('is a list for upstreams that support custom tools, as OpenAI does', () => {
    const { body } = send({ tools, tool_choice: allowed('auto', 'g') }, { supportsCustomTools: true });
    expect([body['tools'], body['tool_choice']]).toEqual([tools, allowed('auto', 'g')]);
  });
});

it('a dropped choice of a dropped tool is reported, another choice is not', () => {
  const tools = [plain('f'), { type: 'web_search' }];
  expect(send({ tools, tool_choice: { type: 'web_search' } }).toolChoice).toBe('auto');
  expect(send({ tools, tool_choice: 'auto' }).toolChoice).toBeUndefined();
});

it('tools that run at the upstream are dropped and named, unless the channel allows them', () => {
  const tools = [plain('f'), { type: 'web_search' }];
  expect(send({ tools })).toMatchObject({ body: { tools: [plain('f')] }, dropped: ['tools'] });
  expect(send({ tools }, {}, 'chat', ['web_search'])).toMatchObject({ body: { tools }, dropped: [] });
});
