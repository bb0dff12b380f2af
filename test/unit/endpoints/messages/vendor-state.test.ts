/** Fields that refer to data of the vendor: rejected when they can't be sent, and never answered without it. */
import { describe, expect, it } from 'vitest';
import { CoreRig, delta, demoKey, done, finish, usage } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const path = '/v1/messages';
const base = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Only the newest turn.' }] };
const betas =
  'message-threads-2026-08-12,resumption-2026-10-08,recall-2027-01-01,dangerous-tool-use-2026-09-03';
const headers = { 'x-api-key': demoKey, 'anthropic-beta': betas };
const claude = { id: 'claude', type: 'anthropic', endpoint: 'https://claude.test/v1' };
const chat = { id: 'chat', type: 'openai', endpoint: 'https://o.test/v1' };
const responses = { ...chat, dialect: 'responses' };
const message = {
  id: 'msg_vendor',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'ok' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 9, output_tokens: 3 },
};
const answered = { headers: { 'content-type': 'application/json' }, steps: [JSON.stringify(message)] };
const chatted = { steps: [delta('ok'), finish(), usage(9, 3), done] };
const errorOf = (text: string): Json => (JSON.parse(text) as { error: Json }).error;

const classified = [{ type: 'dangerous_tool_use', classifier_context: { v: 1, agent_id: 'a' } }];

describe.each([
  ['Chat Completions', chat],
  ['Responses', responses],
])('an upstream that speaks %s', (_name, channel) => {
  it.each<[field: string, value: unknown, code: string]>([
    ['thread', { type: 'continue', previous_message_id: 'msg_1' }, 'thread_unsupported_request'],
    ['thread', { type: 'continue' }, 'thread_unsupported_request'],
    ['thread', { type: 'later', previous_message_id: 'msg_1' }, 'thread_unsupported_request'],
    ['resumption', { type: 'enabled', token: 't' }, 'resumption_unsupported_request'],
    ['recall', { type: 'from', recall_id: 'r_1' }, 'recall_unsupported_request'],
  ])('never answers a %s of %j from the last message alone', async (field, value, code) => {
    const rig = new CoreRig({ channels: [channel] });
    const answer = await rig.post({ ...base, [field]: value }, { path, headers });
    expect(answer.status).toBe(400);
    expect(errorOf(answer.text)).toMatchObject({
      type: 'invalid_request_error',
      param: field,
      details: { error_code: code, unsupported: [field] },
    });
    expect(rig.sent).toEqual([]);
  });

  it("can't check the use of tools, and rejects safeguards in the vendor's words", async () => {
    const rig = new CoreRig({ channels: [channel] });
    const answer = await rig.post({ ...base, safeguards: classified }, { path, headers });
    expect(answer.status).toBe(400);
    expect(errorOf(answer.text)).toMatchObject({
      message: expect.stringMatching(/^safeguards: Extra inputs are not permitted/),
      param: 'safeguards',
    });
    expect(rig.sent).toEqual([]);
  });
});

describe('an upstream of another form', () => {
  it.each<[field: string, value: unknown, dropped: string | undefined]>([
    ['thread', { type: 'create' }, 'thread'],
    ['resumption', { type: 'enabled' }, 'resumption'],
    ['diagnostics', { previous_message_id: 'msg_1' }, 'diagnostics'],
    ['safeguards', [], undefined],
    ['thread', null, undefined],
    ['metadata', { user_id: 'u' }, 'metadata.user_id'],
  ])('is asked without a %s of %j', async (field, value, dropped) => {
    const rig = new CoreRig({ channels: [chat] }).upstream(chatted);
    const beta = { ...headers, 'anthropic-beta': `${betas},metadata-2026-01-01` };
    const answer = await rig.post({ ...base, [field]: value }, { path, headers: beta });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, dropped]);
    expect(rig.sent[0]?.json[field]).toBeUndefined();
  });

  it('is skipped for one that supports the field', async () => {
    const rig = new CoreRig({
      channels: [
        { ...chat, priority: 2 },
        { ...claude, priority: 1 },
      ],
    });
    rig.upstream(answered);
    const answer = await rig.post({ ...base, safeguards: classified }, { path, headers });
    expect(answer.status).toBe(200);
    expect(rig.sent[0]).toMatchObject({
      json: { safeguards: classified },
      headers: { 'anthropic-beta': betas },
    });
  });
});

describe('an upstream that speaks Messages', () => {
  it.each([
    [{ drop: ['safeguards'] }, { safeguards: classified }, 'safeguards'],
    [{}, { resumption: { type: 'enabled', token: 't' } }, 'resumption'],
  ])('with %j in its row is not asked without the field of %j', async (params, field, param) => {
    const rig = new CoreRig({ channels: [{ ...claude, params }] });
    const answer = await rig.post({ ...base, ...field }, { path, headers });
    expect([answer.status, errorOf(answer.text)['param'], rig.sent]).toEqual([400, param, []]);
  });

  it('receives a field that its row allows', async () => {
    const rig = new CoreRig({ channels: [{ ...claude, params: { allow: ['resumption'] } }] }).upstream(
      answered,
    );
    const resumption = { type: 'enabled', token: 't' };
    const answer = await rig.post({ ...base, resumption }, { path, headers });
    expect([answer.status, rig.sent[0]?.json['resumption']]).toEqual([200, resumption]);
  });

  it('has its verdicts passed on', async () => {
    const results = { toolu_1: { status: 'evaluated', outcome: 'not_flagged' } };
    const script = { ...answered, steps: [JSON.stringify({ ...message, safeguard_results: results })] };
    const rig = new CoreRig({ channels: [claude] }).upstream(script);
    const answer = await rig.post({ ...base, safeguards: classified }, { path, headers });
    expect(JSON.parse(answer.text)).toMatchObject({ safeguard_results: results });
  });
});
