import { describe, expect, it } from 'vitest';
import {
  planAddChannel,
  planNewChannel,
  carryOutStoreSecret,
  planStoreSecret,
} from '../../../shared/operate/channels/edit-channel.ts';
import { planSync } from '../../../shared/operate/channels/sync-models.ts';
import { carryOutChannelTest, planChannelTest } from '../../../shared/operate/channels/test-channel.ts';
import { planImport } from '../../../shared/operate/prices/import-charges.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { TransportError } from '../../../shared/upstreams/exchange.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const input = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'] };
const row = { ...input, state: true };

describe('the plan to add a channel', () => {
  it('creates the row, and fails when another was made since', async () => {
    const { ports, writes } = operatorRig({ overtaken: ['create channels a'] });
    const plan = await planAddChannel(ports, input, 'refuse');
    expect(plan).toMatchObject({ changes: [{ kind: 'create', row }], questions: [] });
    expect(writes).toEqual([]);
    await expect(carryOutWrites(ports, plan)).rejects.toMatchObject({
      message: expect.stringContaining('there is a channel a already'),
      exitCode: 2,
    });
  });

  it('says which of its models no rule prices', async () => {
    expect(await planNewChannel(operatorRig({}).ports, input, 'refuse')).toMatchObject({
      warnings: ['models: no row of charges prices m, so calls are free'],
    });
  });

  it('asks before it writes over a row', async () => {
    const plan = await planAddChannel(operatorRig({ rows: { channels: [row] } }).ports, input, 'replace');
    expect(plan).toMatchObject({ changes: [{ kind: 'replace' }], questions: [expect.any(String)] });
  });

  it('leaves an identical row of an interrupted run as it is, and refuses any other', async () => {
    const { ports } = operatorRig({ rows: { channels: [{ ...row, _warning: 'unpriced' }] } });
    expect(await planAddChannel(ports, input, 'keep-same')).toMatchObject({ changes: [] });
    await expect(planAddChannel(ports, { ...input, models: ['other'] }, 'keep-same')).rejects.toThrow(
      'there is a channel a already; choose another --id',
    );
    await expect(planAddChannel(ports, input, 'refuse')).rejects.toThrow('or add --replace');
  });
});

describe('the plan to sync a channel', () => {
  const listing = { status: 200, body: '{"data":[{"id":"m"},{"id":"new"},{"id":"odd name"}]}' };

  it('holds one write, which asks that nobody changed the models meanwhile', async () => {
    const { ports, writes, sent } = operatorRig({ rows: { channels: [row] }, reply: listing });
    const plan = await planSync(ports, { id: 'a' });
    expect(sent).toMatchObject([{ method: 'GET', url: 'https://api.example.com/v1/models' }]);
    expect(plan).toMatchObject({
      changes: [{ key: { id: 'a' }, attributes: { models: ['m', 'new'] }, unchanged: { models: ['m'] } }],
      added: ['new'],
      listWarnings: [expect.stringContaining('1 names of the upstream')],
      warnings: [expect.stringContaining('prices m, new')],
    });
    expect(writes).toEqual([]);
    expect(plan.models).toHaveLength(2);
    expect(await carryOutWrites(ports, plan)).toHaveLength(1);
    expect(writes).toEqual(['update channels a']);
  });

  it('is refused when no model would be left', async () => {
    const { ports, writes } = operatorRig({
      rows: { channels: [row] },
      reply: { status: 200, body: '{"data":[]}' },
    });
    const plan = await planSync(ports, { id: 'a' });
    expect(plan).toMatchObject({ removed: ['m'], models: [] });
    await expect(carryOutWrites(ports, plan)).rejects.toThrow('no model would be left');
    expect(writes).toEqual([]);
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

  it('sends what the relay would send, and returns the answer without the secret', async () => {
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

  it('reads an answer in the dialect that the channel speaks', async () => {
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

  it('reports what came back when that is no answer', async () => {
    const { ports } = operatorRig({
      rows: { channels: [anthropic] },
      reply: { status: 401, body: `bad key ${secret}\u001b[31m` },
    });
    expect(await carryOutChannelTest(ports, await planChannelTest(ports, { id: 'a' }))).toMatchObject({
      status: 401,
      answer: undefined,
      body: 'bad key (secret) [31m',
    });
  });

  it('ends at the time-out of the channel', async () => {
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
      'no answer: time-out',
    );
    expect(clock.now() - startMs).toBe(30_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('refuses channels that only the functions may call', async () => {
    const bedrock = { id: 'a', type: 'bedrock', region: 'us-east-1', models: ['m'], state: true };
    const { ports } = operatorRig({ rows: { channels: [bedrock] } });
    await expect(planChannelTest(ports, { id: 'a' })).rejects.toThrow("the functions' own role");
  });
});

describe('the plan to store a secret', () => {
  const wanted = { name: 'openai', managed: false, replace: false };

  it('names the reference, and holds no value', async () => {
    const { ports, writes } = operatorRig({ local: false });
    const plan = planStoreSecret(ports, wanted);
    expect(plan.reference).toBe('ssm:/relay/relay/openai');
    expect(planStoreSecret(ports, { ...wanted, managed: true }).reference).toBe(
      'secretsmanager:relay/openai',
    );
    await expect(carryOutStoreSecret(ports, plan, 'two words')).rejects.toThrow('has blanks');
    expect(writes).toEqual([]);
    expect(await carryOutStoreSecret(ports, plan, 'sk-1')).toBe('ssm:/relay/relay/openai');
    expect(writes).toHaveLength(1);
  });

  it('fails beside local tables before anybody is asked for the value', () => {
    expect(() => planStoreSecret(operatorRig({}).ports, wanted)).toThrow(
      'write env:OPENAI_API_KEY in the row',
    );
  });
});

describe('the plan to import prices', () => {
  it('makes one rule for each price, under the next free ids, for models without a rule', async () => {
    const { ports, writes } = operatorRig({
      rows: { charges: [{ id: 4, type: 'non-billing', models: ['free'] }] },
    });
    const list = [
      ['model', 'input_cost_per_token', 'output_cost_per_token'],
      ['free', '1', '1'],
      ['b', '0.000001', '0.000002'],
      ['a', '0.000001', '0.000002'],
    ];
    const plan = await planImport(ports, { list, rate: '7', markup: '0', onlyServed: false });
    expect(plan.changes).toMatchObject([
      {
        kind: 'create',
        table: 'charges',
        row: { id: 5, type: 'token-billing', models: ['a', 'b'], input: 0.007, output: 0.014 },
      },
    ]);
    expect(plan.effect[1]).toContain('2 models in 1 rules; 1 are priced already');
    expect(writes).toEqual([]);
    const counted: number[] = [];
    expect(await carryOutWrites(ports, plan, (count) => counted.push(count))).toHaveLength(1);
    expect(counted).toEqual([1]);
  });
});
