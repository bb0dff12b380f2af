/** The effect of a row's `set` and `drop` on a body, in every dialect. */
import { describe, expect, it } from 'vitest';
import type { RequestSettings, SentBody } from '../../../shared/upstreams/dialect.ts';
import { buildChatBody } from '../../../shared/upstreams/dialects/chat/request.ts';
import { buildMessagesBody } from '../../../shared/upstreams/dialects/messages/request.ts';
import { buildResponsesBody } from '../../../shared/upstreams/dialects/responses/request.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const call = chatCall({ model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 });

describe.each([
  ['chat', buildChatBody, 'max_tokens'],
  ['messages', buildMessagesBody, 'max_tokens'],
  ['responses', buildResponsesBody, 'max_output_tokens'],
])('the body of %s', (_name, build, field) => {
  const send = (more: Partial<RequestSettings>): SentBody => build(call, settingsWith(more));

  it('requests the format that the reader expects', () => {
    expect(send({ stream: true, set: { stream: false } }).body['stream']).toBe(true);
    expect(send({ stream: true, drop: ['stream'] }).body['stream']).toBe(true);
    expect(send({ stream: false, set: { stream: true } }).body).not.toHaveProperty('stream');
  });

  it('reports the limit that it contains', () => {
    expect(send({})).toMatchObject({ body: { [field]: 100 }, outputTokensMax: 100 });
    expect(send({ set: { [field]: 30 } })).toMatchObject({ body: { [field]: 30 }, outputTokensMax: 30 });
    expect(send({ drop: [field] }).outputTokensMax).toBeUndefined();
  });
});
