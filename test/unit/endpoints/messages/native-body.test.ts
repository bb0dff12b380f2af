import { describe, expect, it } from 'vitest';
import { CoreRig, data, delta, demoKey, done, finish, usage, type Step } from '../../../support/core-rig.ts';

const path = '/v1/messages';
const user = (content: unknown) => ({ role: 'user', content });
const ask = { model: 'm', max_tokens: 5_000, messages: [user('Hi')] };
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1' };
const thinking = { type: 'enabled', budget_tokens: 2_000 };
const tools = [{ name: 'read', input_schema: { type: 'object' } }];
const called = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read', input: {} }] };
const result = user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }]);
const done1 = { role: 'assistant', content: [{ type: 'text', text: 'done' }] };

const event = (value: { type: string; [field: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;
const whole = (content: object[], more: object = {}): Step[] => [
  JSON.stringify({
    type: 'message',
    role: 'assistant',
    content,
    stop_reason: 'end_turn',
    usage: { input_tokens: 9, output_tokens: 3 },
    ...more,
  }),
];
const said = whole([{ type: 'text', text: 'ok' }]);

async function post(
  body: object,
  {
    row = {},
    steps = said,
    status = 200,
    headers = { 'x-api-key': demoKey },
  }: { row?: object; steps?: Step[]; status?: number; headers?: Record<string, string> } = {},
) {
  const rig = new CoreRig({ channels: [{ ...claude, ...row }] });
  rig.upstream({ status, steps, headers: { 'content-type': 'application/json' } });
  const answer = await rig.post(body, { path, headers });
  return { rig, answer, sent: rig.sent[0]?.json, json: JSON.parse(answer.text) };
}

describe('with an upstream that requires the thinking of every turn', () => {
  const loop = { ...ask, tools, messages: [user('a'), called, result, done1, user('next')] };
  it.each([
    ['an earlier loop lacks it', { ...loop, thinking }, {}],
    [
      'the row sets thinking',
      { ...ask, tools, messages: [user('a'), called, result] },
      { set: { thinking } },
    ],
  ])('thinking is disabled when %s', async (_when, body, params) => {
    const { sent } = await post(body, { row: { params: { wants_back: 'thinking', ...params } } });
    expect(sent?.['thinking']).toEqual({ type: 'disabled' });
  });
});

describe('a body sent as it came', () => {
  it.each([
    [
      'a result of a search of its own',
      user([
        {
          type: 'search_result',
          source: 'http://wiki.corp/p',
          title: 't',
          content: [{ type: 'text', text: 'x' }],
        },
      ]),
    ],
    [
      'the page that an earlier search found',
      {
        role: 'assistant',
        content: [
          {
            type: 'web_search_tool_result',
            tool_use_id: 's',
            content: [{ type: 'web_search_result', url: 'http://example.com', title: 't' }],
          },
        ],
      },
    ],
  ])('may contain %s, because nobody fetches it', async (_what, message) => {
    const { answer } = await post({ ...ask, messages: [message, user('go on')] });
    expect(answer.status).toBe(200);
  });

  it('names nothing as dropped that was sent', async () => {
    const examples = [{ file_id: 'abc' }];
    const { answer, sent } = await post({ ...ask, tools: [{ ...tools[0], input_examples: examples }] });
    expect(sent?.['tools']).toEqual([{ ...tools[0], input_examples: examples }]);
    expect(answer.headers['x-relay-dropped']).toBeUndefined();
  });

  it('names the fields that its row drops', async () => {
    const { answer, sent } = await post({ ...ask, thinking }, { row: { params: { drop: ['thinking'] } } });
    expect(sent).not.toHaveProperty('thinking');
    expect(answer.headers['x-relay-dropped']).toBe('thinking');
  });

  it('is not sent again in the same form after a denial', async () => {
    const denied = [JSON.stringify({ type: 'error', error: { type: 'permission_error', message: 'no' } })];
    expect((await post(ask, { status: 403, steps: denied })).rig.sent).toHaveLength(1);
    const managed = { ...ask, context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } };
    const { rig } = await post(managed, { status: 403, steps: denied });
    expect(rig.sent.map(({ json }) => 'context_management' in json)).toEqual([true, false]);
  });
});

describe('a body sent as it came follows what its row requires:', () => {
  const enabled = { thinking: { type: 'enabled', budget_tokens: 5_000 } };
  const disabled = { thinking: { type: 'disabled' } };
  const effort = (asked: string) => ({ output_config: { effort: asked } });
  const two = { tools: [...tools, { name: 'write', input_schema: { type: 'object' } }] };
  const choice = (type: string, more = {}) => ({ tool_choice: { type, ...more } });
  const adaptive = { type: 'adaptive', display: 'summarized' };
  const gone = undefined;
  const sampled = { temperature: 0.3, top_p: 0.5, top_k: 4 };
  const names = { sampling: 'temperature, top_p, top_k', effort: 'output_config.effort' };

  it.each<[string, object, object, object, object?]>([
    [
      'sampling',
      { sampling: 'none' },
      sampled,
      { temperature: gone, top_p: gone, top_k: gone },
      { dropped: names.sampling },
    ],
    [
      'one of sampling',
      { sampling: 'one' },
      sampled,
      { temperature: 0.3, top_p: gone, top_k: 4 },
      { dropped: 'top_p' },
    ],
    [
      'sampling while it thinks',
      { sampling: 'without_reasoning' },
      sampled,
      { temperature: gone },
      { dropped: names.sampling },
    ],
    [
      'sampling while it does not',
      { sampling: 'without_reasoning' },
      { temperature: 0.3, ...disabled },
      { temperature: 0.3 },
    ],
    ['an effort', { efforts: ['low', 'high'] }, effort('medium'), effort('low'), { effort: 'low' }],
    ['an effort that it knows', { efforts: ['low', 'high'] }, effort('high'), effort('high')],
    [
      'that it has no effort',
      { efforts: [] },
      effort('high'),
      { output_config: gone },
      { dropped: names.effort },
    ],
    [
      'that it has no effort, beside a format',
      { efforts: [] },
      { output_config: { effort: 'high', format: { type: 'json_schema', schema: {} } } },
      { output_config: { format: { type: 'json_schema', schema: {} } } },
      { dropped: names.effort },
    ],
    ['adaptive thinking', { thinking: 'adaptive' }, enabled, { thinking: adaptive, ...effort('medium') }],
    [
      'adaptive thinking by its efforts',
      { thinking: 'adaptive', efforts: ['low', 'high'] },
      enabled,
      { thinking: adaptive, ...effort('low') },
      { effort: 'low' },
    ],
    [
      'adaptive thinking, by the effort of the client',
      { thinking: 'adaptive' },
      { ...enabled, ...effort('high') },
      { thinking: adaptive, ...effort('high') },
    ],
    [
      'a budget',
      { thinking: 'budget' },
      { thinking: { type: 'adaptive' }, ...effort('low') },
      { thinking: { type: 'enabled', budget_tokens: 2048 }, output_config: gone },
    ],
    [
      'a budget, below the limit',
      { thinking: 'budget' },
      { thinking: { type: 'adaptive' } },
      { thinking: { type: 'enabled', budget_tokens: 3_976 } },
    ],
    [
      'a budget, which a short answer omits',
      { thinking: 'budget' },
      { thinking: { type: 'adaptive' }, max_tokens: 500 },
      { thinking: gone },
      { dropped: 'thinking' },
    ],
    [
      'a budget, which a loop without thinking omits',
      { thinking: 'budget' },
      { thinking: { type: 'adaptive' }, tools, messages: [user('a'), called, result] },
      { thinking: gone },
      { dropped: 'thinking' },
    ],
    [
      'that it does not think',
      { thinking: 'none' },
      { thinking: { type: 'adaptive' } },
      { thinking: gone },
      { dropped: 'thinking' },
    ],
    [
      'that it always thinks',
      { thinking_off: 'always', efforts: ['low', 'high'] },
      disabled,
      { thinking: adaptive, ...effort('low') },
      { effort: 'low' },
    ],
    ['that it need not be told', { thinking_off: 'omit' }, disabled, { thinking: gone }],
    [
      'that it stops between tools alone',
      { thinking_off: 'between_tools' },
      disabled,
      { thinking: { type: 'between_tools' } },
    ],
    [
      'no forced call',
      { forced_calls: false },
      { ...two, ...choice('any', { disable_parallel_tool_use: true }) },
      { ...two, ...choice('auto', { disable_parallel_tool_use: true }) },
      { choice: 'auto' },
    ],
    [
      'no forced call of one',
      { forced_calls: false },
      { ...two, ...choice('tool', { name: 'read' }) },
      { tools, ...choice('auto') },
      { choice: 'auto' },
    ],
    [
      'no stop sequence',
      { stop: false },
      { stop_sequences: ['END'] },
      { stop_sequences: gone },
      { dropped: 'stop_sequences' },
    ],
    [
      "that the last turn is a user's",
      { last_turn: 'user' },
      { messages: [user('Hi'), done1] },
      { messages: [user('Hi'), done1, user('Continue.')] },
    ],
  ])(
    '%s',
    async (
      _what,
      rules,
      body,
      expected,
      header: { dropped?: string; effort?: string; choice?: string } = {},
    ) => {
      const { answer, sent } = await post(
        { ...ask, ...body },
        { row: { params: { model_rules: { m: rules } } } },
      );
      for (const [field, value] of Object.entries(expected))
        expect([field, sent?.[field]]).toEqual([field, value]);
      const told = ['dropped', 'effort', 'tool-choice'].map((name) => answer.headers[`x-relay-${name}`]);
      expect(told).toEqual([header.dropped, header.effort, header.choice]);
    },
  );

  it('but not what the table of models requires', async () => {
    const body = {
      ...ask,
      ...two,
      ...sampled,
      ...disabled,
      ...choice('any'),
      ...effort('low'),
      stop_sequences: ['END'],
    };
    const { answer, sent } = await post(body, { row: { mapper: { m: 'claude-opus-5-5' } } });
    expect(sent).toMatchObject({ ...body, model: 'claude-opus-5-5' });
    expect(answer.headers['x-relay-dropped']).toBeUndefined();
  });
});

describe('a refusal names what its client sent:', () => {
  it('the field of stop sequences', async () => {
    const rig = new CoreRig();
    rig.upstream({ steps: [delta('ok'), finish(), usage(3, 1), done] });
    const stop_sequences = Array.from({ length: 17 }, (_, i) => `s${i}`);
    const answer = await rig.post({ ...ask, stop_sequences }, { path });
    expect([answer.status, JSON.parse(answer.text).error.param]).toEqual([400, 'stop_sequences']);
  });

  it.each([
    ['Authorization', { authorization: 'Bearer foo' }],
    ['x-api-key', { 'x-api-key': 'foo' }],
  ])('the header %s of an unknown key', async (name, headers) => {
    const { json } = await post(ask, { headers });
    expect(json.error.message).toContain(`The ${name} header`);
  });
});

describe('a Messages answer', () => {
  it('reports an overload that breaks it off', async () => {
    const rig = new CoreRig({ channels: [claude] });
    const error = { type: 'overloaded_error', message: 'busy' };
    rig.upstream({
      steps: [
        event({ type: 'message_start', message: { usage: { input_tokens: 9 } } }),
        event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } }),
        event({ type: 'error', error }),
      ],
    });
    const answer = await rig.post({ ...ask, stream: true }, { path });
    expect(answer.text).toMatch(/event: error\ndata: .*"type":"overloaded_error"/);
  });

  it('is counted by its text when its runs report no output', async () => {
    const runs = { iterations: [{ input_tokens: 5 }, { input_tokens: 6 }] };
    const { json } = await post(ask, {
      steps: whole([{ type: 'text', text: 'some words' }], { usage: runs }),
    });
    expect(json.usage.input_tokens).toBe(11);
    expect(json.usage.output_tokens).toBeGreaterThan(0);
  });

  it('contains nothing of an unknown event', async () => {
    const steps = [
      event({ type: 'message_start', message: { usage: { input_tokens: 9 } } }),
      event({ type: 'future', content: [{ type: 'text', text: 'unmetered' }] }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }),
      event({ type: 'message_stop' }),
    ];
    const rig = new CoreRig({ channels: [claude] });
    rig.upstream({ steps });
    const answer = await rig.post(ask, { path });
    expect(JSON.parse(answer.text).content).toEqual([{ type: 'text', text: 'ok' }]);
  });
});
