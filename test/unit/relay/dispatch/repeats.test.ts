/** Repeats of a refused request on the same candidate, and candidates that cannot carry a call. */
import { describe, expect, it, vi } from 'vitest';
import { CoreRig, data, hello, type UpstreamScript } from '../../../support/core-rig.ts';

vi.mock('../../../../shared/upstreams/dialects/dialects.ts', async () => {
  const { statefulRegistry } = await import('../../../support/stateful-dialects.ts');
  return statefulRegistry;
});

const tools = [{ type: 'function', function: { name: 'look' } }];
const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true };
const good: UpstreamScript = { steps: hello };
const refusal = (error: object, status = 400): UpstreamScript => ({
  status,
  steps: [JSON.stringify({ error })],
});
const wantsResponses = refusal({
  message:
    "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
  type: 'invalid_request_error',
});
const limitTooLarge = refusal({
  message: 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.',
  type: 'invalid_request_error',
  param: 'max_tokens',
  code: 'invalid_value',
});
const foreignState = refusal({ message: 'no', code: 'invalid_encrypted_content' });
const noInclude = refusal({ message: 'no', param: 'include[0]', code: 'unsupported_value' });

const forms = (rig: CoreRig) => rig.sent.map(({ json }) => [json['x_dialect'], json['x_without']]);

describe('a call with tools that is refused in its dialect', () => {
  it('is retried in the other dialect unseen, and the next call starts with that dialect', async () => {
    const rig = new CoreRig().upstream(wantsResponses, good);
    const answer = await rig.post({ ...ask, tools });
    expect(answer.status).toBe(200);
    expect(answer.headers['x-relay-attempts']).toBe('1');
    expect(rig.sent.map(({ url }) => new URL(url).pathname)).toEqual([
      '/v1/chat/completions',
      '/v1/responses',
    ]);
    await rig.post({ ...ask, tools });
    expect(rig.sent).toHaveLength(3);
    expect(forms(rig)[2]).toEqual(['responses', []]);
    expect(rig.learned.written).toMatchObject([{ fact: 'speaks:responses', channel: 'main', model: 'm' }]);
  });

  it('uses the usual dialect again after an hour, and always without tools', async () => {
    const rig = new CoreRig().upstream(wantsResponses, good);
    await rig.post({ ...ask, tools });
    await rig.post(ask);
    await rig.clock.run(rig.clock.sleep(3_600_000));
    await rig.post({ ...ask, tools });
    expect(forms(rig).map(([dialect]) => dialect)).toEqual(['chat', 'responses', 'chat', 'chat']);
  });

  it('fails with that refusal, without failover, when the other dialect cannot carry it', async () => {
    const channels = [{ id: 'half', priority: 2, mapper: { m: 'half' } }, { id: 'wide' }];
    const rig = new CoreRig({ channels }).upstream(wantsResponses, good);
    const answer = await rig.post({ ...ask, tools, n: 1 });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('Function tools with reasoning_effort are not supported');
    expect(rig.sent).toHaveLength(1);
    expect(rig.logged[0]?.attempts).toMatchObject([{ channel: 'half', outcome: 'refused' }]);
    expect(rig.logged[0]).toMatchObject({ upstream_status: 400 });
  });

  it.each([
    ['without tools', ask, {}],
    ['on a type with one dialect', { ...ask, tools }, { type: 'gemini' }],
  ])('is not retried %s', async (_case, body, row) => {
    const rig = new CoreRig({ channels: [row] }).upstream(wantsResponses, good);
    expect((await rig.post(body)).status).toBe(400);
    expect(rig.sent).toHaveLength(1);
  });

  it('is not retried when the refusal may quote the path from the request', async () => {
    const refused = refusal({
      message: "Invalid value: '/v1/responses'. Supported values are: 'a' and 'b'.",
      param: 'messages',
      code: 'invalid_value',
    });
    const rig = new CoreRig().upstream(refused, good);
    const answer = await rig.post({ ...ask, tools, messages: [{ role: 'user', content: '/v1/responses' }] });
    expect([answer.status, rig.sent.length]).toEqual([400, 1]);
    expect(rig.learned.written).toEqual([]);
  });
});

describe('a refused part of a request', () => {
  const cases: [string, UpstreamScript, object][] = [
    ['limit', limitTooLarge, { ...ask, max_tokens: 100_000 }],
    ['state', foreignState, ask],
    ['include', noInclude, ask],
  ];
  it.each(cases)('%s is left out of one retry on the same candidate', async (part, refused, body) => {
    const rig = new CoreRig().upstream(refused, good);
    const answer = await rig.post(body);
    expect(answer.status).toBe(200);
    expect(answer.headers['x-relay-attempts']).toBe('1');
    expect(forms(rig)).toEqual([
      ['chat', []],
      ['chat', [part]],
    ]);
    expect(rig.health.writes).toEqual([]);
  });

  it.each(cases)('%s is left out once: a second refusal is final', async (_part, refused, body) => {
    const rig = new CoreRig().upstream(refused);
    expect((await rig.post(body)).status).toBe(400);
    expect(rig.sent).toHaveLength(2);
  });

  it('allows three requests in all: the last refusal is final and teaches nothing', async () => {
    const rig = new CoreRig().upstream(limitTooLarge, foreignState, noInclude, good);
    const answer = await rig.post({ ...ask, max_tokens: 100_000 });
    expect([answer.status, rig.sent.length]).toEqual([400, 3]);
    expect(answer.text).toContain('include[0]');
    expect(rig.learned.written).toEqual([]);
  });

  it('limit: a refused one is not sent again, but a lower one is', async () => {
    const rig = new CoreRig().upstream(limitTooLarge, good);
    await rig.post({ ...ask, max_tokens: 100_000 });
    await rig.post({ ...ask, max_tokens: 131_072 });
    await rig.post({ ...ask, max_tokens: 131_071 });
    expect(rig.sent.map(({ json }) => json['max_tokens'])).toEqual([100_000, undefined, undefined, 131_071]);
  });

  it('is found in an error before the first content of the answer, not after it', async () => {
    const event = data({ x_error: { code: 'invalid_encrypted_content' } });
    const rig = new CoreRig().upstream({ steps: [event] }, good);
    expect((await rig.post(ask)).status).toBe(200);
    const late = new CoreRig().upstream({ steps: [hello[0] ?? '', event] }, good);
    expect((await late.post(ask)).text).toContain('upstream_unavailable');
    expect(late.sent).toHaveLength(1);
  });
});

describe('a candidate that cannot carry a call', () => {
  const narrow = { id: 'narrow', priority: 2, mapper: { m: 'narrow' } };
  const wide = { id: 'wide', priority: 1 };

  it('leaves its probe to a call that it can carry', async () => {
    const rig = new CoreRig({ channels: [narrow, wide] }).upstream(good);
    await rig.health.set('narrow', { kind: 'rate_limit', untilMs: rig.clock.now() - 1 });
    await rig.post({ ...ask, n: 1 });
    await rig.post(ask);
    expect(rig.logged.map(({ channel }) => channel)).toEqual(['wide', 'narrow']);
  });

  it('without an alternative causes a 400 that names the field, and nothing is charged', async () => {
    const charges = [{ id: 1, type: 'times-billing', models: ['m'], output: 1 }];
    const rig = new CoreRig({ channels: [narrow], charges });
    await rig.quotas.create('acme');
    const item = rig.quotas.items.get('acme');
    if (item) rig.quotas.items.set('acme', { ...item, available: 5_000_000_000n, granted: 5_000_000_000n });
    const answer = await rig.post({ ...ask, n: 1 });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text).error).toMatchObject({ code: 'unsupported_parameter', param: 'n' });
    expect(rig.sent).toEqual([]);
    const after = rig.quotas.items.get('acme');
    expect([after?.available, after?.open.size]).toEqual([5_000_000_000n, 0]);
  });
});
