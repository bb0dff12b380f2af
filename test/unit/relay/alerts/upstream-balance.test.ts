/** Balances that upstreams report, true or false, and the alerts that follow. The answers are those that vendors document. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readChannel, type ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import {
  createUpstreamWatch,
  findBalances,
  formatBalance,
} from '../../../../shared/relay/alerts/upstream-balance.ts';
import { TransportError, type UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';
import { findBalanceReport } from '../../../../shared/upstreams/types/channel-attributes.ts';
import { MemoryAlertStores } from '../../../support/memory-alert-stores.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const secret = 'sk-the-value';

function rowOf(attributes: Record<string, unknown> = {}): ChannelRow {
  const raw = { id: 'ds', models: ['m'], state: true, secret: 'env:DS', balance_below: 20, ...attributes };
  const reading = readChannel({ endpoint: 'https://api.deepseek.com/v1', ...raw }, { local: true });
  if ('problem' in reading) throw new Error(reading.problem);
  return reading.row;
}

type Answer = { status?: number; body: unknown } | Error | 'silence';

/** An upstream that answers each path as given, and every other one with 404. */
function rig(answers: Record<string, Answer>) {
  const sent: UpstreamRequest[] = [];
  const clock = new VirtualClock();
  const transport = {
    async send(request: UpstreamRequest, signal: AbortSignal) {
      sent.push(request);
      const answer = answers[new URL(request.url).pathname] ?? { status: 404, body: {} };
      if (answer === 'silence')
        return new Promise<never>((_, reject) =>
          signal.addEventListener('abort', () => reject(new TransportError('aborted', 'given up'))),
        );
      if (answer instanceof Error) throw answer;
      const { status = 200, body } = answer;
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      const pieces = Array.from({ length: Math.ceil(bytes.length / 16_384) }, (_, at) =>
        bytes.subarray(at * 16_384, (at + 1) * 16_384),
      );
      return { status, headers: {}, body: Readable.from(pieces) };
    },
  };
  const ports = { transport, clock, readSecret: async () => secret };
  const look = async (attributes: Record<string, unknown>) => {
    const [found] = await clock.run(findBalances(ports, [rowOf(attributes)]));
    return found && formatBalance(found);
  };
  return { ports, sent, look, clock };
}

const yuan = (amount: string, more: object = {}) => ({
  is_available: true,
  balance_infos: [
    { currency: 'CNY', total_balance: amount, granted_balance: '0', topped_up_balance: amount },
  ],
  ...more,
});
const deepseek = '/user/balance';
const moonshot = {
  code: 0,
  data: { available_balance: 49.58894, voucher_balance: 46.58893, cash_balance: 3.00001 },
};
const other = { endpoint: 'https://api.example.com/v1', balance_form: 'new-api' };
const limits = { body: { hard_limit_usd: 100.5 } };
const usage = { body: { object: 'list', total_usage: 2575 } };
const [subscription, used] = ['/v1/dashboard/billing/subscription', '/v1/dashboard/billing/usage'];
const token = '/api/usage/token/';

describe('an upstream balance', () => {
  it.each<[string, Record<string, unknown>, Record<string, Answer>, string]>([
    ['of DeepSeek', {}, { [deepseek]: { body: yuan('110.00') } }, '110.00 CNY'],
    [
      'of DeepSeek through its other API',
      { endpoint: 'https://api.deepseek.com/anthropic/v1' },
      { [deepseek]: { body: yuan('1.5') } },
      '1.5 CNY',
    ],
    [
      'of Moonshot',
      { endpoint: 'https://api.moonshot.ai/v1' },
      { '/v1/users/me/balance': { body: moonshot } },
      '49.58894 USD',
    ],
    [
      'of Moonshot for China',
      { endpoint: 'https://api.moonshot.cn/v1' },
      { '/v1/users/me/balance': { body: moonshot } },
      '49.58894 CNY',
    ],
    [
      'of OpenRouter, with a key that may read it',
      { endpoint: 'https://openrouter.ai/api/v1' },
      { '/api/v1/credits': { body: { data: { total_credits: 100.5, total_usage: 25.75 } } } },
      '74.75 USD',
    ],
    [
      'of OpenRouter, from the limit of a key',
      { endpoint: 'https://openrouter.ai/api/v1' },
      {
        '/api/v1/credits': { status: 403, body: {} },
        '/api/v1/key': { body: { data: { limit_remaining: 0.3 - 0.1 } } },
      },
      '0.2 USD',
    ],
    [
      'of OpenRouter, with a key without a limit',
      { endpoint: 'https://openrouter.ai/api/v1' },
      { '/api/v1/key': { body: { data: { limit_remaining: null } } } },
      'no limit',
    ],
    ['of new-api', other, { [subscription]: limits, [used]: usage }, '74.75 USD'],
    [
      'of new-api, with a key without a limit',
      other,
      { [subscription]: { body: { hard_limit_usd: 100_000_000 } }, [used]: usage },
      'no limit',
    ],
    [
      'of new-api, at its newer path',
      other,
      { [token]: { body: { data: { total_available: 987_655, unlimited_quota: false } } } },
      '987655 quota',
    ],
    [
      'of a site whose row names another site’s form',
      { ...other, balance_form: 'deepseek' },
      { [deepseek]: { body: yuan('7') } },
      '7 CNY',
    ],
  ])('%s is read from its documented answer', async (_of, attributes, answers, shown) => {
    expect(await rig(answers).look(attributes)).toBe(shown);
  });

  it.each<[string, Answer, RegExp]>([
    [
      'refuses',
      { status: 401, body: `Your key ${secret} is wrong` },
      /^no balance in the answer \(status 401\)$/,
    ],
    ['sends a page', { body: '<html>login</html>' }, /^no balance/],
    ['sends nothing', { body: '' }, /^no balance/],
    ['sends an empty list', { body: yuan('1', { balance_infos: [] }) }, /^no balance/],
    ['sends the key as an amount', { body: yuan(secret) }, /^no balance/],
    [
      'sends the key as a unit',
      { body: { balance_infos: [{ currency: secret, total_balance: '1' }] } },
      /^no balance/,
    ],
    ['sends an impossible amount', { body: yuan('1e400') }, /^no balance/],
    [
      'sends a thousand units',
      {
        body: {
          balance_infos: Array.from({ length: 1000 }, () => ({ currency: 'CNY', total_balance: '1' })),
        },
      },
      /^no balance/,
    ],
    ['sends a megabyte', { body: ' '.repeat(2 ** 20) + JSON.stringify(yuan('110.00')) }, /^no balance/],
    [
      'is missing',
      new TransportError('connect', 'No connection.', { code: 'ECONNREFUSED' }),
      /^ECONNREFUSED$/,
    ],
    ['is silent for 10 s', 'silence', /^timeout$/],
  ])('is unknown, and no text of the upstream is shown, if the answer %s', async (_how, answer, shown) => {
    const { look, clock } = rig({ [deepseek]: answer });
    const startMs = clock.now();
    expect(await look({})).toMatch(shown);
    expect(clock.now() - startMs).toBeLessThanOrEqual(10_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is requested only from the host that the secret belongs to', () => {
    const forms = ['deepseek', 'moonshot', 'openrouter', 'new-api'];
    for (const form of forms) {
      const report = findBalanceReport(rowOf({ ...other, balance_form: form }));
      const all = [...(report?.addresses ?? []), ...(report?.otherwise?.addresses ?? [])];
      expect(all.length).toBeGreaterThan(0);
      expect(new Set(all.map((url) => new URL(url).host))).toEqual(new Set(['api.example.com']));
    }
  });

  it('of an unknown form warns in the row, and nothing is requested', async () => {
    const raw = { id: 'x', endpoint: 'https://api.example.com/v1', models: ['m'], balance_below: 5 };
    expect(readChannel(raw, { local: true })).toMatchObject({
      warning: expect.stringContaining('balance_below') as string,
    });
    expect(readChannel({ ...raw, balance_form: 'their-api' }, { local: true })).toHaveProperty('problem');
    const { look, sent } = rig({});
    expect(await look({ endpoint: 'https://api.example.com/v1' })).toMatch(/no balance in a known form/);
    expect(sent).toEqual([]);
  });
});

describe('an alert', () => {
  function watchRig(rows: ChannelRow[] = [rowOf()]) {
    const answers: Record<string, Answer> = {};
    const { ports, sent } = rig(answers);
    const stores = new MemoryAlertStores();
    const notes = new Map<string, object>();
    const pass = createUpstreamWatch({
      ...ports,
      ids: { next: () => `n${stores.put.length}` },
      marks: stores,
      channels: { rows: async () => rows, mark: async (id, note) => void notes.set(id, note) },
    });
    const passWith = async (answer: Answer): Promise<number> => {
      answers[deepseek] = answer;
      await pass();
      return stores.put.length;
    };
    return { pass, passWith, stores, notes, sent };
  }

  it('is raised once per crossing; an unknown balance neither raises nor ends it', async () => {
    const { passWith, stores, notes } = watchRig();
    const told = [];
    for (const body of [
      yuan('20'),
      yuan('19.99'),
      yuan('3'),
      'junk',
      yuan('2'),
      yuan('20'),
      'junk',
      yuan('0'),
    ])
      told.push(await passWith({ body }));
    expect(told).toEqual([0, 1, 1, 1, 1, 1, 1, 2]);
    expect(stores.put[0]).toEqual({
      id: 'n0',
      type: 'upstream.balance_low',
      created: expect.any(Number) as number,
      data: { channel: 'ds', secret: 'env:DS', balance: '19.99 CNY', balance_below: 20 },
    });
    expect(notes.get('ds')).toEqual({ at: expect.any(Number) as number, low: true, text: '0 CNY (env:DS)' });
    expect(JSON.stringify([stores.put, [...notes]])).not.toContain(secret);
  });

  it('of a hundred simultaneous passes sends one notice', async () => {
    const { pass, passWith, stores } = watchRig();
    await passWith({ body: yuan('20') });
    await passWith({ body: yuan('20') });
    stores.put.length = 0;
    await Promise.all([passWith({ body: yuan('1') }), ...Array.from({ length: 99 }, pass)]);
    expect(stores.put).toHaveLength(1);
  });

  it('is raised for each secret, but not while the balance in another currency is above the threshold', async () => {
    const two = watchRig([rowOf({ secret: ['env:DS', 'env:DS_2'] })]);
    expect(await two.passWith({ body: yuan('1') })).toBe(2);
    const infos = [
      { currency: 'CNY', total_balance: '110.00' },
      { currency: 'USD', total_balance: '0.00' },
    ];
    expect(await watchRig().passWith({ body: { balance_infos: infos } })).toBe(0);
  });

  it('is never checked for a disabled channel or one without a threshold', async () => {
    const { passWith, sent } = watchRig([rowOf({ state: false }), rowOf({ balance_below: undefined })]);
    expect(await passWith({ body: yuan('1') })).toBe(0);
    expect(sent).toEqual([]);
  });
});
