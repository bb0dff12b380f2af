/** Errors in the form that Anthropic's clients act on: status, type, headers, and the vendor's text. */
import { describe, expect, it } from 'vitest';
import { refuse, respondRefusal, type RefusalCode } from '../../../../shared/relay/http/refusal.ts';
import { renderErrorBody } from '../../../../shared/endpoints/messages/errors.ts';
import { messagesEndpoint } from '../../../../shared/endpoints/messages/messages-endpoint.ts';
import {
  CoreRig,
  data,
  delta,
  demoKey,
  done,
  finish,
  hang,
  keyRow,
  reset,
  usage,
  type RigOptions,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const path = '/v1/messages';
const base = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1', secret: 'claude' };
const headers = { 'x-api-key': demoKey };

async function ask(body: object, script: UpstreamScript | UpstreamScript[], options: RigOptions = {}) {
  const rig = new CoreRig(options).upstream(...[script].flat());
  const answer = await rig.post(body, { path, headers });
  expect(rig.faults).toEqual([]);
  return answer;
}
const errorOf = (text: string): Json => (JSON.parse(text) as { error: Json }).error;

const invalid = 'invalid_request_error';
/** The contract of this endpoint: messages.md, "Errors". */
const shown: Record<RefusalCode, [status: number, type: string]> = {
  relay_closed: [403, 'permission_error'],
  origin_denied: [403, 'permission_error'],
  invalid_api_key: [401, 'authentication_error'],
  model_not_allowed: [403, 'permission_error'],
  official_not_allowed: [403, 'permission_error'],
  key_may_not_manage: [403, 'permission_error'],
  key_exceeds_own: [403, 'permission_error'],
  key_not_yours_to_change: [403, 'permission_error'],
  key_not_found: [404, 'not_found_error'],
  key_changed: [409, invalid],
  too_many_keys: [409, invalid],
  top_up_not_offered: [404, 'not_found_error'],
  top_up_failed: [502, 'api_error'],
  code_not_found: [404, 'not_found_error'],
  code_redeemed: [409, invalid],
  code_revoked: [409, invalid],
  code_expired: [409, invalid],
  customer_refused: [403, 'permission_error'],
  relay_loop: [508, 'api_error'],
  unsupported_content_encoding: [415, invalid],
  request_too_large: [413, 'request_too_large'],
  invalid_encoding: [400, invalid],
  empty_body: [400, invalid],
  invalid_json: [400, invalid],
  json_too_deep: [400, invalid],
  json_too_wide: [400, invalid],
  too_much_work: [400, invalid],
  model_not_found: [404, 'not_found_error'],
  response_not_found: [404, 'not_found_error'],
  previous_response_not_found: [400, invalid],
  thread_not_found: [404, 'not_found_error'],
  not_found: [404, 'not_found_error'],
  method_not_allowed: [405, invalid],
  websocket_not_offered: [426, invalid],
  insufficient_quota: [402, 'billing_error'],
  request_in_progress: [409, invalid],
  request_already_completed: [409, invalid],
  idempotency_key_reused: [422, invalid],
  rate_limit_exceeded: [429, 'rate_limit_error'],
  balance_reserved: [429, 'rate_limit_error'],
  upstream_unavailable: [502, 'api_error'],
  upstream_timeout: [504, 'timeout_error'],
  unavailable: [503, 'api_error'],
  internal: [500, 'api_error'],
};

/** Anthropic's own codes for rejections that its API has too. */
const vendorCodes: Record<string, string> = {
  invalid_encoding: 'request_body_encoding_invalid',
  unsupported_content_encoding: 'request_body_encoding_unsupported',
};

describe('a refusal', () => {
  it.each(Object.entries(shown))('%s has the status and type %j', (code, [status, type]) => {
    const refusal = refuse(code as RefusalCode, 'Words.', { param: 'x' });
    const response = respondRefusal(refusal, 'r1', messagesEndpoint);
    expect([response.status, JSON.parse(response.body)]).toEqual([
      status,
      {
        type: 'error',
        error: {
          type,
          message: 'Words.',
          code,
          param: 'x',
          details: { error_code: vendorCodes[code] ?? code },
        },
        request_id: 'r1',
      },
    ]);
    expect(response.headers).toMatchObject({ 'request-id': 'r1', 'x-request-id': 'r1' });
  });

  it.each<RefusalCode>([
    'upstream_unavailable',
    'upstream_timeout',
    'rate_limit_exceeded',
    'insufficient_quota',
    'unavailable',
    'internal',
  ])('%s has the same type after the answer has begun', (code) => {
    expect(renderErrorBody(refuse(code, 'Words.').body.error, 'r1')).toMatchObject({
      error: { type: shown[code][1] },
    });
  });

  it('for a limit reports in whole seconds when to retry', async () => {
    const busy = {
      status: 429,
      headers: { 'content-type': 'application/json', 'retry-after': '1.2' },
      steps: [JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: 'slow' } })],
    };
    expect((await ask(base, busy, { channels: [claude] })).headers['retry-after']).toBe('2');
    const rig = new CoreRig({ keys: { [demoKey]: { row: keyRow({ rpm: 1 }) } } });
    rig.upstream({ steps: [delta('x'), finish(), usage(5, 1), done] });
    await rig.post(base, { path, headers });
    const answer = await rig.post(base, { path, headers, id: '01second000000000000000000' });
    expect([answer.status, errorOf(answer.text)['type']]).toEqual([429, 'rate_limit_error']);
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });

  it('is not retryable if an upstream may have charged', async () => {
    const { status, headers: sent, text } = await ask(base, { steps: [delta('x'), reset] });
    expect([status, sent['x-should-retry'], errorOf(text)['type']]).toEqual([502, 'false', 'api_error']);
    const refused = await ask(base, { connect: 'refused' });
    expect(refused.headers['x-should-retry']).toBeUndefined();
  });
});

describe("the details of a vendor's rejection", () => {
  const refuseWith = (status: number, type: string, details: unknown): UpstreamScript => ({
    status,
    headers: { 'content-type': 'application/json' },
    steps: [JSON.stringify({ type: 'error', error: { type, message: 'Words.', details } })],
  });
  const long = 'x'.repeat(2_000);

  it.each<[what: string, status: number, details: unknown, shown: unknown]>([
    [
      'name the cause and the unsupported fields',
      400,
      { error_code: 'thread_unsupported_request', unsupported: ['cache_control'] },
      { error_code: 'thread_unsupported_request', unsupported: ['cache_control'] },
    ],
    [
      'reach the client with a 404',
      404,
      { error_code: 'thread_not_found' },
      { error_code: 'thread_not_found' },
    ],
    [
      'keep plain values',
      400,
      { error_code: 'a', limit: 5, hard: true },
      { error_code: 'a', limit: 5, hard: true },
    ],
    ['without a code stay without one', 400, undefined, undefined],
    ['have a word as code, or no code', 400, { error_code: 'two words', at: 'tools' }, { at: 'tools' }],
    ['contain only textual codes', 400, { error_code: { a: 1 } }, undefined],
    [
      'do not show the secret',
      400,
      { error_code: 'a', key: 'the claude' },
      { error_code: 'a', key: 'the [removed]' },
    ],
    [
      'do not show an address',
      400,
      { error_code: 'a', at: ['https://claude.test/v1'] },
      { error_code: 'a', at: ['[removed]'] },
    ],
    [
      'hold no objects',
      400,
      { error_code: 'a', deep: { deep: {} }, list: [{}, 'b'] },
      { error_code: 'a', list: ['b'] },
    ],
    [
      'are limited in length',
      400,
      { error_code: 'a', text: long },
      { error_code: 'a', text: long.slice(0, 600) },
    ],
    ['are not a list', 400, ['a'], undefined],
  ])('%s', async (_what, status, details, wanted) => {
    const script = refuseWith(status, status === 404 ? 'not_found_error' : invalid, details);
    const answer = await ask(base, script, { channels: [claude], secretOf: () => 'claude' });
    expect([answer.status, errorOf(answer.text)['details']]).toEqual([status, wanted]);
  });

  it('are limited in number', async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`d${i}`, 'x']));
    const answer = await ask(base, refuseWith(400, invalid, many), { channels: [claude] });
    expect(Object.keys(errorOf(answer.text)['details'] as Json)).toHaveLength(16);
  });

  it('come with an error event after the answer has begun', async () => {
    const begun = [
      { type: 'message_start', message: { usage: { input_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
      { type: 'error', error: { type: invalid, message: 'Words.', details: { error_code: 'a_cause' } } },
    ];
    const script = { steps: begun.map((event) => data(event)) };
    const answer = await ask({ ...base, stream: true }, script, { channels: [claude] });
    expect(answer.text).toContain('"details":{"error_code":"a_cause"}');
  });

  it('are omitted for other endpoints', async () => {
    const rig = new CoreRig({ channels: [claude] });
    rig.upstream(refuseWith(400, invalid, { error_code: 'thread_not_found' }));
    const { max_tokens: _limit, ...chat } = base;
    const answer = await rig.post(chat);
    expect(Object.keys(errorOf(answer.text))).toEqual(['message', 'type', 'param', 'code']);
  });
});

describe("a vendor's rejection of the request", () => {
  it.each([
    ['prompt is too long: 200251 tokens > 200000 maximum', undefined],
    ['messages.1.content.0: Invalid `signature` in `thinking` block', undefined],
    ['max_tokens: Extra inputs are not permitted', undefined],
    [
      "messages.0.content.0: Input tag 'x' found using 'type' does not match any of the expected tags",
      undefined,
    ],
    ['The key upstream-secret-value at claude.test is odd', /upstream-secret-value|claude\.test/],
  ])('reaches the client: %s', async (message, withheld) => {
    const refused = {
      status: 400,
      headers: { 'content-type': 'application/json' },
      steps: [JSON.stringify({ type: 'error', error: { type: invalid, message } })],
    };
    const { status, text } = await ask(base, refused, { channels: [claude] });
    const error = errorOf(text);
    expect([status, error['type']]).toEqual([400, invalid]);
    if (withheld) expect(error['message']).not.toMatch(withheld);
    else expect(error['message']).toBe(message);
  });

  it('for a long prompt uses the words on which clients shorten it, whatever the dialect', async () => {
    const refused = {
      status: 400,
      headers: { 'content-type': 'application/json' },
      steps: [
        JSON.stringify({
          error: { message: 'Too many tokens.', type: invalid, code: 'context_length_exceeded' },
        }),
      ],
    };
    expect(errorOf((await ask(base, refused)).text)['message']).toBe('prompt is too long: Too many tokens.');
  });
});

describe('a started answer', () => {
  const stream = { ...base, stream: true };

  it('begins and sends pings while its upstream is silent', async () => {
    const { said } = await ask(stream, { steps: [70_000, delta('x'), finish(), usage(5, 1), done] });
    const at = (text: RegExp): number[] => said.filter((one) => text.test(one.text)).map(({ atMs }) => atMs);
    expect([at(/event: message_start/), at(/event: ping/)]).toEqual([
      [20_000],
      [20_000, 35_000, 50_000, 65_000],
    ]);
    expect(said[0]?.text).toMatch(/^event: message_start\n.*\n\nevent: ping\ndata: {"type":"ping"}\n\n$/);
  });

  it('ends with an error event when it fails, and nothing follows', async () => {
    const { status, text } = await ask(stream, { steps: [delta('x'), reset] });
    const last = text.trim().split('\n\n').at(-1) ?? '';
    expect([status, last.split('\n')[0]]).toEqual([200, 'event: error']);
    expect(JSON.parse(last.split('\ndata: ')[1] ?? '')).toMatchObject({
      type: 'error',
      error: { type: 'api_error', code: 'upstream_unavailable' },
      request_id: '01testrequest0000000000000',
    });
    expect(text).not.toContain('message_stop');
  });

  it('ends as the error, after white space, when it is JSON and fails late', async () => {
    const { status, text } = await ask(base, { steps: [data({ choices: [] }), hang] });
    expect(status).toBe(200);
    expect(text).toMatch(/^ +\{"type":"error","error":\{"type":"timeout_error"/);
  });
});
