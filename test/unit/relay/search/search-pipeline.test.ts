import { describe, expect, it } from 'vitest';
import { searchTokensMax } from '../../../../shared/relay/money/call-costs.ts';
import { BillingRig, small, smallNeed, yuan } from '../../../support/billing-rig.ts';
import { CoreRig, delta, hang, hello, type RigOptions } from '../../../support/core-rig.ts';

const ask = { model: 'web-m', messages: [{ role: 'user', content: 'what happened today?' }] };
const search = { type: 'searxng', endpoint: 'https://search.test', results: 5, price: 0 } as const;
const results = [{ title: 'News', url: 'https://news.test/1', text: 'It rained.', date: '2026-11-21' }];
const rigWith = (options: RigOptions): CoreRig =>
  new CoreRig({ settings: { search }, ...options }).upstream({ steps: hello });

it('a search is reserved only if the model name requests one', async () => {
  const reserved = async (model: string): Promise<bigint | undefined> => {
    const rig = new BillingRig({ settings: { search } }).granted(10n * yuan);
    rig.upstream({ steps: [delta('a'), hang] });
    const response = await rig.clock.run(rig.respond({ ...small, model, stream: true }));
    const amount = rig.open[0]?.amount;
    await rig.clock.run(response.done);
    return amount;
  };
  expect(await reserved('m')).toBe(smallNeed);
  expect(await reserved('web-m')).toBe(smallNeed + BigInt(searchTokensMax) * 1_000_000n);
});

describe('a web- call', () => {
  it('puts the results first, as a system message, and calls the base model', async () => {
    const rig = rigWith({ search: () => Promise.resolve(results) });
    const answer = await rig.post(ask);
    expect(answer.status).toBe(200);
    expect(rig.searched).toEqual(['what happened today?']);
    const sent = rig.sent[0]?.json as { model: string; messages: { role: string; content: string }[] };
    expect(sent.model).toBe('m');
    expect(sent.messages).toHaveLength(2);
    expect(sent.messages[0]?.role).toBe('system');
    for (const part of ['News', 'https://news.test/1', 'It rained.', '2026-11-21'])
      expect(sent.messages[0]?.content).toContain(part);
    expect(rig.logged[0]).toMatchObject({ search: 'found', model: 'm' });
  });
});
