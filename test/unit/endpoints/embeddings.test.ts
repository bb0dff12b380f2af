import { describe, expect, it } from 'vitest';
import { CallIds } from '../../../shared/upstreams/call-ids.ts';
import { loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { ErrorInAnswer } from '../../../shared/upstreams/exchange.ts';
import { defaultQuirks } from '../../../shared/upstreams/quirks.ts';
import { vectorNumbersMax } from '../../../shared/wire/canonical-call.ts';
import { BillingRig, yuan, type BillingOptions } from '../../support/billing-rig.ts';
import { reset, type Answer, type UpstreamScript } from '../../support/core-rig.ts';

const path = '/v1/embeddings';
/** 0.001 yuan per token; the price of output never applies. */
const byTokens = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };
const openai = 'https://api.openai.com/v1';

const vectorsOf = (...vectors: unknown[]): object[] =>
  vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }));

/** All with the same index. */
const vectorsAt = (index: number, ...vectors: unknown[]): object[] =>
  vectors.map((embedding) => ({ object: 'embedding', index, embedding }));

/** A vendor's document, in pieces cut at awkward places. */
function answer(data: unknown, usage: unknown = { prompt_tokens: 9, total_tokens: 9 }): UpstreamScript {
  const text = JSON.stringify({ object: 'list', data, model: 'vendor', usage }, null, 2);
  return { headers: { 'content-type': 'application/json' }, steps: text.match(/[^]{1,17}/g) ?? [] };
}

function rigOf(options: BillingOptions, ...scripts: UpstreamScript[]): BillingRig {
  return new BillingRig({ charges: [byTokens], ...options }).granted(yuan).upstream(...scripts);
}

interface Embedded {
  data: { object: string; index: number; embedding: number[] | string }[];
  usage: object;
  error?: { code: string; param: string | null; message: string };
}
const read = ({ text }: Answer): Embedded => JSON.parse(text) as Embedded;
const bytesOf = (...numbers: number[]): string => {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (const [at, number] of numbers.entries()) bytes.writeFloatLE(number, 4 * at);
  return bytes.toString('base64');
};

const two = { model: 'm', input: ['first text', 'second text'] };

describe('an embeddings answer', () => {
  it('is read whatever brackets its texts have before the vectors, and so is an error', async () => {
    const whole = (document: string): UpstreamScript => ({
      headers: { 'content-type': 'application/json' },
      steps: document.match(/[^]{1,7}/g) ?? [],
    });
    const told = JSON.stringify({ model: 'a[{"\\', data: vectorsOf([1], [2]), usage: { prompt_tokens: 9 } });
    const rig = rigOf({}, whole(told));
    expect(read(await rig.call(two, { path })).data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
    const error = { message: 'Invalid input [{"loc": 1', type: 'invalid_request_error', param: 'input' };
    const refused = rigOf({}, whole(JSON.stringify({ error: { ...error, code: 'invalid_value' } })));
    const answered = await refused.call(two, { path });
    expect([answered.status, read(answered).error]).toEqual([
      400,
      expect.objectContaining({ param: 'input' }),
    ]);
  });

  it('has a vector of numbers for each input, with the charged counts', async () => {
    const rig = rigOf({}, answer(vectorsOf([0.25, -1], [0.5 ** 10, 3])));
    const result = await rig.call(two, { path });
    expect([result.status, result.headers['content-type']]).toEqual([200, 'application/json']);
    expect(read(result)).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [0.25, -1] },
        { object: 'embedding', index: 1, embedding: [0.5 ** 10, 3] },
      ],
      model: 'm',
      usage: { prompt_tokens: 9, total_tokens: 9 },
    });
    expect(rig.item).toMatchObject({ spent: 9_000_000n });
    expect(rig.logged).toMatchObject([
      { endpoint: 'embeddings', end: 'completed', prompt_tokens: 9, charge: '0.009', usage_estimated: false },
    ]);
  });

  const few = [0.1, -2.5, 3e-8];
  const many = Array.from({ length: 2_100 }, (_, at) => at / 8);
  it.each([
    ['an upstream of numbers', few, few],
    ['an upstream of base64', few, bytesOf(...few)],
    ['an upstream of long vectors', many, bytesOf(...many)],
  ])('has the bytes of 32-bit little-endian numbers as base64: from %s', async (_, expected, vector) => {
    const rig = rigOf({}, answer(vectorsOf(vector)));
    const asked = { model: 'm', input: 'text', encoding_format: 'base64' };
    expect(read(await rig.call(asked, { path })).data[0]?.embedding).toBe(bytesOf(...expected));
    const numbers = read(await rig.call({ ...asked, encoding_format: 'float' }, { path })).data[0]?.embedding;
    expect(Array.from(numbers as number[], Math.fround)).toEqual(expected.map(Math.fround));
  });

  it('has the order of the inputs, whatever the order of the upstream', async () => {
    const [first, second] = vectorsOf([1], [2]);
    const rig = rigOf({}, answer([second, first]));
    expect(read(await rig.call(two, { path })).data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
  });

  it.each([
    ['omits the first index, like Gemini', [{ embedding: [1] }, { index: 1, embedding: [2] }]],
    ['sends the index 0 for each', vectorsAt(0, [1], [2])],
  ])('uses the position in the list when an upstream %s', async (_case, given) => {
    const rig = rigOf({}, answer(given));
    expect(read(await rig.call(two, { path })).data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
  });
});

it("may have as many numbers as fit into a function's memory, and no more", async () => {
  const { Reader } = await loadDialect('embeddings');
  const sent = { body: { input: ['a', 'b', 'c'] }, dropped: [], wrappedTools: new Set<string>() };
  const callIds = new CallIds({ channel: 'c', requestId: 'r' });
  const identity = { requestId: 'r', created: 0, model: 'm' };
  const reader = new Reader({ identity, sent, callIds, quirks: defaultQuirks });
  const quarter = Buffer.alloc(vectorNumbersMax).toString('base64');
  const event = { kind: 'value' as const, value: { embedding: quarter } };
  for (let pushed = 0; pushed < 4; pushed += 1) reader.push(event);
  expect(() => reader.push(event)).toThrow(ErrorInAnswer);
});

describe('the upstream request for embeddings', () => {
  it("has the inputs, the upstream's name and the client's fields, and asks for bytes if they are supported", async () => {
    const channels = [{ endpoint: openai, mapper: { m: 'vendor-m' } }];
    const rig = rigOf({ channels }, answer(vectorsOf(bytesOf(1, 2))));
    await rig.call({ model: 'm', input: [3, 4, 5], dimensions: 2, user: 'u', input_type: 'query' }, { path });
    const [{ url, json } = { url: '', json: {} }] = rig.sent;
    expect(url).toBe(`${openai}/embeddings`);
    expect(json).toEqual({
      model: 'vendor-m',
      input: [[3, 4, 5]],
      dimensions: 2,
      input_type: 'query',
      user: expect.stringMatching(/^[\w-]{20,}$/) as string,
      encoding_format: 'base64',
    });
  });

  it('names no encoding to servers that may reject or ignore it', async () => {
    const rig = rigOf({}, answer(vectorsOf([1])));
    await rig.call({ model: 'm', input: 'text', encoding_format: 'base64' }, { path });
    expect(rig.sent[0]?.json).toEqual({ model: 'm', input: ['text'] });
  });

  it.each([
    [
      { endpoint: 'https://a.openai.azure.com', api_version: '2024-10-21' },
      '/openai/deployments/up/embeddings?api-version=2024-10-21',
    ],
    [{ endpoint: 'https://a.openai.azure.com/openai/v1' }, '/openai/v1/embeddings'],
  ])("uses both forms of Azure's address", async (row, address) => {
    const channels = [{ type: 'azure', mapper: { m: 'up' }, ...row }];
    const rig = rigOf({ channels }, answer(vectorsOf(bytesOf(1))));
    expect((await rig.call({ model: 'm', input: 'text' }, { path })).status).toBe(200);
    expect(rig.sent[0]?.url).toBe(`https://a.openai.azure.com${address}`);
  });

  it('omits fields that affect money or isolation, and the answer names them', async () => {
    const charges = [{ ...byTokens, service_tiers: { priority: 2 } }];
    const rig = rigOf({ charges }, answer(vectorsOf([1])));
    const forbidden = { api_base: 'https://x.test', service_tier: 'priority', stream: true };
    const { headers } = await rig.call({ model: 'm', input: 'text', ...forbidden }, { path });
    expect(headers['x-relay-dropped']).toBe('api_base, service_tier');
    expect(rig.sent[0]?.json).toEqual({ model: 'm', input: ['text'] });
  });
});

const many = (count: number): string[] => Array.from({ length: count }, () => 'a');
const tokens = (count: number): number[][] =>
  Array.from({ length: count }, () => Array.from({ length: 1000 }, () => 7));

it.each([
  ['no input', {}, 'missing_required_parameter', 'input'],
  ['an empty text', { input: '' }, 'invalid_value', 'input'],
  ['an empty list', { input: [] }, 'invalid_value', 'input'],
  ['an object', { input: {} }, 'invalid_value', 'input'],
  ['an empty text among others', { input: ['a', ''] }, 'invalid_value', 'input[1]'],
  ['tokens among texts', { input: ['a', [1]] }, 'invalid_value', 'input[1]'],
  ['no tokens among others', { input: [[1], []] }, 'invalid_value', 'input[1]'],
  ['a token below zero', { input: [1, -1] }, 'invalid_value', 'input'],
  ['half a token', { input: [[1, 0.5]] }, 'invalid_value', 'input[0]'],
  ['2,049 inputs', { input: many(2049) }, 'array_above_max_length', 'input'],
  ['301,000 tokens', { input: tokens(301) }, 'max_tokens_per_request', 'input'],
  ['text of as many', { input: 'word '.repeat(450_000) }, 'max_tokens_per_request', 'input'],
  ['no dimensions', { input: 'a', dimensions: 0 }, 'invalid_value', 'dimensions'],
  ['another encoding', { input: 'a', encoding_format: 'int8' }, 'invalid_value', 'encoding_format'],
  [
    'vectors too large for an answer',
    { input: many(2048), dimensions: vectorNumbersMax / 2048 + 1 },
    'answer_too_large',
    'dimensions',
  ],
])('%s is rejected before anything is reserved', async (_, fields, code, param) => {
  const rig = rigOf({}, answer(vectorsOf([1])));
  const result = await rig.call({ model: 'm', ...fields }, { path });
  expect(result.status).toBe(400);
  expect(read(result).error).toMatchObject({ code, param });
  expect(rig.sent).toEqual([]);
  expect(rig.item).toMatchObject({ available: yuan });
});

const lists = {
  model: 'm',
  input: [
    [1, 2, 3],
    [4, 5],
  ],
};
const pair = vectorsOf([1], [2]);

describe('an embeddings call', () => {
  it('reserves the tokens of token arrays, and nothing for an output', async () => {
    const exact = new BillingRig({ charges: [byTokens] }).granted(5_000_000n);
    exact.upstream(answer(pair, { prompt_tokens: 5 }));
    expect((await exact.call(lists, { path })).status).toBe(200);
    expect(exact.item).toMatchObject({ spent: 5_000_000n, available: 0n });
    const short = new BillingRig({ charges: [byTokens] }).granted(4_999_999n).upstream(answer(pair));
    const refused = await short.call(lists, { path });
    expect([refused.status, read(refused).error?.code]).toEqual([429, 'insufficient_quota']);
    expect(short.sent).toEqual([]);
  });

  it.each([
    ['no count', {}, 5n, 'input:absent'],
    ['none', { prompt_tokens: 0 }, 5n, 'input:low'],
    ['far too many', { prompt_tokens: 1_000_000 }, 5n, 'input:high'],
    ['less than nothing', { prompt_tokens: -1 }, 5n, 'input:impossible'],
    ['only a total', { total_tokens: 5 }, 5n, undefined],
    ['a plausible count', { prompt_tokens: 7 }, 7n, undefined],
  ])(
    "is settled by the upstream's count if that is plausible, or else by the estimate: %s",
    async (_, usage, tokens, flag) => {
      const rig = rigOf({}, answer(pair, usage));
      const result = await rig.call(lists, { path });
      expect(read(result).usage).toEqual({ prompt_tokens: Number(tokens), total_tokens: Number(tokens) });
      expect(rig.item).toMatchObject({ spent: tokens * 1_000_000n });
      expect(rig.logged[0]?.usage_flag).toBe(flag);
    },
  );

  it('costs the price of a call once, and counts once on a plan', async () => {
    const byCall = { id: 2, type: 'times-billing', models: ['m'], output: 0.5 };
    const rig = rigOf({ charges: [byCall] }, answer(pair));
    await rig.call(lists, { path });
    expect(rig.item).toMatchObject({ spent: 500_000_000n });
    const plan = [{ id: 'p', name: 'p', icon: '', value: 1, models: ['m'] }];
    const planned = rigOf({ plan }, answer(pair));
    await planned.call(lists, { path });
    expect(planned.logged[0]).toMatchObject({
      charge: '0',
      plan_slot: expect.stringMatching(/^p@/) as string,
    });
    await planned.call(lists, { path });
    expect(planned.logged[1]).toMatchObject({ charge: '0.009' });
  });

  it('with official billing is shown and not charged', async () => {
    const rig = rigOf({ key: { official: true } }, answer(pair));
    const result = await rig.call({ ...lists, model: 'm-official' }, { path });
    expect(read(result)).toMatchObject({ model: 'm', quota: 0.009 });
    expect(rig.item).toMatchObject({ spent: 0n });
  });

  it('is charged once when the client disconnects, like any other call', async () => {
    const rig = rigOf({}, answer(pair));
    const response = await rig.clock.run(rig.respond(lists, { path }));
    await rig.clock.run(
      (async () => {
        for await (const _ of response.body as AsyncIterable<string>) return;
      })(),
    );
    await rig.clock.run(response.done);
    expect(rig.item).toMatchObject({ spent: 9_000_000n, open: new Map() });
    expect(rig.logged).toMatchObject([{ charge: '0.009' }]);
  });

  it('with a repeated Idempotency-Key is charged once', async () => {
    const rig = rigOf({}, answer(pair));
    const headers = { authorization: 'Bearer sk-test', 'idempotency-key': 'once' };
    expect((await rig.call(lists, { path, headers })).status).toBe(200);
    const again = await rig.call(lists, { path, headers });
    expect([again.status, read(again).error?.code]).toEqual([409, 'request_already_completed']);
    expect(rig.item).toMatchObject({ spent: 9_000_000n });
    expect(rig.sent).toHaveLength(1);
  });

  it('is repeated for free with a key that may store, and returns the same vectors', async () => {
    const rig = rigOf({ key: { store: true } }, answer(pair));
    const headers = { authorization: 'Bearer sk-test', 'idempotency-key': 'once' };
    const first = await rig.call(lists, { path, headers });
    const again = await rig.call(lists, { path, headers });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(rig.item).toMatchObject({ spent: 9_000_000n });
    expect(rig.sent).toHaveLength(1);
  });

  it('with a name that asks for a search is rejected before anything is searched or sent', async () => {
    const rig = rigOf({ search: () => Promise.resolve([]) }, answer(pair));
    const refused = await rig.call({ ...lists, model: 'web-m' }, { path });
    expect([refused.status, read(refused).error?.message]).toEqual([400, expect.stringContaining('web-')]);
    expect([rig.searched, rig.sent]).toEqual([[], []]);
  });

  it('stays within the limits of a key', async () => {
    const rig = rigOf({ key: { rpm: 1, budget: { period: 'day', amount: '0.004' } } }, answer(pair));
    const short = await rig.call(lists, { path });
    expect([short.status, read(short).error?.message]).toEqual([
      429,
      expect.stringContaining('0.004 yuan a day'),
    ]);
    const many = await rig.call(lists, { path });
    expect(read(many).error?.code).toBe('rate_limit_exceeded');
    expect(rig.sent).toEqual([]);
  });
});

const row = (id: string, priority: number, more: object = {}): Record<string, unknown> => ({
  id,
  priority,
  endpoint: `https://${id}.test/v1`,
  ...more,
});
const hosts = ({ sent }: BillingRig): string[] => sent.map(({ url }) => new URL(url).hostname);

describe('embeddings failover', () => {
  const three = [
    row('first', 2, { mapper: { m: 'same' } }),
    row('other', 1),
    row('second', 0, { mapper: { m: 'same' } }),
  ];

  it.each<[string, UpstreamScript]>([
    ['fails', { status: 500 }],
    ['limits its rate', { status: 429 }],
    ['breaks off', { steps: ['{"data":[{"embed', reset] }],
    ['ends early', { steps: ['{"data":[{"index":0,"embedding":[1]}'] }],
    ['sends fewer vectors', answer(vectorsOf([1]))],
    ['sends more vectors', answer(vectorsOf([1], [2], [3]))],
    ['sends a vector twice', answer(vectorsAt(1, [1], [2]))],
    ['sends a vector of another length', answer(vectorsOf([1], [2, 3]))],
    ['sends an empty vector', answer(vectorsOf([], []))],
    ['sends a value that is not a number', answer(vectorsOf([1], [null]))],
    ['sends numbers beyond 32 bits', answer(vectorsOf([1], [1e300]))],
    ['sends bytes that are not numbers', answer(vectorsOf(bytesOf(1), btoa('abc')))],
    ['sends invalid base64', answer(vectorsOf(bytesOf(1), '*'))],
    ['sends NaN as bytes', answer(vectorsOf(bytesOf(1), bytesOf(Number.NaN)))],
    ['sends no vectors', answer([])],
    ['sends a web page', { steps: ['<html>'] }],
    ['sends an error', { steps: ['{"error":{"message":"x","type":"server_error"}}'] }],
  ])('asks the next channel of the same upstream model, and no other, when one %s', async (_, broken) => {
    const rig = rigOf({ channels: three }, broken, answer(pair));
    const result = await rig.call(lists, { path });
    expect(read(result).data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
    expect(hosts(rig)).toEqual(['first.test', 'second.test']);
    expect(rig.item).toMatchObject({ spent: 9_000_000n });
  });

  it('never asks another upstream model, even when all others have failed or are cooling down', async () => {
    const rig = rigOf({ channels: three }, { status: 500 });
    expect((await rig.call(lists, { path })).status).toBe(502);
    expect((await rig.call(lists, { path })).status).toBe(502);
    expect(new Set(hosts(rig))).toEqual(new Set(['first.test', 'second.test']));
    expect(rig.item).toMatchObject({ spent: 0n, open: new Map() });
  });

  it('follows a row with a weight, before a spare one of the same priority', async () => {
    const channels = [row('a-spare', 1, { weight: 0 }), row('main', 1, { mapper: { m: 'same' } })];
    const rig = rigOf({ channels }, answer(pair));
    await rig.call(lists, { path });
    expect(hosts(rig)).toEqual(['main.test']);
  });

  it('asks no other model of an alias', async () => {
    const channels = [row('first', 1), row('other', 0, { models: ['n'] })];
    const aliases = [{ name: 'any', models: ['m', 'n'], onContextLength: true }];
    const rig = rigOf({ channels, settings: { aliases } }, { status: 500 });
    expect((await rig.call({ ...lists, model: 'any' }, { path })).status).toBe(502);
    expect(hosts(rig)).toEqual(['first.test']);
  });

  it('skips channels of types without embeddings', async () => {
    const channels = [row('claude', 2, { type: 'anthropic' }), row('first', 1)];
    const rig = rigOf({ channels }, answer(pair));
    expect((await rig.call(lists, { path })).status).toBe(200);
    expect(hosts(rig)).toEqual(['first.test']);
    const none = rigOf({ channels: channels.slice(0, 1) }, answer(pair));
    const refused = await none.call(lists, { path });
    expect(refused.status).toBe(400);
    expect(read(refused).error).toMatchObject({ code: 'unsupported_parameter', param: 'model' });
    expect(none.item).toMatchObject({ available: yuan });
  });

  it('rejects vectors of a length other than requested, and skips rows that drop the dimensions', async () => {
    const channels = [
      row('deaf', 2, { params: { drop: ['dimensions'] } }),
      row('first', 1),
      row('second', 0),
    ];
    const rig = rigOf({ channels }, answer(vectorsOf([1], [2])), answer(vectorsOf([1, 2], [3, 4])));
    const result = await rig.call({ ...lists, dimensions: 2 }, { path });
    expect(read(result).data.map(({ embedding }) => embedding)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(hosts(rig)).toEqual(['first.test', 'second.test']);
  });

  it("treats a wrong vector length as the call's error, without a channel cooldown", async () => {
    const channels = [row('first', 1), row('second', 0)];
    const short = answer(vectorsOf([1], [2]));
    const rig = rigOf({ channels }, ...Array.from({ length: 8 }, () => short));
    for (let call = 1; call <= 4; call += 1) {
      const result = await rig.call({ ...lists, dimensions: 2 }, { path });
      expect([result.status, read(result).error?.param]).toEqual([400, 'dimensions']);
      expect(rig.sent).toHaveLength(2 * call);
    }
    expect([rig.health.sent, rig.item?.spent]).toEqual([0, 0n]);
    expect(rig.logged[0]).toMatchObject({ attempts: [{ channel: 'first' }, { channel: 'second' }] });
    expect(rig.logged[0]?.passed_over).toBeUndefined();
  });

  it.each([400, 404, 403])(
    "starts no cooldown when the channel's model has no embeddings: %d",
    async (status) => {
      const error = {
        message: 'This model does not support embeddings.',
        type: 'invalid_request_error',
        code: null,
      };
      const rig = rigOf({}, { status, steps: [JSON.stringify({ error })] });
      for (let call = 0; call < 4; call += 1) await rig.call(lists, { path });
      expect(rig.sent).toHaveLength(4);
      expect(rig.health.sent).toBe(0);
    },
  );

  it('reports vectors that are too large at once, so that the client can ask for fewer', async () => {
    const channels = [row('first', 1), row('second', 0)];
    const steps = [
      '{"data":[{"embedding":"',
      ...Array.from({ length: 17 }, () => 'A'.repeat(2 ** 20)),
      '"}]}',
    ];
    const rig = rigOf({ channels }, { steps });
    const result = await rig.call(lists, { path });
    expect([result.status, read(result).error?.code]).toEqual([413, 'request_too_large']);
    expect(hosts(rig)).toEqual(['first.test']);
    expect(rig.item).toMatchObject({ spent: 0n });
  });
});
