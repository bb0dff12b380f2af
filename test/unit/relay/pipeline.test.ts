import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  delta,
  demoKey,
  done,
  finish,
  frames,
  hang,
  hello,
  keyRow,
  reset,
  usage,
} from '../../support/core-rig.ts';
import type { RigOptions } from '../../support/core-rig.ts';
import { refuse } from '../../../shared/relay/http/refusal.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const stream = { ...ask, stream: true };

describe('a chat completion', () => {
  it('is answered with the whole documented object without streaming', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const answer = await rig.post(ask);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': '01testrequest0000000000000',
    });
    expect(JSON.parse(answer.text)).toEqual({
      id: 'chatcmpl-01testrequest0000000000000',
      object: 'chat.completion',
      created: Date.UTC(2026, 10, 21) / 1000,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null, tool_calls: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 2,
        total_tokens: 9,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    });
  });

  it('is streamed in chunks with one id, the role first, usage on the finish chunk, then [DONE]', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const answer = await rig.post(stream);
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const list = frames(answer.text) as {
      id: string;
      choices: { delta: object; finish_reason: string }[];
      usage: unknown;
    }[];
    expect(list.at(-1)).toBe('[DONE]');
    const chunks = list.slice(0, -1);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: 'assistant', content: 'Hel' },
      { content: 'lo' },
      {},
    ]);
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, 'stop']);
    expect(chunks.map((chunk) => chunk.usage)).toEqual([
      null,
      null,
      expect.objectContaining({ total_tokens: 9 }),
    ]);
    expect(answer.text).not.toContain('"error"');
  });

  it('is streamed with usage in a separate chunk without choices if the client asks for it', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const answer = await rig.post({ ...stream, stream_options: { include_usage: true } });
    const list = frames(answer.text).slice(0, -1) as { choices: unknown[]; usage: unknown }[];
    expect(list.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 7 } });
    expect(list.at(-2)).toMatchObject({ usage: null, choices: [{ finish_reason: 'stop' }] });
  });

  it('may have input and flat tools, as Cursor sends them', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const tools = [{ type: 'function', name: 'look', parameters: {} }];
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }];
    const answer = await rig.post({ model: 'm', input, tools, reasoning: { effort: 'low' } });
    expect(JSON.parse(answer.text)).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'Hello' } }],
    });
    expect(rig.logged[0]).toMatchObject({ endpoint: 'chat', end: 'completed' });
    const wrong = await rig.post({ model: 'm', input, messages: ask.messages });
    expect([wrong.status, JSON.parse(wrong.text)]).toMatchObject([400, { error: { param: 'input' } }]);
  });

  it('gets estimated usage if the upstream reports none, and the log marks it', async () => {
    const rig = new CoreRig().upstream({ steps: [delta('four words of text'), finish(), done] });
    const answer = await rig.post(ask);
    const counted = JSON.parse(answer.text).usage;
    expect(counted.completion_tokens).toBe(6);
    expect(counted.prompt_tokens).toBeGreaterThan(0);
    expect(counted.total_tokens).toBe(counted.prompt_tokens + counted.completion_tokens);
    expect(rig.logged[0]).toMatchObject({ usage_estimated: true, end: 'completed' });
  });

  it('gets estimated usage if the upstream counts zero for an answer', async () => {
    const rig = new CoreRig().upstream({ steps: [delta('x'), finish(), usage(0, 0), done] });
    expect(JSON.parse((await rig.post(ask)).text).usage).toMatchObject({
      prompt_tokens: 5,
      completion_tokens: 2,
    });
    expect(rig.logged[0]).toMatchObject({ usage_estimated: true, usage_flag: 'input:low output:low' });
  });

  it('keeps the index of each of several choices', async () => {
    const steps = [
      delta('a0', 0),
      delta('b0', 1),
      finish('stop', 0),
      delta('b1', 1),
      finish('length', 1),
      usage(1, 3),
      done,
    ];
    const rig = new CoreRig().upstream({ steps });
    const body = JSON.parse((await rig.post({ ...ask, n: 2 })).text);
    expect(body.choices).toMatchObject([
      { index: 0, message: { content: 'a0' }, finish_reason: 'stop' },
      { index: 1, message: { content: 'b0b1' }, finish_reason: 'length' },
    ]);
  });

  it('is sent as a stream with usage, the channel’s model name and the client’s sampling fields', async () => {
    const rig = new CoreRig({
      channels: [{ mapper: { m: 'real-m' }, secret: 'ssm:/relay/relay/x' }],
    }).upstream({ steps: hello });
    const parts = [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'auto' } },
    ];
    await rig.post({
      ...ask,
      messages: [
        { role: 'developer', content: 'be brief' },
        { role: 'user', content: parts },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: '42', name: null },
      ],
      top_k: 4,
      max_tokens: null,
      official: false,
      seed: 7,
    });
    const [sent] = rig.sent;
    expect(sent?.url).toBe('https://upstream.test/v1/chat/completions');
    expect(sent?.headers).toMatchObject({ authorization: 'Bearer upstream-secret-value' });
    expect(sent?.json).toEqual({
      model: 'real-m',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: parts },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: '42' },
      ],
      top_k: 4,
      seed: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

describe('the checks run in order, and each refusal has its own code', () => {
  const good = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
  const errors = {
    not_found: [404, 'invalid_request_error'],
    method_not_allowed: [405, 'invalid_request_error'],
    relay_closed: [403, 'access_denied_error'],
    invalid_api_key: [401, 'authentication_error'],
    invalid_json: [400, 'invalid_request_error'],
    missing_required_parameter: [400, 'invalid_request_error'],
    invalid_value: [400, 'invalid_request_error'],
    official_not_allowed: [403, 'access_denied_error'],
    model_not_allowed: [403, 'access_denied_error'],
    model_not_found: [404, 'invalid_request_error'],
    unavailable: [503, 'internal_error'],
  } as const;
  const table: [string, RigOptions, object, object, keyof typeof errors][] = [
    ['an unknown path', {}, good, { path: '/v1/chat/nothing' }, 'not_found'],
    ['a wrong method', {}, good, { method: 'GET' }, 'method_not_allowed'],
    [
      'a closed relay, before the key',
      { settings: { relayClosed: true } },
      good,
      { headers: {} },
      'relay_closed',
    ],
    ['no key', {}, good, { headers: {} }, 'invalid_api_key'],
    ['a malformed key', {}, good, { headers: { authorization: 'Bearer nonsense' } }, 'invalid_api_key'],
    ['an unknown key', {}, good, { headers: { authorization: 'Bearer sk-other' } }, 'invalid_api_key'],
    [
      'a disabled key',
      { keys: { [demoKey]: { row: keyRow({ enabled: false }) } } },
      good,
      {},
      'invalid_api_key',
    ],
    [
      'an expired key',
      { keys: { [demoKey]: { row: keyRow({ expires_at: '2020-01-01' }) } } },
      good,
      {},
      'invalid_api_key',
    ],
    [
      'a key of another kind',
      { keys: { [demoKey]: { row: keyRow({ agent: 'web' }) } } },
      good,
      {},
      'invalid_api_key',
    ],
    [
      'a key with an invalid row',
      { keys: { [demoKey]: { missing: 'invalid_row' } } },
      good,
      {},
      'invalid_api_key',
    ],
    [
      'a bad body, after the key',
      {},
      {},
      {
        json: () => {
          throw refuse('invalid_json', 'no');
        },
      },
      'invalid_json',
    ],
    ['a missing model', {}, { messages: good.messages }, {}, 'missing_required_parameter'],
    ['missing messages', {}, { model: 'm' }, {}, 'missing_required_parameter'],
    ['empty messages', {}, { model: 'm', messages: [] }, {}, 'invalid_value'],
    ['an unknown role', {}, { model: 'm', messages: [{ role: 'robot', content: '' }] }, {}, 'invalid_value'],
    ['a model name with spaces', {}, { ...good, model: 'a b' }, {}, 'invalid_value'],
    ['official without permission', {}, { ...good, model: 'nope-official' }, {}, 'official_not_allowed'],
    ['official by flag without permission', {}, { ...good, official: true }, {}, 'official_not_allowed'],
    [
      'a model outside the whitelist',
      { keys: { [demoKey]: { row: keyRow({ models: ['x'] }) } } },
      good,
      {},
      'model_not_allowed',
    ],
    [
      'an empty whitelist',
      { keys: { [demoKey]: { row: keyRow({ models: [] }) } } },
      good,
      {},
      'model_not_allowed',
    ],
    ['a model without a channel', {}, { ...good, model: 'other' }, {}, 'model_not_found'],
    [
      'an unpriced model when those are refused',
      { settings: { unpricedModels: 'refuse' } },
      good,
      {},
      'model_not_found',
    ],
    ['a store that is down', { configDown: true }, good, {}, 'unavailable'],
    ['a key store that is down', { keys: { [demoKey]: 'store_down' } }, good, {}, 'unavailable'],
  ];
  it.each(table)('%s', async (_case, options, body, request, code) => {
    const [status, type] = errors[code];
    const rig = new CoreRig(options).upstream({ steps: hello });
    const answer = await rig.post(body, request);
    const { error } = JSON.parse(answer.text);
    expect({ status: answer.status, type: error.type, code: error.code }).toEqual({ status, type, code });
    expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
    expect(answer.headers['x-request-id']).toBe('01testrequest0000000000000');
    expect(rig.sent).toHaveLength(0);
    expect(rig.logged[0]).toMatchObject({ status, code });
  });

  it('does not look up a malformed key', async () => {
    const rig = new CoreRig();
    await rig.post(ask, { headers: { authorization: 'Bearer sk-\u0000' } });
    expect(rig.keyLookups).toBe(0);
  });

  it('distinguishes unknown, disabled and expired keys only in the log', async () => {
    const rows = [
      { missing: 'unknown' } as const,
      { row: keyRow({ enabled: false }) },
      { row: keyRow({ expires_at: '2020-01-01' }) },
    ];
    const seen = new Set<string>();
    const reasons: unknown[] = [];
    for (const row of rows) {
      const rig = new CoreRig({ keys: { [demoKey]: row } });
      seen.add((await rig.post(ask)).text);
      reasons.push(rig.logged[0]?.reason);
    }
    expect(seen.size).toBe(1);
    expect(reasons).toEqual(['key_unknown', 'key_disabled', 'key_expired']);
  });

  it('strips one prefix and one suffix and accepts official keys', async () => {
    const rig = new CoreRig({ keys: { [demoKey]: { row: keyRow({ official: true }) } } }).upstream({
      steps: hello,
    });
    const answer = await rig.post({ ...ask, model: 'web-m-official' });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text).model).toBe('m');
    expect(rig.sent[0]?.json).not.toHaveProperty('official');
  });
});

describe('an upstream that fails before its first content', () => {
  const html = '<html><body>login</body></html>';
  const table: [string, object, boolean, number?, string?][] = [
    ['refuses the connection', { connect: 'refused' }, true],
    ['never answers', { connect: 'hang' }, false, 504, 'upstream_timeout'],
    ['sends only headers', { steps: [hang] }, false, 504, 'upstream_timeout'],
    ['resets before content', { steps: [reset] }, false],
    ['sends an empty answer', { steps: [] }, false],
    ['answers a web page', { steps: [html] }, false],
    ['answers an error in a 200', { steps: [JSON.stringify({ error: { message: 'x' } })] }, false],
    ['answers an error event in a 200', { steps: [data({ error: { message: 'x' } })] }, false],
    [
      'stops early without any finish',
      { steps: [data({ choices: [{ index: 0, delta: { role: 'assistant' } }] })] },
      false,
    ],
    ['sends junk only', { steps: ['blah\n\ndata: {nope\n\n'] }, false],
    ['sends only [DONE]', { steps: [done] }, false],
    ['breaks inside a JSON answer', { steps: ['{"choices":[{"mess'] }, false],
    ['answers 401', { status: 401, steps: ['{"error":{"message":"bad key"}}'] }, true],
    ['answers 403', { status: 403, steps: ['{"error":{}}'] }, true],
    ['answers 500', { status: 500, steps: ['oops'] }, true],
    ['redirects', { status: 302, steps: [] }, true],
    ['answers 400 with a web page', { status: 400, steps: [html] }, true],
    [
      'answers 429',
      { status: 429, headers: { 'retry-after': '7' }, steps: [] },
      true,
      429,
      'rate_limit_exceeded',
    ],
  ];
  it.each(table)(
    '%s: the client gets an error status',
    async (_case, script, mayRetry, status = 502, code = 'upstream_unavailable') => {
      for (const body of [stream, ask]) {
        const rig = new CoreRig({ channels: [{ first_content_seconds: 15 }] }).upstream(script);
        const answer = await rig.post(body);
        expect({ status: answer.status, code: JSON.parse(answer.text).error.code }).toEqual({ status, code });
        expect(answer.headers['x-should-retry']).toBe(mayRetry ? undefined : 'false');
        expect(rig.logged).toHaveLength(1);
        expect(rig.logged[0]).toMatchObject({ status, end: 'failed' });
      }
    },
  );

  it('passes on the retry-after of a 429 in words that coding agents parse', async () => {
    const rig = new CoreRig().upstream({ status: 429, headers: { 'retry-after': '7' } });
    const answer = await rig.post(ask);
    expect(answer.headers['retry-after']).toBe('7');
    expect(answer.text).toContain('try again in 7s');
  });

  it.each([400, 404, 413, 422])(
    "passes a caller's %i on with the upstream's code and scrubbed words",
    async (status) => {
      const message =
        'Bad request to https://api.secret-host.com/v1 with key sk-abcdef123456 and upstream-secret-value at 10.0.0.1:80';
      const rig = new CoreRig({ channels: [{ secret: 'ssm:/relay/relay/x' }] }).upstream({
        status,
        steps: [
          JSON.stringify({
            error: { message, code: 'context_length_exceeded', param: 'messages', type: 'x' },
          }),
        ],
      });
      const answer = await rig.post(stream);
      const { error } = JSON.parse(answer.text);
      expect(answer.status).toBe(status);
      expect(error).toMatchObject({
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'messages',
      });
      expect(error.message).toBe('Bad request to [removed] with key [removed] and [removed] at [removed]');
    },
  );
});

describe('an upstream that fails after its first content', () => {
  const endings: [string, (string | number)[]][] = [
    ['stops early', [delta('a')]],
    ['resets', [delta('a'), reset]],
    ['sends an error', [delta('a'), data({ error: { message: 'secret upstream words' } })]],
    ['falls silent', [delta('a'), hang]],
  ];
  it.each(endings)(
    '%s: the stream ends with an error chunk without choices, then [DONE]',
    async (_case, steps) => {
      const rig = new CoreRig().upstream({ steps });
      const answer = await rig.post(stream);
      expect(answer.status).toBe(200);
      const list = frames(answer.text) as Record<string, unknown>[];
      expect(list.at(-1)).toBe('[DONE]');
      expect(list.at(-2)).toMatchObject({
        object: 'chat.completion.chunk',
        error: { type: 'upstream_error', param: null },
      });
      expect(list.at(-2)).not.toHaveProperty('choices');
      expect(answer.text).not.toContain('finish_reason":"stop"');
      expect(answer.text).not.toContain('secret upstream words');
    },
  );

  it('counts as complete once its finish reason arrived, however the connection ends', async () => {
    for (const last of [reset, hang, data({ error: { message: 'late' } })]) {
      const rig = new CoreRig().upstream({ steps: [delta('a'), finish(), last] });
      const answer = await rig.post(stream);
      expect(answer.text).toContain('"finish_reason":"stop"');
      expect(answer.text).not.toContain('"error"');
      expect(rig.logged[0]?.end).toBe('completed');
    }
  });

  it('ends the answer at [DONE] and ignores later data', async () => {
    const rig = new CoreRig().upstream({ steps: [delta('a'), finish(), done + delta('late'), hang] });
    const answer = await rig.post(stream);
    expect(answer.text).not.toContain('late');
    expect(answer.said.at(-1)?.atMs).toBe(0);
  });
});

describe('while the upstream is silent, the relay', () => {
  it('starts the stream with a ping after 20 s and repeats it every 15 s', async () => {
    const rig = new CoreRig({ channels: [{ first_content_seconds: 300 }] }).upstream({
      steps: [60_000, ...hello],
    });
    const answer = await rig.post(stream);
    expect(answer.status).toBe(200);
    expect(answer.said.slice(0, 3)).toEqual([
      { atMs: 20_000, text: ': ping\n\n' },
      { atMs: 35_000, text: ': ping\n\n' },
      { atMs: 50_000, text: ': ping\n\n' },
    ]);
    expect(frames(answer.text).at(-1)).toBe('[DONE]');
  });

  it('pings 15 s after the last content, and not while data flows', async () => {
    const rig = new CoreRig().upstream({ steps: [1000, delta('a'), 14_000, delta('b'), 16_000, ...hello] });
    const answer = await rig.post(stream);
    const pings = answer.said.filter((one) => one.text === ': ping\n\n');
    expect(pings.map((one) => one.atMs)).toEqual([30_000]);
  });

  it('adds white space to a JSON answer every 15 s from 45 s on', async () => {
    const rig = new CoreRig({ channels: [{ first_content_seconds: 300 }] }).upstream({
      steps: [delta('a'), 50_000, delta('b'), 20_000, ...hello],
    });
    const answer = await rig.post(ask);
    expect(answer.said.map((one) => one.atMs)).toEqual([45_000, 60_000, 70_000]);
    expect(JSON.parse(answer.text).choices[0].message.content).toBe('abHello');
  });

  it('reports a failure inside the protocol once the answer has started', async () => {
    const slow = { channels: [{ first_content_seconds: 50 }] };
    const streamed = await new CoreRig(slow).upstream({ steps: [hang] }).post(stream);
    expect(streamed.status).toBe(200);
    expect(frames(streamed.text)).toMatchObject([{ error: { code: 'upstream_timeout' } }, '[DONE]']);
    const whole = await new CoreRig(slow).upstream({ steps: [hang] }).post(ask);
    expect(whole.status).toBe(200);
    expect(JSON.parse(whole.text)).toMatchObject({ error: { code: 'upstream_timeout' } });
  });

  it('ends at the timeout of the channel, of the request, or before the host ends', async () => {
    const cases: [RigOptions, object, number][] = [
      [{ channels: [{ idle_seconds: 30 }] }, {}, 30_000],
      [
        {
          channels: [{ idle_seconds: 400 }],
          settings: {
            limits: { defaultOutputTokens: 1, requestSeconds: 40, stateDays: 30, countFree: true },
          },
        },
        {},
        40_000,
      ],
      [{ channels: [{ idle_seconds: 400 }] }, { hostDeadlineMs: Date.UTC(2026, 10, 21) + 50_000 }, 45_000],
      [{ channels: [{ idle_seconds: 400, total_seconds: 33 }] }, {}, 33_000],
    ];
    for (const [options, request, endMs] of cases) {
      const answer = await new CoreRig(options).upstream({ steps: [delta('a'), hang] }).post(stream, request);
      expect(answer.said.at(-1)?.atMs).toBe(endMs);
      expect(answer.text).toContain('upstream_timeout');
    }
  });
});

describe('a client that leaves', () => {
  it('does not stop the relay from reading the upstream’s usage', async () => {
    const steps = [delta('a'), 10, delta('b'), 10, delta('c'), 10, finish(), usage(5, 3), done];
    const rig = new CoreRig().upstream({ steps });
    await rig.post(stream, { leaveAfter: 1 });
    expect(rig.stepsTaken).toBe(steps.length);
    expect(rig.logged[0]).toMatchObject({
      end: 'client_gone',
      prompt_tokens: 5,
      completion_tokens: 3,
      usage_estimated: false,
    });
  });

  it('counts as gone after 30 s without reading, and its text is dropped', async () => {
    const big = delta('x'.repeat(1024 * 1024 + 1));
    const rig = new CoreRig().upstream({
      steps: [delta('a'), big, big, big, finish(), usage(7, 786_433), done],
    });
    const response = await rig.clock.run(rig.respond(stream));
    await rig.clock.run(response.done);
    expect(rig.logged[0]).toMatchObject({
      end: 'client_gone',
      duration_ms: 30_000,
      completion_tokens: 786_433,
    });
  });
});
