import { describe, expect, it } from 'vitest';
import type { RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];
const send = (request: object, more: Partial<RequestSettings> = {}): object =>
  buildChatBody(chatCall({ model: 'm', messages, ...request }), settingsWith(more)).body;

describe('the body for the upstream', () => {
  const base = { model: 'up', messages, stream: true, stream_options: { include_usage: true } };
  it.each([
    ['always streams with usage', {}, {}, base],
    [
      'keeps other stream options',
      { stream_options: { include_usage: false, x: 1 } },
      {},
      { ...base, stream_options: { include_usage: true, x: 1 } },
    ],
    [
      "does not stream if the channel can't",
      { stream: true, stream_options: {} },
      { stream: false },
      { model: 'up', messages },
    ],
    [
      'omits usage if the channel does not support it',
      {},
      { includeUsage: false },
      { model: 'up', messages, stream: true },
    ],
    ['drops nulls and official', { top_p: null, official: false }, {}, base],
    ['drops an empty tool list and a choice without tools', { tools: [], tool_choice: 'auto' }, {}, base],
    [
      "overrides the client's fields with the channel's",
      { temperature: 1 },
      { set: { temperature: 0 } },
      { ...base, temperature: 0 },
    ],
    ['drops the fields that the channel names', { top_k: 1 }, { drop: ['top_k'] }, base],
    [
      'lowers a limit in the field that the client used',
      { max_tokens: 900 },
      { maxOutputTokens: 100 },
      { ...base, max_tokens: 100 },
    ],
    [
      'keeps a smaller limit',
      { max_completion_tokens: 9 },
      { maxOutputTokens: 100 },
      { ...base, max_completion_tokens: 9 },
    ],
  ])('%s', (_case, request, more, expected) => {
    expect(send(request, more)).toEqual(expected);
  });
});
