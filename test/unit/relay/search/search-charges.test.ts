import { describe, expect, it } from 'vitest';
import type { Settings } from '../../../../shared/config/settings.ts';
import { SearchRefused } from '../../../../shared/relay/ports/host.ts';
import { aliasRig, best } from '../../../support/alias-rig.ts';
import {
  ask,
  BillingRig,
  byCall,
  byTokens,
  free,
  small,
  smallNeed,
  yuan,
  type BillingOptions,
} from '../../../support/billing-rig.ts';
import { delta, demoKey, done, finish, hang, hello, type Answer } from '../../../support/core-rig.ts';

const searching = { type: 'tavily', endpoint: 'https://search.test', results: 5 } as const;
const priced = { ...searching, price: 0.08, cost: 0.057 };
const price = 80_000_000n;
/** The cost of `hello`: 7 tokens in, 2 out. */
const helloCost = 11_000_000n;
const web = { ...small, model: 'web-m' };
const refused = { status: 400, steps: ['{"error":{"message":"no","code":"invalid_value"}}'] };
const plan = [{ id: 'chat', value: 5, models: ['m'] }];

interface RigOf extends BillingOptions {
  provider?: Settings['search'];
}

const rigOf = ({ provider = priced, settings, ...options }: RigOf = {}): BillingRig =>
  new BillingRig({
    search: () => Promise.resolve([]),
    ...options,
    settings: { search: provider, ...settings },
  }).upstream({ steps: hello });

const codeOf = ({ text }: Answer): unknown => (JSON.parse(text) as { error?: { code: string } }).error?.code;

async function times(count: number, work: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let time = 0; time < count; time += 1) answers.push(await work());
  return answers;
}

describe('a search with a price', () => {
  it('is rejected without a balance, even with a free model, before the search', async () => {
    const rig = rigOf({ charges: [free] });
    const answers = await times(10, () => rig.call(web));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(429));
    expect(codeOf(answers[0]!)).toBe('insufficient_quota');
    expect({ searched: rig.searched, sent: rig.sent }).toEqual({ searched: [], sent: [] });
  });

  it('is charged for each of ten calls that the vendor rejects with 400', async () => {
    const rig = rigOf()
      .granted(10n * yuan)
      .upstream(refused);
    const answers = await times(10, () => rig.call(web));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(400));
    expect(rig.searched).toHaveLength(10);
    expect(rig.item).toMatchObject({ spent: 10n * price, settled: 10 });
    expect(rig.item?.last).toMatchObject({
      kind: 'released',
      charge: price,
      search_price: price,
      search_bought: 57_000_000n,
    });
    expect(rig.logged.at(-1)).toMatchObject({ search: 'empty', charge: '0.08' });
  });

  it.each<[string, RigOf, { charge: bigint; held: bigint }]>([
    ['tokens', { charges: [byTokens] }, { charge: helloCost, held: smallNeed + 4_000_000_000n }],
    ['a price per call', { charges: [byCall] }, { charge: 500_000_000n, held: 500_000_000n }],
    ['nothing', { charges: [free] }, { charge: 0n, held: 0n }],
    ['nothing, if free calls are not counted', uncounted(), { charge: 0n, held: 0n }],
    ['a plan slot', { plan }, { charge: 0n, held: 0n }],
  ])('is reserved and charged in addition to %s', async (_what, options, { charge, held }) => {
    const rig = rigOf(options).granted(10n * yuan);
    rig.upstream({ steps: [delta('a'), hang] });
    const response = await rig.clock.run(rig.respond({ ...web, stream: true }));
    expect(rig.open.map(({ amount }) => amount)).toEqual([held + price]);
    await rig.clock.run(response.done);
    const before = rig.item?.spent ?? 0n;
    rig.upstream({ steps: hello });
    await rig.call(web);
    expect((rig.item?.spent ?? 0n) - before).toBe(charge + price);
    expect([...(rig.item?.plan.values() ?? [])]).toEqual(options.plan ? [2] : []);
  });

  it('is not covered by a plan: without a balance the call is rejected', async () => {
    const rig = rigOf({ plan });
    expect(codeOf(await rig.call(web))).toBe('insufficient_quota');
    expect((await rig.call(small)).status).toBe(200);
    expect(rig.searched).toEqual([]);
  });

  it('reduces the output limit that the balance pays for', async () => {
    const rig = rigOf().granted(20n * yuan);
    await rig.call({ ...web, max_tokens: 10_000 });
    // Half of the balance, less 22 tokens of the question, 4,000 of the results, and the search.
    expect(rig.sent[0]?.json).toMatchObject({ max_tokens: (10_000 - 22 - 4_000 - 80) / 2 });
  });

  it('adds what it found to the input of an answer without usage', async () => {
    const found = { title: 'T', url: 'https://a.test', text: 'the cat sat on the mat '.repeat(20) };
    const rig = rigOf({ search: async () => [found] }).granted(10n * yuan);
    rig.upstream({ steps: [delta('a'), finish(), done] });
    const inputs = [];
    for (const body of [small, web]) {
      await rig.call(body);
      inputs.push(rig.item?.last?.prompt_tokens ?? 0);
    }
    expect(inputs).toEqual([5, expect.toSatisfy((count: number) => count > 100)]);
  });

  it('counts towards a key’s budget', async () => {
    const key = { budget: { amount: 0.2, period: 'day' } };
    const rig = rigOf({ key, charges: [free] }).granted(10n * yuan);
    const answers = await times(3, () => rig.call(web));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(rig.searched).toHaveLength(2);
  });

  it('is not charged to an official call, but included in its quota and cost', async () => {
    const rig = rigOf({ key: { official: true } });
    const { text } = await rig.call({ ...web, official: true });
    expect(JSON.parse(text)).toMatchObject({ quota: 0.091 });
    expect(rig.item?.last).toMatchObject({ charge: 0n, cost: helloCost + price, search_price: price });
  });

  it('is charged to a metered account without touching its balance', async () => {
    const account = { account: 'acme', metered: true };
    const row = { hash: 'a'.repeat(64), account: 'acme', agent: 'api', official: false, enabled: true };
    const rig = rigOf({ charges: [free], keys: { [demoKey]: { row, account } as never } });
    expect((await rig.call(web)).status).toBe(200);
    const items = [...rig.quotas.items.values()];
    expect(items.map(({ spent, metered, available }) => [spent, metered, available])).toContainEqual([
      price,
      price,
      0n,
    ]);
  });

  it.each<[string, RigOf, Partial<typeof ask>]>([
    [
      'the provider is unreachable or rejects it',
      { search: () => Promise.reject(new SearchRefused('503')) },
      {},
    ],
    ['the message has no text', {}, { messages: [{ role: 'user', content: '' }] }],
  ])('is not charged when %s', async (_why, options, more) => {
    const rig = rigOf({ charges: [free], ...options }).granted(yuan);
    expect((await rig.call({ ...web, ...more })).status).toBe(200);
    expect(rig.item).toMatchObject({ spent: 0n, available: yuan });
    expect(rig.item?.last).not.toHaveProperty('search_price');
  });

  it.each<[string, RigOf]>([
    ['breaks off', { search: () => Promise.reject(new Error('reset')) }],
    ['does not answer in time', { search: () => new Promise(() => {}) }],
  ])('is charged when the provider %s', async (_why, options) => {
    const rig = rigOf({ charges: [free], ...options }).granted(yuan);
    expect((await rig.call(web)).status).toBe(200);
    expect(rig.item).toMatchObject({ spent: price, available: yuan - price });
  });

  it('is sent once per call, even after a failover', async () => {
    const channels = [{ id: 'a', priority: 2 }, { id: 'b' }];
    const rig = rigOf({ channels })
      .granted(10n * yuan)
      .upstream({ status: 500 }, { steps: hello });
    expect((await rig.call(web)).status).toBe(200);
    expect(rig.sent).toHaveLength(2);
    expect(rig.searched).toHaveLength(1);
    expect(rig.item?.spent).toBe(helloCost + price);
  });

  it('is not repeated for a repeat of its call', async () => {
    const rig = rigOf({ key: { store: true } }).granted(10n * yuan);
    const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'k' };
    const answers = await times(2, () => rig.call(web, { headers }));
    expect(answers[1]?.text).toBe(answers[0]?.text);
    expect(rig.searched).toHaveLength(1);
    expect(rig.item?.spent).toBe(helloCost + price);
  });

  it('is sent by the run of a background response, at the price of its acceptance', async () => {
    const background = { model: 'web-m', input: 'hi', max_output_tokens: 78, background: true };
    const rig = rigOf({ key: { store: true } }).granted(10n * yuan);
    await rig.call(background, { path: '/v1/responses' });
    expect(rig.searched).toEqual([]);
    await rig.clock.run(rig.runs());
    expect(rig.searched).toEqual(['hi']);
    expect(rig.item).toMatchObject({ spent: helloCost + price, settled: 1 });
  });

  it('for an alias is charged in addition to the model that answers', async () => {
    const settings = { search: priced };
    const rig = aliasRig({ settings, search: () => Promise.resolve([]) }).granted(100n * yuan);
    rig.upstream({ steps: hello });
    expect((await rig.call({ ...web, model: 'web-best' })).status).toBe(200);
    expect(rig.item?.spent).toBe(helloCost + price);
  });
});

describe('a search without a price', () => {
  const provider = searching;

  it('is free for calls that pay for their model', async () => {
    const rig = rigOf({ provider }).granted(10n * yuan);
    expect((await rig.call(web)).status).toBe(200);
    expect(rig.item).toMatchObject({ spent: helloCost, last: { search_price: 0n, search_bought: 0n } });
    const planned = rigOf({ provider, plan });
    expect((await planned.call(web)).status).toBe(200);
  });

  it('is rejected for a free model, whatever the balance, before the search', async () => {
    const rig = rigOf({ provider, charges: [free] }).granted(10n * yuan);
    const answers = await times(10, () => rig.call(web));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(403));
    expect(codeOf(answers[0]!)).toBe('model_not_allowed');
    expect({ searched: rig.searched, sent: rig.sent }).toEqual({ searched: [], sent: [] });
    expect((await rig.call(small)).status).toBe(200);
  });

  it('is rejected for an alias that a free model may answer', async () => {
    const search = (): Promise<[]> => Promise.resolve([]);
    const rig = aliasRig({ aliases: best('gift', 'large'), settings: { search: provider }, search });
    const answer = await rig.granted(100n * yuan).call({ ...web, model: 'web-best' });
    expect(codeOf(answer)).toBe('model_not_allowed');
    expect(rig.searched).toEqual([]);
  });

  it.each<[string, Settings['search'], number]>([
    ['30 times', provider, 30],
    ['as often as the operator allows', { ...provider, perMinute: 2 }, 2],
    ['30 times if its price is 0, even with a free model', { ...provider, price: 0 }, 30],
  ])('is allowed %s a minute per key', async (_how, setting, most) => {
    const charges = setting?.price === 0 ? [free] : [byTokens];
    const rig = rigOf({ provider: setting, charges }).granted(1000n * yuan);
    const answers = await times(most + 1, () => rig.call(web));
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(most).fill(200), 429]);
    const last = answers.at(-1)!;
    expect(codeOf(last)).toBe('rate_limit_exceeded');
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0);
    expect(rig.searched).toHaveLength(most);
    expect((await rig.call(small)).status).toBe(200);
  });
});

function uncounted(): RigOf {
  const limits = { defaultOutputTokens: 16_384, requestSeconds: 600, stateDays: 30, countFree: false };
  return { charges: [free], settings: { limits } };
}
