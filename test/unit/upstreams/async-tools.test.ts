/** Labels that only some upstreams know: sent where they have a meaning, and otherwise named as dropped. */
import { expect, it } from 'vitest';
import { chatEndpoint } from '../../../shared/endpoints/chat/chat-endpoint.ts';
import { responsesEndpoint } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { convertCall } from '../../../shared/upstreams/called-channel.ts';
import { loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { defaultQuirks } from '../../../shared/upstreams/quirks.ts';
import type { CanonicalCall } from '../../../shared/wire/canonical-call.ts';
import { settingsWith } from '../../support/dialect-parts.ts';

const parameters = { type: 'object', properties: {} };
const chat = chatEndpoint.read(
  {
    model: 'm',
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'I look.', phase: 'commentary' },
      { role: 'user', content: 'go on' },
    ],
    tools: [{ type: 'function', async: true, function: { name: 'look', parameters } }],
  },
  {},
).call;
const responses = responsesEndpoint.read(
  {
    model: 'm',
    input: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'I look.', phase: 'commentary' },
      { role: 'user', content: 'go on' },
    ],
    tools: [{ type: 'function', async: true, name: 'look', parameters }],
  },
  {},
).call;

it.each<[string, CanonicalCall, string, object | undefined, string[]]>([
  ['chat', chat, 'chat', undefined, ['phase']],
  ['chat', chat, 'chat', { acceptedFields: new Set(['tools']) }, ['phase', 'async']],
  ['chat', chat, 'responses', undefined, []],
  ['chat', chat, 'messages', undefined, ['phase', 'async']],
  ['responses', responses, 'responses', undefined, []],
  ['responses', responses, 'chat', undefined, ['async']],
  ['responses', responses, 'messages', undefined, ['async']],
])(
  'asynchronous tools and phases from %s are sent, or named as dropped: %#',
  async (_form, call, name, quirks, dropped) => {
    const settings = settingsWith(quirks ? { quirks: { ...defaultQuirks, ...quirks } } : {});
    const { body, dropped: named } = convertCall(await loadDialect(name), call, {
      ...settings,
      dropsUnknown: true,
    });
    expect(named).toEqual(dropped);
    const text = JSON.stringify(body);
    expect(text.includes('"async":true')).toBe(!dropped.includes('async'));
    expect(text.includes('"phase":"commentary"')).toBe(name === 'responses');
  },
);
