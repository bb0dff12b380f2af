/** Money first, then work: the work that the relay does for an account that cannot pay. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { createRelayRequest } from '../../../../shared/adapters/entry/http-entry.ts';
import { smallSize, type RelayRequest } from '../../../../shared/relay/http/http.ts';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import {
  BillingRig,
  byTokens,
  free,
  small,
  yuan,
  type BillingOptions,
} from '../../../support/billing-rig.ts';
import { createSealer } from '../../../../shared/adapters/system/node-ports.ts';
import { encryptTurn } from '../../../../shared/relay/state/turn-states.ts';
import { dataUrl, printed } from '../../../support/pdf-files.ts';
import { demoKey, hello, keyRow, type Answer } from '../../../support/core-rig.ts';

// Virtual time passes while zlib works.
vi.mock(import('../../../../shared/adapters/entry/packed-body.ts'), () => ({
  findUnpacker: vi.fn(() => unpack),
}));
const unpack = vi.fn(async (packed: Uint8Array, bytesMax: number) => {
  const body = gunzipSync(packed);
  return body.byteLength > bytesMax ? ('too_large' as const) : body;
});

type Json = Record<string, unknown>;

/** A request as a host passes it on, with counts of how often its body was read, unpacked and parsed. */
function sent(body: Json, { gzip = false, headers = {} } = {}) {
  const text = JSON.stringify(body);
  const take = vi.fn(() => (gzip ? gzipSync(text) : Buffer.from(text)));
  const read = { parsed: 0, take };
  const request = createRelayRequest(
    {
      method: 'POST',
      path: '',
      query: '',
      headers: gzip ? { 'content-encoding': 'gzip' } : {},
      host: 'x',
      body: take,
      deadlineMs: 0,
    },
    { id: 'x', local: true },
  );
  const options: Partial<RelayRequest> = {
    headers: { authorization: `Bearer ${demoKey}`, ...headers },
    json: (reading) =>
      request.json(reading).then((value) => {
        read.parsed += 1;
        return value;
      }),
  };
  return { options, read };
}

/** Small bodies that cost much work, each with the work that it causes. */
const sealKey = { number: 1, secret: 'first' };
const state = {
  origin: { dialect: 'chat', channel: 'main', secret: '', model: 'm' },
  callIds: [],
  parts: [{ opaque: { text: 'x'.repeat(1_000) } }],
};
const seal = encryptTurn(createSealer([sealKey]), { account: 'acme', model: 'm' }, { state, itemId: 'rs_1' });
const said = (content: string) => ({ role: 'assistant', content });
const responses = { model: 'm', max_output_tokens: 78 };
const messages = { model: 'm', max_tokens: 78 };
const pdf = dataUrl(printed(3, '(text) Tj'));
const costly: [string, string, Json, Partial<Work>][] = [
  [
    'copies of a state under other item ids',
    '/v1/responses',
    {
      ...responses,
      input: Array.from({ length: 200 }, (_, at) => [
        { type: 'reasoning', id: `rs_${at}`, encrypted_content: seal },
        said('a'),
        { role: 'user', content: 'b' },
      ]).flat(),
    },
    { opened: 1 },
  ],
  [
    'a state as a signature',
    '/v1/messages',
    {
      ...messages,
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'a', signature: seal },
            { type: 'text', text: 'a' },
          ],
        },
        { role: 'user', content: 'b' },
      ],
    },
    { opened: 1 },
  ],
  [
    'references to stored responses',
    '/v1/responses',
    {
      ...responses,
      input: Array.from({ length: 24 }, (_, at) => {
        const id = String(at).padStart(26, '0');
        return { type: 'item_reference', id: `msg_${id}_0` };
      }),
    },
    { read: 1 },
  ],
  [
    'a previous response',
    '/v1/responses',
    { ...responses, input: 'a', previous_response_id: `resp-${'0'.repeat(26)}` },
    { read: 1 },
  ],
  [
    'a compressed file',
    '/v1/chat/completions',
    { ...small, messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: pdf } }] }] },
    { inflated: 1 },
  ],
];

interface Work {
  opened: number;
  read: number;
  inflated: number;
}

/** A rig that counts opened states and records whether it read stored responses or inflated files. */
function watchedRig(options: BillingOptions = {}) {
  const counted: Work = { opened: 0, read: 0, inflated: 0 };
  const rig: BillingRig = rigOf({
    ...options,
    key: { store: true, ...options.key },
    composed: (ports, handleOf) => {
      const { sealer, inflate } = ports;
      const watched: typeof sealer = {
        seal: (text) => sealer.seal(text),
        open(text) {
          counted.opened += 1;
          return sealer.open(text);
        },
      };
      const inflating: typeof inflate = (...asked) => {
        counted.inflated = 1;
        return inflate(...asked);
      };
      return handleOf({ ...ports, sealer: watched, inflate: inflating });
    },
  });
  const reads = vi.spyOn(rig.stored.responses, 'readEach');
  const work = (): Work => ({ ...counted, read: Math.min(1, reads.mock.calls.length) });
  return { rig, work };
}

const rigOf = (options: BillingOptions = {}): BillingRig =>
  new BillingRig(options).upstream({ steps: hello });
const withText = (length: number, more: Json = {}): Json => ({
  ...small,
  messages: [{ role: 'user', content: 'a '.repeat(length / 2) }],
  ...more,
});
const large = withText(smallSize.bytes);
const wide = { ...small, stop: [], metadata: { list: Array.from({ length: smallSize.values }, () => 1) } };
const codeOf = ({ status, text }: Answer): string =>
  status === 200 ? '200' : (JSON.parse(text) as { error: { code: string } }).error.code;

async function posted(rig: BillingRig, body: Json, how: Parameters<typeof sent>[1] = {}) {
  const { options, read } = sent(body, how);
  const answer = await rig.call({}, options);
  return { ...answer, code: codeOf(answer), taken: read.take.mock.calls.length, parsed: read.parsed };
}

/** Another model of the key beside `m`, which has a price. */
const channels = [{ models: ['m', 'other'] }];

describe('a request of an account that was just rejected for its balance', () => {
  it('is rejected with the same response before its body is read', async () => {
    const rig = rigOf();
    const first = await posted(rig, small);
    expect([first.code, first.parsed]).toEqual(['insufficient_quota', 1]);
    const { logged, store } = rig;
    const writes = store.sent.length;
    const second = await posted(rig, small);
    expect([second.code, second.taken, second.status]).toEqual(['insufficient_quota', 0, first.status]);
    expect(second.headers).toEqual({ ...first.headers, 'x-request-id': second.headers['x-request-id'] });
    expect(store.sent.length).toBe(writes);
    const fields = ['status', 'end', 'code', 'reason', 'account', 'key_hint', 'endpoint'] as const;
    expect(fields.map((field) => logged[1]?.[field])).toEqual(fields.map((field) => logged[0]?.[field]));
  });

  it('is served at most a second after the account gets money', async () => {
    const rig = rigOf();
    await posted(rig, small);
    rig.granted(yuan);
    await rig.clock.run(rig.clock.sleep(1_000));
    expect((await posted(rig, small)).code).toBe('200');
  });

  it('is rejected with another code if running calls reserve the balance', async () => {
    const rig = rigOf().granted(yuan / 5n);
    rig.upstream({ steps: [60_000, ...hello] });
    const running = rig.call(small);
    rig.upstream({ steps: hello });
    expect((await posted(rig, small)).code).toBe('balance_reserved');
    await rig.clock.run(running);
  });

  it.each<[string, BillingOptions, Json]>([
    ['a free model', { channels, charges: [byTokens, { ...free, models: ['other'] }] }, { model: 'other' }],
    ['a model without a price', { channels }, { model: 'other' }],
    ['official mode', { key: { official: true } }, { official: true }],
    [
      'a model of its plan',
      {
        channels,
        charges: [{ ...byTokens, models: ['m', 'other'] }],
        plan: [{ id: 'p', models: ['other'], value: 5 }],
      },
      { model: 'other' },
    ],
    [
      'an alias of its plan',
      {
        channels,
        charges: [{ ...byTokens, models: ['m', 'other'] }],
        settings: { aliases: [{ name: 'both', models: ['other'], onContextLength: false }] },
        plan: [{ id: 'p', models: ['both'], value: 5 }],
      },
      { model: 'both' },
    ],
  ])('is read and served for %s, and rejected unchecked for another model', async (_case, options, asked) => {
    const rig = rigOf(options);
    expect((await posted(rig, small)).code).toBe('insufficient_quota');
    expect((await posted(rig, { ...small, messages: 'nobody checks this' })).code).toBe('insufficient_quota');
    expect((await posted(rig, { ...small, ...asked })).code).toBe('200');
  });

  it('gets the kept answer if it repeats a request, and is rejected if none is kept', async () => {
    const headers = { 'idempotency-key': 'k' };
    const rig = rigOf({ key: { store: true } }).granted(178_000_000n);
    const body = { model: 'm', max_tokens: 78, messages: [{ role: 'user', content: 'hi' }] };
    const first = await posted(rig, body, { headers });
    rig.quotas.grant('acme', -rig.item!.available);
    expect((await posted(rig, small)).code).toBe('insufficient_quota');
    const again = await posted(rig, body, { headers });
    expect([again.code, again.text]).toEqual([first.code, first.text]);
    const other = rigOf();
    await posted(other, small);
    expect(await posted(other, body, { headers })).toMatchObject({ code: 'insufficient_quota', taken: 0 });
  });
});

describe('a request of a key at its limit a minute', () => {
  it('is rejected before its body is read, without a call to the counter', async () => {
    const rig = rigOf({ key: { rpm: 1 } }).granted(yuan);
    const counted = vi.spyOn(rig.counters, 'countCall');
    expect((await posted(rig, small)).code).toBe('200');
    const first = await posted(rig, small);
    const second = await posted(rig, small);
    expect([first.code, first.taken, second.code, second.taken]).toEqual([
      'rate_limit_exceeded',
      1,
      'rate_limit_exceeded',
      0,
    ]);
    expect(second.headers).toEqual({ ...first.headers, 'x-request-id': second.headers['x-request-id'] });
    expect(counted).toHaveBeenCalledTimes(2);
    await rig.clock.run(rig.clock.sleep(60_000));
    expect((await posted(rig, small)).code).toBe('200');
  });

  it('is counted in the minute of its arrival, which parallel requests fill first', async () => {
    const rig = rigOf({ key: { rpm: 2 } }).granted(yuan);
    const answers = await Promise.all([small, small, small].map((body) => posted(rig, body)));
    expect(answers.map(({ code }) => code).toSorted()).toEqual(['200', '200', 'rate_limit_exceeded']);
  });

  it('is also rejected for the limit of its account', async () => {
    const account = AccountRow.parse({ account: 'acme', rpm: 1 });
    const rig = rigOf({ keys: { [demoKey]: { row: keyRow(), account } } }).granted(10n * yuan);
    const codes = [await posted(rig, small), await posted(rig, small), await posted(rig, small)];
    expect(codes.map(({ code, taken }) => [code, taken])).toEqual([
      ['200', 1],
      ['rate_limit_exceeded', 1],
      ['rate_limit_exceeded', 0],
    ]);
  });
});

describe('a body of more than 256 KB or 2,000 values', () => {
  it.each([
    ['long', large, {}],
    ['wide', wide, {}],
    ['compressed', large, { gzip: true }],
    ['compressed and wide', wide, { gzip: true }],
  ])('that is %s is not parsed for an account that cannot pay', async (_case, body, how) => {
    unpack.mockClear();
    const rig = rigOf();
    const answer = await posted(rig, body, how);
    expect([answer.code, answer.taken, answer.parsed]).toEqual(['insufficient_quota', 1, 0]);
    expect(rig.store.sent).toEqual(['read', 'read']);
    expect(unpack.mock.calls.every(([, bytesMax]) => bytesMax === smallSize.bytes)).toBe(true);
    expect(await posted(rig, body, how)).toMatchObject({ code: 'insufficient_quota', taken: 0 });
  });

  it.each([
    ['long', large, {}],
    ['compressed', large, { gzip: true }],
  ])(
    'that is %s is read for an account that can pay, and nothing is read twice',
    async (_case, body, how) => {
      const rig = rigOf().granted(10_000n * yuan);
      for (const reads of [1, 0]) {
        const { length } = rig.store.sent;
        expect((await posted(rig, body, how)).code).toBe('200');
        const methods = rig.store.sent.slice(length);
        expect(methods).toEqual([...Array.from({ length: reads }, () => 'read'), 'reserve', 'close']);
      }
    },
  );

  it.each<[string, BillingOptions]>([
    ['whose key may call free models only', { charges: [free] }],
    [
      'that is metered',
      {
        keys: { [demoKey]: { row: keyRow(), account: AccountRow.parse({ account: 'acme', metered: true }) } },
      },
    ],
    ['whose plan has no end', { plan: [{ id: 'p', models: ['m'], value: -1 }] }],
  ])('is read without a balance check for an account %s', async (_case, options) => {
    const rig = rigOf(options);
    expect((await posted(rig, large)).code).toBe('200');
    expect(rig.store.sent.filter((operation) => operation === 'read')).toEqual([]);
  });

  it('is read for a free model, and for a priced one once a second, unchecked', async () => {
    const rig = rigOf({ channels });
    const priced = await posted(rig, { ...large, max_tokens: 'nobody checks this' });
    expect([priced.code, priced.parsed]).toEqual(['insufficient_quota', 1]);
    const soon = await posted(rig, { ...large, model: 'other' });
    expect([soon.code, soon.parsed, soon.headers['retry-after']]).toEqual(['rate_limit_exceeded', 0, '1']);
    await rig.clock.run(rig.clock.sleep(1_000));
    for (const _ of [1, 2]) expect((await posted(rig, { ...large, model: 'other' })).code).toBe('200');
  });

  it('waits for the previous one of its key and continues once that is read, valid or not', async () => {
    const rig = rigOf().granted(10_000n * yuan);
    const log: string[] = [];
    const bodies = [large, { ...large, max_tokens: 'wrong' }, large].map((body, at) => {
      const { options } = sent(body);
      const json: RelayRequest['json'] = (reading) =>
        options.json!({
          ...reading,
          large: async () => {
            await reading?.large?.();
            log.push(`begins ${at}`);
            await rig.clock.sleep(100);
            log.push(`ends ${at}`);
          },
        });
      return rig.call({}, { ...options, json });
    });
    const codes = (await Promise.all(bodies)).map(codeOf);
    expect(codes).toEqual(['200', 'invalid_type', '200']);
    expect(log).toEqual(['begins 0', 'ends 0', 'begins 1', 'ends 1', 'begins 2', 'ends 2']);
  });

  it('stops waiting at its deadline and gives up its place', async () => {
    const rig = rigOf().granted(10_000n * yuan);
    const stuck = sent(large).options;
    const json: RelayRequest['json'] = async (reading) => {
      await reading?.large?.();
      await rig.clock.sleep(60_000);
      return stuck.json!();
    };
    const first = rig.call({}, { ...stuck, json });
    const late = sent(large);
    const second = rig.call({}, { ...late.options, hostDeadlineMs: rig.clock.now() + 15_000 });
    const third = rig.call({}, sent(large).options);
    expect(codeOf(await second)).toBe('unavailable');
    expect(late.read.parsed).toBe(0);
    expect([codeOf(await first), codeOf(await third)]).toEqual(['200', '200']);
  });

  it('is rejected while 64 others of its key wait', async () => {
    const rig = rigOf().granted(1_000_000n * yuan);
    const answers = await Promise.all(Array.from({ length: 70 }, () => posted(rig, large)));
    const refused = answers.filter(({ code }) => code !== '200');
    expect(refused.map(({ code, parsed, headers }) => [code, parsed, headers['retry-after']])).toEqual(
      Array.from({ length: 5 }, () => ['rate_limit_exceeded', 0, '1']),
    );
  });
});

describe('a small body that causes much work', () => {
  describe.each(costly)('%s', (_case, path, body, wanted) => {
    const none: Work = { opened: 0, read: 0, inflated: 0 };

    it('causes no work for an account that cannot pay', async () => {
      const { rig, work } = watchedRig();
      const answer = await rig.call(body, { path });
      expect([answer.status, work()]).toEqual([path === '/v1/messages' ? 402 : 429, none]);
      expect([rig.open, rig.sent]).toEqual([[], []]);
    });

    it('is processed for an account that can pay, and leaves nothing reserved', async () => {
      const { rig, work } = watchedRig();
      rig.granted(10_000n * yuan);
      await rig.call(body, { path });
      expect(work()).toEqual({ ...none, ...wanted });
      expect([rig.open, rig.faults]).toEqual([[], []]);
    });
  });

  it('causes no work in a token count for an account that cannot pay', async () => {
    for (const [, path, body] of costly.filter(([, at]) => at !== '/v1/chat/completions')) {
      const { rig, work } = watchedRig();
      const counting = path === '/v1/messages' ? `${path}/count_tokens` : `${path}/input_tokens`;
      const { max_tokens: _, ...counted } = body;
      const answer = await rig.call(counted, { path: counting });
      expect([answer.status, work()]).toEqual([
        path === '/v1/messages' ? 402 : 429,
        { opened: 0, read: 0, inflated: 0 },
      ]);
    }
  });

  it('gets its reservation refunded if a seal is damaged', async () => {
    const { rig } = watchedRig();
    rig.granted(yuan);
    const damaged = `${seal.slice(0, -8)}AAAAAAAA`;
    const input = [{ type: 'reasoning', id: 'rs_1', encrypted_content: damaged }, said('a')];
    for (const more of [{}, { background: true }]) {
      const answer = await rig.call({ ...responses, input, ...more }, { path: '/v1/responses' });
      expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_encrypted_content']);
      expect([rig.open, rig.item?.available]).toEqual([[], yuan]);
    }
    expect(rig.stored.started).toEqual([]);
  });
});
