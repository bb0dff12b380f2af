import { describe, expect, it } from 'vitest';
import { ask, BillingRig, free, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { demoKey, hello } from '../../../support/core-rig.ts';

const search = { type: 'tavily', endpoint: 'https://search.test', results: 5, price: 0.08 } as const;

const rigOf = (options: BillingOptions = {}): BillingRig =>
  new BillingRig({ search: () => Promise.resolve([]), ...options, settings: { search } }).upstream({
    steps: hello,
  });

describe('the relay neither runs nor reserves a search for', () => {
  it.each<[string, string, object]>([
    ['embeddings', '/v1/embeddings', { input: 'hi' }],
    ['a compaction', '/v1/responses/compact', { input: 'hi' }],
    [
      'a compaction in a response',
      '/v1/responses',
      { input: [{ role: 'user', content: 'hi' }, { type: 'compaction_trigger' }] },
    ],
  ])('%s and rejects the call', async (_what, path, body) => {
    const rig = rigOf().granted(10n * yuan);
    const answer = await rig.call({ model: 'web-m', ...body }, { path });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'invalid_value', param: 'model' } });
    expect({ searched: rig.searched, sent: rig.sent, open: rig.open }).toEqual({
      searched: [],
      sent: [],
      open: [],
    });
  });

  it('a token count, which needs no balance for it', async () => {
    const rig = rigOf({ charges: [free], channels: [{ dialect: 'messages' }] });
    const answer = await rig.call(
      { model: 'web-m', messages: ask.messages },
      {
        path: '/v1/messages/count_tokens',
        headers: { 'x-api-key': demoKey },
      },
    );
    expect(answer.status).toBe(200);
    expect(rig.searched).toEqual([]);
  });
});
