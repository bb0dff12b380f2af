import { describe, expect, it } from 'vitest';
import { planAddChannel } from '../../../shared/operate/channels/edit-channel.ts';
import { planSync } from '../../../shared/operate/channels/sync-models.ts';
import { carryOutChannelTest, planChannelTest } from '../../../shared/operate/channels/test-channel.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { TransportError } from '../../../shared/upstreams/exchange.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const input = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'] };
const row = { ...input, state: true };

describe('the plan to add a channel', () => {
  it('creates the row, and fails when somebody else created it meanwhile', async () => {
    const { ports, writes } = operatorRig({ overtaken: ['create channels a'] });
    const plan = await planAddChannel(ports, input);
    expect(plan).toMatchObject({ changes: [{ kind: 'create', row }], questions: [] });
    expect(writes).toEqual([]);
    await expect(carryOutWrites(ports, plan)).rejects.toMatchObject({
      message: expect.stringContaining('nothing was written: channel a already exists; choose another --id'),
      exitCode: 2,
    });
  });
});

describe('the plan to sync a channel', () => {
  const listing = { status: 200, body: '{"data":[{"id":"m"},{"id":"new"},{"id":"odd name"}]}' };

  it('contains one write, which requires that nobody changed the models meanwhile', async () => {
    const { ports, writes, sent } = operatorRig({ rows: { channels: [row] }, reply: listing });
    const plan = await planSync(ports, { id: 'a' });
    expect(sent).toMatchObject([{ method: 'GET', url: 'https://api.example.com/v1/models' }]);
    expect(plan).toMatchObject({
      changes: [{ key: { id: 'a' }, attributes: { models: ['m', 'new'] }, unchanged: { models: ['m'] } }],
      added: ['new'],
      listWarnings: [expect.stringContaining('1 names of the upstream')],
      warnings: [expect.stringContaining('no price for m, new')],
    });
    expect(writes).toEqual([]);
    expect(plan.models).toHaveLength(2);
    expect(await carryOutWrites(ports, plan)).toHaveLength(1);
    expect(writes).toEqual(['update channels a']);
  });
});

it('the plan to sync a channel removes no model when the list does not end', async () => {
  const page = { data: [{ id: 'claude-new' }], has_more: true, last_id: 'claude-new' };
  const channel = { id: 'a', type: 'anthropic', models: ['claude-old'], secret: 'env:KEY', state: true };
  const { ports, sent } = operatorRig({
    rows: { channels: [channel] },
    reply: { status: 200, body: JSON.stringify(page) },
  });
  const secrets = { ...ports.secrets, read: async () => 'secret' };
  await expect(planSync({ ...ports, secrets }, { id: 'a' })).rejects.toThrow(
    'the list of models has more than 20 pages',
  );
  expect(sent).toHaveLength(20);
});

it('the plan to sync a channel reports when its vendor shuts down a model', async () => {
  const data = [
    { id: 'up', shutdown_date: '2027-01-14' },
    { id: 'kept', shutdown_date: null },
    { id: 'odd', shutdown_date: '<b>soon</b>' },
    { id: 'foreign', shutdown_date: '2026-12-11' },
  ];
  const channel = { ...row, models: ['m', 'kept', 'odd'], mapper: { m: 'up' } };
  const reply = { status: 200, body: JSON.stringify({ data }) };
  const { ports } = operatorRig({ rows: { channels: [channel] }, reply });
  const plan = await planSync(ports, { id: 'a', only: [] });
  expect(plan).toMatchObject({ changes: [], listWarnings: ['the provider shuts down m on 2027-01-14'] });
});

describe('the plan to sync a channel whose vendor lists the abilities of its models', () => {
  const yes = { supported: true };
  const no = { supported: false };
  /** A model as Anthropic lists it. */
  const listed = (id: string, thinking: string[], efforts: string[], more: object = {}) => ({
    id,
    capabilities: {
      thinking: {
        supported: thinking.length > 0,
        types: Object.fromEntries(
          ['adaptive', 'enabled', 'disabled', 'between_tools'].map((type) => [
            type,
            thinking.includes(type) ? yes : no,
          ]),
        ),
      },
      effort: {
        supported: efforts.length > 0,
        ...Object.fromEntries(
          ['low', 'medium', 'high', 'max'].map((level) => [level, efforts.includes(level) ? yes : no]),
        ),
        xhigh: null,
      },
    },
    ...more,
  });
  const synced = async (data: object[], params: object, models: string[]) => {
    const channel = { ...row, type: 'anthropic', models, mapper: { lyra: 'claude-lyra-7' }, params };
    const rig = operatorRig({
      rows: { channels: [channel] },
      reply: { status: 200, body: JSON.stringify({ data }) },
    });
    return planSync(rig.ports, { id: 'a', keep: true, only: [] });
  };

  it("writes what differs from the known rules, by the public name, beside the row's own rules", async () => {
    const plan = await synced(
      [listed('claude-lyra-7', ['adaptive', 'between_tools'], ['low', 'high'], { max_tokens: 48_000 })],
      { drop: ['seed'], model_rules: { lyra: { sampling: 'any' }, other: { stop: false } } },
      ['lyra', 'unlisted'],
    );
    const own = {
      efforts: ['none', 'low', 'high'],
      thinking_off: 'between_tools',
      max_output_tokens: 48_000,
    };
    const model_rules = { lyra: { sampling: 'any', ...own }, other: { stop: false } };
    expect(plan).toMatchObject({
      changes: [
        {
          attributes: { params: { drop: ['seed'], model_rules } },
          unchanged: { params: { drop: ['seed'] } },
        },
      ],
      effect: [expect.anything(), `Rules for lyra: ${JSON.stringify(own)}`],
    });
  });

  it('writes nothing that is already known, that the row sets, or that the list omits', async () => {
    const always = listed('claude-lyra-7', ['adaptive'], ['low'], { max_tokens: 1e99 });
    const said = { 'claude-*': { thinking: 'adaptive', thinking_off: 'disabled', efforts: ['low', 'high'] } };
    expect((await synced([always], { model_rules: said }, ['lyra'])).changes).toEqual([]);
    const known = listed('claude-haiku-4-5', ['enabled', 'disabled'], [], { max_tokens: 64_000 });
    expect((await synced([known], {}, ['claude-haiku-4-5'])).changes).toEqual([]);
    const odd = listed('claude-haiku-4-5', ['enabled', 'disabled'], [], { max_tokens: 1e9 });
    expect((await synced([odd], {}, ['claude-haiku-4-5'])).changes).toEqual([]);
    const silent = { id: 'claude-opus-5-5', capabilities: null, max_tokens: null };
    expect(
      (await synced([silent, { id: '__proto__', max_tokens: 5 }], {}, ['claude-opus-5-5'])).changes,
    ).toEqual([]);
  });
});

describe('the test of a channel', () => {
  const secret = 'value of env:KEY';
  const anthropic = {
    ...row,
    type: 'anthropic',
    dialect: 'chat',
    secret: 'env:KEY',
    mapper: { m: 'vendor-m' },
    params: { set: { temperature: 1 }, max_output_tokens: 32 },
  };

  it("sends the relay's request, and returns the answer without the secret", async () => {
    const chunk = {
      model: 'vendor-m',
      choices: [{ delta: { content: `ready ${secret}` }, finish_reason: 'stop' }],
    };
    const { ports, sent } = operatorRig({
      rows: { channels: [anthropic] },
      reply: { status: 200, body: `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n` },
    });
    const plan = await planChannelTest(ports, { id: 'a' });
    expect(plan.effect).toEqual(['POST https://api.example.com/v1/chat/completions, model vendor-m']);
    expect(JSON.stringify([plan.changes, plan.effect])).not.toContain(secret);
    expect(sent).toEqual([]);
    const { answer } = await carryOutChannelTest(ports, plan);
    expect(answer).toEqual({ model: 'vendor-m', text: 'ready (secret)', ending: 'stop' });
    expect(sent[0]?.headers).toMatchObject({
      authorization: `Bearer ${secret}`,
      accept: 'text/event-stream, application/json',
    });
    expect(JSON.parse(String(sent[0]?.body))).toMatchObject({
      model: 'vendor-m',
      max_tokens: 32,
      temperature: 1,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('asks a model that rejects a conversation for a vector, and shows the rejection if that fails too', async () => {
    const vectors = { object: 'list', data: [{ index: 0, embedding: [1, 2, 3] }], model: 'vendor-m' };
    const testOf = async (reply: { status: number; body: string }) => {
      const { ports } = operatorRig({ rows: { channels: [{ ...anthropic, type: 'openai' }] } });
      const urls: string[] = [];
      const send: typeof ports.upstreams.send = ({ url }) => {
        urls.push(url);
        const first = { status: 404, body: '{"error":{"message":"no chat here"}}' };
        const { status, body } = urls.length === 1 ? first : reply;
        return Promise.resolve({ status, headers: {}, body: ReadableStream.from([Buffer.from(body)]) });
      };
      const result = await carryOutChannelTest(
        { ...ports, upstreams: { ...ports.upstreams, send } },
        await planChannelTest(ports, { id: 'a' }),
      );
      return { result, urls };
    };
    const { result, urls } = await testOf({ status: 200, body: JSON.stringify(vectors) });
    expect(result).toMatchObject({
      status: 200,
      answer: { model: 'vendor-m', text: 'a vector of 3 numbers' },
    });
    expect(urls.map((url) => new URL(url).pathname)).toEqual(['/v1/chat/completions', '/v1/embeddings']);
    expect(result.url).toBe(urls[1]);
    const none = await testOf({ status: 400, body: '{"error":{"message":"no vectors"}}' });
    expect(none.result).toMatchObject({ status: 404, answer: undefined });
    expect(none.result.body).toContain('no chat here');
    expect(none.result.url).toBe(none.urls[0]);
  });

  it("reads an answer in the channel's dialect", async () => {
    const events = [
      { type: 'message_start', message: { model: 'claude-x', usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ready' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ];
    const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const rows = { channels: [{ ...anthropic, dialect: 'messages' }] };
    const read = async (body: string) => {
      const { ports } = operatorRig({ rows, reply: { status: 200, body } });
      return (await carryOutChannelTest(ports, await planChannelTest(ports, { id: 'a' }))).answer;
    };
    expect(await read(frames.join(''))).toEqual({ model: 'claude-x', text: 'ready', ending: 'stop' });
    expect(await read(frames.slice(0, 3).join(''))).toEqual({
      model: 'claude-x',
      text: 'ready',
      ending: 'upstream_cut',
    });
    expect(await read('{"object":"list","data":[]}')).toBeUndefined();
    expect(await read('<html>')).toBeUndefined();
  });

  it("stops at the channel's time-out", async () => {
    const { ports } = operatorRig({ rows: { channels: [{ ...row, total_seconds: 30 }] } });
    const plan = await planChannelTest(ports, { id: 'a' });
    const upstreams = {
      send: (_request: unknown, signal: AbortSignal) =>
        new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new TransportError('aborted', 'given up')));
        }),
    };
    const { clock } = ports;
    const startMs = clock.now();
    await expect(clock.run(carryOutChannelTest({ ...ports, upstreams }, plan))).rejects.toThrow(
      'the upstream did not respond: timeout',
    );
    expect(clock.now() - startMs).toBe(30_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('rejects channels that only the functions may call', async () => {
    const bedrock = { id: 'a', type: 'bedrock', region: 'us-east-1', models: ['m'], state: true };
    const { ports } = operatorRig({ rows: { channels: [bedrock] } });
    await expect(planChannelTest(ports, { id: 'a' })).rejects.toThrow('the IAM role of the functions');
  });
});
