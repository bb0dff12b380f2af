/** Compaction of Responses: upstreams that lack it or lie about it, hostile items, and the cost of each. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSealer } from '../../../shared/adapters/system/node-ports.ts';
import { encryptSummary } from '../../../shared/relay/state/summary-seals.ts';
import { asRecord, recordsIn } from '../../../shared/wire/json.ts';
import { BillingRig, byTokens, yuan, type BillingOptions } from '../../support/billing-rig.ts';
import { data, delta, demoKey, finish, keyRow, usage, type UpstreamScript } from '../../support/core-rig.ts';
import { StoredRig } from '../relay/stored/stored-rig.ts';

type Json = Record<string, unknown>;

const path = '/v1/responses/compact';
const strangersKey = 'sk-stranger';
const openai = { id: 'a', type: 'openai', dialect: 'responses', endpoint: 'https://openai.test/v1' };
const chat = { id: 'a', type: 'openai', endpoint: 'https://chat.test/v1' };
const input = [
  { type: 'message', role: 'user', content: 'Read the file.' },
  { type: 'message', role: 'assistant', content: 'It says 42.' },
];
const trigger = { type: 'compaction_trigger' };
const usageOf = (inputTokens: number, outputTokens: number): Json => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
});
const whole = (document: Json): UpstreamScript => ({
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify(document)],
});
const blob = 'gAAAAblob-of-the-vendor';
const vendors = { id: 'cmp_1', type: 'compaction', encrypted_content: blob };
const compacted = whole({
  object: 'response.compaction',
  output: [...input.slice(0, 1), vendors],
  usage: usageOf(30, 9),
});
const message = (text: string): Json => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
});
const said = (text: string): UpstreamScript =>
  whole({ object: 'response', status: 'completed', output: [message(text)], usage: usageOf(400, 12) });
const chatSaid = (text: string): UpstreamScript => ({
  steps: [delta(text), finish(), usage(400, 12), data('[DONE]')],
});
const refusal = (status: number, error: Json = { message: 'Invalid URL', param: null }): UpstreamScript => ({
  status,
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify({ error })],
});

class Compaction extends BillingRig {
  constructor(options: BillingOptions = {}, balance = 1_000n * yuan) {
    const keys = {
      [demoKey]: { row: keyRow() },
      [strangersKey]: { row: keyRow({ account: 'stranger' }) },
    };
    super({ channels: [openai], keys, charges: [{ ...byTokens, models: ['m', 'n'] }], ...options });
    this.granted(balance);
    this.quotas.grant('stranger', balance);
  }

  /** Throws unless the call is answered. */
  async compact(body: Json = {}): Promise<Json> {
    const { status, text } = await this.call({ model: 'm', input, ...body }, { path });
    if (status !== 200) throw new Error(text);
    return JSON.parse(text);
  }

  /** @param item the compaction from which the conversation continues */
  goOn(item: unknown, { key = demoKey, ...more }: { key?: string } & Json = {}) {
    const question = { type: 'message', role: 'user', content: 'And now?' };
    return this.call(
      { model: 'm', input: [item, question], ...more },
      { path: '/v1/responses', headers: { authorization: `Bearer ${key}` } },
    );
  }

  get paths(): string[] {
    return this.sent.map(({ url }) => new URL(url).pathname);
  }

  get spent(): bigint | undefined {
    if (this.open.length > 0 || this.faults.length > 0) throw new Error('not closed');
    return this.item?.spent;
  }
}

const itemOf = ({ output }: Json): Json => recordsIn(output).at(-1) ?? {};
const problem = ({ status, text }: { status: number; text: string }): unknown[] => {
  const { code, param } = JSON.parse(text).error;
  return [status, code, param];
};

describe('an upstream that does not compact', () => {
  it.each<[string, UpstreamScript]>([
    ['lacks the path', refusal(404)],
    ['answers with a web page', { status: 404, headers: { 'content-type': 'text/html' }, steps: ['<html>'] }],
    ['does not allow the method', { status: 405 }],
    ['does not implement it yet', { status: 501 }],
    ['answers with another object', said('It says 42.')],
    [
      'sends an item without content',
      whole({ object: 'response.compaction', output: [{ type: 'compaction' }] }),
    ],
  ])('%s: its model writes the summary, and is asked at once for the next hour', async (_how, answer) => {
    const rig = new Compaction().upstream(answer, said('the file says 42'), said('the file says 42'));
    const item = itemOf(await rig.compact());
    expect(rig.paths).toEqual(['/v1/responses/compact', '/v1/responses']);
    expect(item['type']).toBe('compaction');
    // Charged as one call, by the usage of the summary.
    expect(rig.spent).toBe(424_000_000n);
    expect((await rig.health.entries()).size).toBe(0);
    await rig.compact();
    expect(rig.paths.slice(2)).toEqual(['/v1/responses']);
    await rig.clock.run(rig.clock.sleep(2 * 3_600_000));
    rig.upstream(compacted);
    await rig.compact();
    expect(rig.paths.at(-1)).toBe('/v1/responses/compact');
  });

  it.each([
    ['rejects the item that requests it', refusal(400, { message: 'Invalid value', param: 'input[2].type' })],
    ['answers with a text instead', said('It says 42.')],
  ])('%s: its model writes the summary for an item too', async (_how, answer) => {
    const rig = new Compaction().upstream(answer, said('the file says 42'));
    const { status, text } = await rig.call(
      { model: 'm', input: [...input, trigger] },
      { path: '/v1/responses' },
    );
    expect(status).toBe(200);
    expect(recordsIn(JSON.parse(text).output).map(({ type }) => type)).toEqual(['compaction']);
    expect(recordsIn(rig.sent[0]?.json['input']).at(-1)).toEqual(trigger);
    expect(JSON.stringify(rig.sent[1]?.json['input'])).toContain('summary');
    expect(JSON.stringify(rig.sent[1]?.json['input'])).not.toContain('compaction_trigger');
    expect(rig.spent).toBe(424_000_000n);
  });

  it.each<[string, number, Json, number]>([
    ['a model that it does not have', 404, { message: 'no', code: 'model_not_found', param: null }, 1],
    ['a conversation that is too long', 400, { message: 'x', code: 'context_length_exceeded' }, 1],
    // This rejection removes items, including the one that asks to compact.
    ['an item of the caller’s', 400, { message: 'Invalid value', param: 'input[0].content' }, 2],
    ['the last item of the caller’s', 400, { message: 'Invalid value', param: 'input[1].type' }, 2],
  ])('is not recognised by a rejection of %s', async (_what, status, error, asked) => {
    const rig = new Compaction().upstream(refusal(status, error), said('the file says 42'));
    await rig.call({ model: 'm', input }, { path });
    expect(rig.sent).toHaveLength(asked);
    rig.upstream(compacted);
    await rig.compact();
    expect(rig.paths.at(-1)).toBe('/v1/responses/compact');
  });

  it.each(['content_filter', 'max_output_tokens'])(
    'is not recognised by an answer that ended with %s',
    async (reason) => {
      const ended = { status: 'incomplete', incomplete_details: { reason }, usage: usageOf(400, 12) };
      const rig = new Compaction().upstream(whole({ object: 'response', output: [], ...ended }));
      const answer = await rig.call({ model: 'm', input }, { path });
      expect(problem(answer)).toEqual([400, 'no_summary', 'model']);
      expect([rig.sent.length, rig.spent, (await rig.health.entries()).size]).toEqual([1, 424_000_000n, 0]);
      rig.upstream(compacted);
      await rig.compact();
      expect(rig.paths.at(-1)).toBe('/v1/responses/compact');
    },
  );

  it('is never asked to compact if its row says so', async () => {
    const params = { model_rules: { m: { compaction: false } } };
    const rig = new Compaction({ channels: [{ ...openai, params }] }).upstream(said('the file says 42'));
    await rig.compact();
    expect(rig.paths).toEqual(['/v1/responses']);
  });

  it('is not asked to compact if the call pays for less than a compaction may write', async () => {
    const rig = new Compaction({}, 5n * yuan).upstream(said('the file says 42'));
    await rig.compact();
    expect(rig.paths).toEqual(['/v1/responses']);
    expect(rig.sent[0]?.json['max_output_tokens']).toBeLessThan(16_384);
  });
});

describe('a conversation compacted by its own upstream', () => {
  it('is charged by its counts, even without a prompt', async () => {
    const rig = new Compaction().upstream(compacted);
    expect((await rig.compact())['usage']).toMatchObject({ input_tokens: 30, output_tokens: 9 });
    expect(rig.spent).toBe(48_000_000n);
    expect(rig.logged[0]).not.toHaveProperty('flag');
  });

  it('is sent back unchanged, and its candidate is tried first', async () => {
    const other = { ...openai, id: 'b', endpoint: 'https://other.test/v1', priority: 200 };
    const rig = new Compaction({ channels: [other, openai] });
    rig.upstream({ connect: 'refused' }, compacted);
    const item = itemOf(await rig.compact());
    expect(rig.sent.at(-1)?.url).toContain('openai.test');
    await rig.clock.run(rig.clock.sleep(3_600_000));
    const answer = await rig.upstream(said('fine')).goOn(item);
    expect(rig.sent.at(-1)?.url).toContain('openai.test');
    expect(recordsIn(rig.sent.at(-1)?.json['input'])[0]).toEqual(vendors);
    expect(answer.headers['x-relay-dropped']).toBeUndefined();
  });

  it('is included in the token count of a conversation', async () => {
    const rig = new Compaction().upstream(compacted, whole({ input_tokens: 4_242 }));
    const asked = { model: 'm', input: [itemOf(await rig.compact()), ...input] };
    const { text } = await rig.call(asked, { path: '/v1/responses/input_tokens' });
    expect(JSON.parse(text)['input_tokens']).toBe(4_242);
    expect(recordsIn(rig.sent[1]?.json['input'])[0]).toEqual(vendors);
  });

  it('may take as long as a whole answer, because nothing of it arrives earlier', async () => {
    const rig = new Compaction().upstream({ ...compacted, steps: [200_000, ...(compacted.steps ?? [])] });
    expect(itemOf(await rig.compact())['type']).toBe('compaction');
    expect(rig.sent).toHaveLength(1);
  });

  it.each([
    ['another channel', { channels: [{ ...openai, id: 'b' }] }, {}],
    ['an upstream of another form', { channels: [chat] }, {}],
    ['another model', {}, { model: 'n' }],
    ['another account', {}, { key: strangersKey }],
  ])(
    'is hidden from %s: it and the client are told that turns are missing',
    async (_whose, options, more) => {
      const channels = [{ ...openai, models: ['m', 'n'] }];
      const first = new Compaction({ channels }).upstream(compacted);
      const item = itemOf(await first.compact());
      const rig = new Compaction({ channels, ...options }).upstream(
        'channels' in options && options.channels[0] === chat ? chatSaid('fine') : said('fine'),
      );
      const answer = await rig.goOn(item, more);
      expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'reasoning']);
      expect(JSON.stringify(rig.sent[0]?.json)).not.toMatch(/gAAAA|relay1\./);
      expect(JSON.stringify(rig.sent[0]?.json)).toContain('compacted');
    },
  );

  it('is reserved for what it may contain', async () => {
    const large = { ...vendors, encrypted_content: `gAAAA${randomBytes(75_000).toString('base64url')}` };
    const rig = new Compaction().upstream(whole({ object: 'response.compaction', output: [large] }));
    const item = itemOf(await rig.compact());
    const held = async (asked: unknown): Promise<bigint> => {
      let most = 0n;
      rig.upstream({
        steps: [50, JSON.stringify({ object: 'response', status: 'completed', output: [message('x')] })],
      });
      const answer = rig.goOn(asked);
      await rig.clock.run(rig.clock.sleep(20));
      for (const { amount } of rig.open) most = amount;
      await answer;
      expect(rig.open).toEqual([]);
      return most;
    };
    const plain = await held({ type: 'message', role: 'user', content: 'x' });
    expect(await held(item)).toBeGreaterThan(plain + 20n * yuan);
  });
});

describe('a summary', () => {
  it.each([
    ['another channel', { channels: [{ ...openai, id: 'b' }] }, {}],
    ['an upstream of another form', { channels: [chat] }, {}],
    ['another model', {}, { model: 'n' }],
  ])('is read by %s', async (_whose, options, more) => {
    const channels = [{ ...chat, models: ['m', 'n'] }];
    const item = itemOf(await new Compaction({ channels }).upstream(chatSaid('the file says 42')).compact());
    const rig = new Compaction({ channels, ...options }).upstream(said('fine'));
    const answer = await rig.goOn(item, more);
    expect(answer.headers['x-relay-dropped']).toBeUndefined();
    expect(JSON.stringify(rig.sent[0]?.json)).toContain('the file says 42');
  });

  it('of another account is not read', async () => {
    const rig = new Compaction({ channels: [chat] }).upstream(chatSaid('the file says 42'));
    const item = itemOf(await rig.compact());
    const answer = await rig.goOn(item, { key: strangersKey });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'reasoning']);
    expect(JSON.stringify(rig.sent.at(-1)?.json)).not.toContain('42');
  });

  it('that is damaged is a 400 that names its place, before any charge', async () => {
    const rig = new Compaction({ channels: [chat] }).upstream(chatSaid('the file says 42'));
    const item = itemOf(await rig.compact());
    const spent = rig.spent;
    const text = String(item['encrypted_content']);
    const damaged = { ...item, encrypted_content: `${text.slice(0, -6)}AAAAAA` };
    expect(problem(await rig.goOn(damaged))).toEqual([
      400,
      'invalid_encrypted_content',
      'input[0].encrypted_content',
    ]);
    expect([rig.sent.length, rig.spent]).toEqual([1, spent]);
  });

  it.each([
    ['by the dozen', 64, 'x'],
    ['of megabytes', 1, 'x'.repeat(5 * 1024 * 1024)],
    ['of a megabyte, four times', 4, 'x'.repeat(1024 * 1024)],
  ])('%s is a 400', async (_what, count, text) => {
    const sealed = encryptSummary(createSealer([{ number: 1, secret: 'first' }]), 'acme', text);
    const item = { type: 'compaction', encrypted_content: sealed };
    const rig = new Compaction({ channels: [chat] }).upstream(chatSaid('fine'));
    const items = Array.from({ length: count }, () => item);
    const answer = await rig.call({ model: 'm', input: items }, { path: '/v1/responses' });
    expect(problem(answer)).toEqual([400, 'conversation_too_long', `input[${count - 1}].encrypted_content`]);
    expect(rig.sent).toHaveLength(0);
  });

  const call = { index: 0, id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
  const called = data({ choices: [{ index: 0, delta: { tool_calls: [call] } }] });
  const reasoned = data({
    choices: [{ index: 0, delta: { reasoning_content: 'Hm.' }, finish_reason: null }],
  });
  it.each([
    ['nothing', delta(''), 'stop'],
    ['blanks', delta(' \n '), 'stop'],
    ['only reasoning, up to a limit', reasoned, 'length'],
    ['text before a call', [delta('Let me look.'), called].join(''), 'tool_calls'],
    ['cut off by a limit', delta('the file s'), 'length'],
    ['cut off by a filter', delta('the file s'), 'content_filter'],
  ])('that is %s is an error, and costs what its upstream charges', async (_what, text, end) => {
    const steps = [text, finish(end), usage(400, 12), data('[DONE]')];
    const rig = new Compaction({ channels: [chat] }).upstream({ steps }, { steps });
    const answer = await rig.call({ model: 'm', input }, { path });
    expect(problem(answer)).toEqual([400, 'no_summary', 'model']);
    expect(rig.spent).toBe(424_000_000n);
    const streamed = { model: 'm', input: [...input, trigger], stream: true };
    const { text: events } = await rig.call(streamed, { path: '/v1/responses' });
    expect(events).toMatch(/^event: response\.failed$/m);
    expect(rig.spent).toBe(848_000_000n);
  });

  it('that is incomplete is the same error for a repeat with its Idempotency-Key, and charged once', async () => {
    const keys = { [demoKey]: { row: keyRow({ store: true }) } };
    const rig = new Compaction({ channels: [chat], keys }).upstream(chatSaid(''));
    const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'k1' };
    for (const _ of [1, 2]) {
      const answer = await rig.call({ model: 'm', input }, { path, headers });
      expect(problem(answer)).toEqual([400, 'no_summary', 'model']);
      expect([rig.sent.length, rig.spent]).toEqual([1, 424_000_000n]);
    }
  });

  it('is charged once if its client leaves before it is ready', async () => {
    const rig = new Compaction({ channels: [chat] }).upstream({
      steps: [30_000, delta('the file '), 30_000, delta('says 42'), finish(), usage(400, 12), data('[DONE]')],
    });
    const body = { model: 'm', input: [...input, trigger], stream: true };
    await rig.call(body, { path: '/v1/responses', leaveAfter: 1 });
    expect(rig.spent).toBe(424_000_000n);
    expect(rig.logged[0]).toMatchObject({ end: 'client_gone', charge: '0.424' });
  });
});

describe('a request to compact', () => {
  it.each([
    ['nothing', {}],
    ['an empty list', { input: [] }],
    ['only instructions', { instructions: 'Be brief.' }],
  ])('of %s is a 400', async (_what, body) => {
    const rig = new Compaction();
    const answer = await rig.call({ model: 'm', ...body }, { path });
    expect([answer.status, JSON.parse(answer.text).error.param]).toEqual([400, 'input']);
    expect(rig.sent).toHaveLength(0);
  });

  it('by an item has that item last', async () => {
    const rig = new Compaction();
    const alone = await rig.call({ model: 'm', input: [trigger] }, { path: '/v1/responses' });
    expect(problem(alone)).toEqual([400, 'invalid_value', 'input']);
    const early = await rig.call({ model: 'm', input: [trigger, ...input] }, { path: '/v1/responses' });
    expect(problem(early)).toEqual([400, 'invalid_value', 'input[0].type']);
    expect(rig.sent).toHaveLength(0);
  });

  it('supports no other method, and needs money and a key like any call', async () => {
    const rig = new Compaction({}, 0n);
    const got = await rig.post(undefined, { path, method: 'GET' });
    expect([got.status, got.headers['allow']]).toEqual([405, 'POST']);
    expect((await rig.call({ model: 'm', input }, { path })).status).toBe(429);
    const headers = { authorization: 'Bearer sk-unknown' };
    expect((await rig.call({ model: 'm', input }, { path, headers })).status).toBe(401);
    expect(rig.sent).toHaveLength(0);
  });

  it("can't share its Idempotency-Key with a request for a response", async () => {
    const rig = new Compaction().upstream(compacted);
    const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'once' };
    expect((await rig.call({ model: 'm', input }, { path, headers })).status).toBe(200);
    expect((await rig.call({ model: 'm', input }, { path, headers })).status).toBe(409);
    const other = await rig.call({ model: 'm', input }, { path: '/v1/responses', headers });
    expect([other.status, JSON.parse(other.text).error.code]).toEqual([422, 'idempotency_key_reused']);
    expect(rig.sent).toHaveLength(1);
  });

  it('with a web search is rejected before anything is searched or sent', async () => {
    const settings = { search: { type: 'searxng', endpoint: 'https://search.test', results: 5 } } as const;
    const rig = new Compaction({ settings, search: () => Promise.resolve([]) }).upstream(compacted);
    const { status, text } = await rig.call({ model: 'web-m', input }, { path });
    expect([status, JSON.parse(text).error.param]).toEqual([400, 'model']);
    expect([rig.searched, rig.sent]).toEqual([[], []]);
  });

  it("keeps the user's newest messages beside the item, as many as OpenAI does", async () => {
    const long = 'x'.repeat(100_000);
    const many = ['one', 'two', 'three', 'four'].map((word) => ({
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: word + long }],
    }));
    const rig = new Compaction({ channels: [chat] }).upstream(chatSaid('they said much'));
    const { output } = await rig.compact({ input: many });
    const kept = recordsIn(output).map((item) => recordsIn(item['content'])[0]?.['text']);
    expect(kept).toEqual([`three${long}`, `four${long}`, undefined]);
  });
});

describe('a stored conversation', () => {
  it('is compacted by its id, at the path and by an item, and continues', async () => {
    const rig = new StoredRig({ channels: [chat] });
    rig.upstream(chatSaid('It says 42.'));
    const first = JSON.parse((await rig.create({ input: 'Read the file.' })).text);
    rig.upstream(chatSaid('the file says 42'));
    const body = { model: 'm', previous_response_id: first.id };
    const answer = await rig.post(body, { path, id: '01compact00000000000000001' });
    const { object, output } = JSON.parse(answer.text);
    expect(object).toBe('response.compaction');
    expect(recordsIn(output).map(({ type }) => type)).toEqual(['message', 'compaction']);
    expect(JSON.stringify(rig.sent.at(-1)?.json['messages'])).toMatch(/Read the file.*It says 42.*summary/);
    // The result is not a response, so it can't be found later.
    expect((await rig.ask('GET /resp-01compact00000000000000001')).status).toBe(404);
    const asked = JSON.parse((await rig.create({ input: [trigger], previous_response_id: first.id })).text);
    expect(asked).toMatchObject({ store: true, output: [{ type: 'compaction' }] });
    await rig.create({ input: 'And now?', previous_response_id: asked.id });
    const messages = recordsIn(rig.sent.at(-1)?.json['messages']).map(({ content }) => String(content));
    expect(messages.at(-2)).toContain('the file says 42');
    expect(messages.at(-1)).toBe('And now?');
    expect(rig.faults).toEqual([]);
  });
});

describe('context_management with a compaction', () => {
  const management = [{ type: 'compaction', compact_threshold: 1000 }];
  const turn = whole({
    object: 'response',
    status: 'completed',
    output: [vendors, message('fine')],
    usage: usageOf(40, 12),
  });

  it('is sent if the row allows it, and its item comes back sealed and is sent again', async () => {
    const channels = [{ ...openai, params: { allow: ['context_management'] } }];
    const rig = new Compaction({ channels }).upstream(turn);
    const include = ['reasoning.encrypted_content'];
    const body = { model: 'm', input, include, context_management: management };
    const { text } = await rig.call(body, { path: '/v1/responses' });
    expect(rig.sent[0]?.json['context_management']).toEqual(management);
    expect(text).not.toContain('gAAAA');
    const next = [...input, ...recordsIn(asRecord(JSON.parse(text))['output']), input[0]];
    await rig.call({ ...body, input: next }, { path: '/v1/responses' });
    expect(recordsIn(rig.sent[1]?.json['input']).filter(({ type }) => type === 'compaction')).toEqual([
      vendors,
    ]);
  });

  it('is dropped by name otherwise', async () => {
    const rig = new Compaction().upstream(turn);
    const body = { model: 'm', input, context_management: management };
    const { headers } = await rig.call(body, { path: '/v1/responses' });
    expect(headers['x-relay-dropped']).toBe('context_management');
    expect(rig.sent[0]?.json).not.toHaveProperty('context_management');
  });
});
