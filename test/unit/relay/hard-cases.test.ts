import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  delta,
  done,
  finish,
  frames,
  hello,
  reset,
  usage,
  type Step,
  type UpstreamScript,
} from '../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const stream = { ...ask, stream: true };
const charges = [{ id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 }];
const good: UpstreamScript = { steps: hello };
const yuan = 1_000_000_000n;

describe('a request that tries to bypass its reservation', () => {
  it('reserves for the larger of two limits', async () => {
    const rig = new CoreRig({ charges }).upstream(good);
    rig.quotas.grant('acme', 10n * yuan);
    const answer = await rig.post({ ...ask, max_completion_tokens: 1, max_tokens: 100_000 });
    expect(answer.headers['x-relay-limited-by']).toBe('balance');
    const sent = rig.sent[0]?.json as { max_tokens: number; max_completion_tokens: number };
    expect(sent.max_tokens).toBeLessThan(5_000);
    expect(sent.max_completion_tokens).toBe(1);
  });

  it.each([
    [
      'a schema',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'x', schema: { description: 'long '.repeat(9000) } },
        },
      },
    ],
    ['legacy functions', { functions: [{ name: 'f', description: 'long '.repeat(9000) }] }],
    [
      'a part of an unknown type',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'input_audio', input_audio: { data: 'x'.repeat(40_000), format: 'mp3' } }],
          },
        ],
      },
    ],
    [
      'reasoning that is sent back',
      { messages: [{ role: 'assistant', content: '', reasoning_content: 'long '.repeat(9000) }] },
    ],
  ])('counts %s as prompt tokens', async (_case, more) => {
    const rig = new CoreRig({ charges }).upstream(good);
    rig.quotas.grant('acme', yuan);
    expect((await rig.post({ ...ask, ...more })).status).toBe(429);
    expect(rig.sent).toHaveLength(0);
  });
});

describe('a probe', () => {
  it('is skipped for the next channel if it cannot be claimed', async () => {
    const channels = [{ id: 'first', priority: 1 }, { id: 'second' }];
    const rig = new CoreRig({ channels }).upstream(good);
    await rig.health.set('first', { kind: 'rate_limit', untilMs: rig.clock.now() - 1 });
    rig.health.beforeWrite = () => Promise.reject(new Error('store down'));
    expect((await rig.post(ask)).status).toBe(200);
    expect(rig.logged[0]?.channel).toBe('second');
  });
});

describe('an answer with several choices', () => {
  const half: Step[] = [delta('a', 0), delta('b', 1), finish('stop', 0)];
  it.each([
    ['a reset', [...half, reset]],
    ['an end', half],
    ['an error', [...half, data({ error: { message: 'x' } })]],
  ])('is cut by %s before all choices have finished', async (_case, steps) => {
    const rig = new CoreRig().upstream({ steps });
    const answer = await rig.post({ ...stream, n: 2 });
    expect(frames(answer.text).at(-2)).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(rig.logged[0]?.end).toBe('failed');
  });
});

describe('waiting time', () => {
  it('caused by a slow client does not count as silence of the upstream', async () => {
    const big = delta('x'.repeat(1024 * 1024 + 1));
    const rig = new CoreRig({ channels: [{ idle_seconds: 10 }] }).upstream({
      steps: [big, big, finish(), usage(1, 1), done],
    });
    const response = await rig.clock.run(rig.respond(stream));
    await rig.clock.run(response.done);
    expect(rig.logged[0]).toMatchObject({ end: 'client_gone', duration_ms: 30_000 });
    expect(rig.health.writes).toEqual([]);
  });
});

describe('an upstream’s error message', () => {
  it('loses hosts, addresses, files and stack traces', async () => {
    const message =
      'proxy upstream.test -> vllm-0:8000 [fd00::12]:9000 in /app/serve.py failed Traceback (most recent call last): File "/app/serve.py", line 12';
    const rig = new CoreRig().upstream({ status: 400, steps: [JSON.stringify({ error: { message } })] });
    expect(JSON.parse((await rig.post(ask)).text).error.message).toBe(
      'proxy [removed] -> [removed] [removed] in [removed] failed',
    );
  });
});

describe('fields that would change the price', () => {
  it('are dropped, and so are tools that run at the upstream', async () => {
    const rig = new CoreRig().upstream(good);
    const fields = {
      preset: 'x',
      search_parameters: {},
      enable_search: true,
      modalities: ['audio'],
      extra_body: {},
      parallel_tool_calls: true,
    };
    await rig.post({ ...ask, ...fields, tools: [{ type: 'web_search' }] });
    expect(Object.keys(rig.sent[0]?.json ?? {}).toSorted()).toEqual([
      'messages',
      'model',
      'stream',
      'stream_options',
    ]);
  });
});
