import { describe, expect, it } from 'vitest';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { frames, hello } from '../../../support/core-rig.ts';

const official = { ...small, official: true };
const rigOf = (options: ConstructorParameters<typeof BillingRig>[0] = {}): BillingRig =>
  new BillingRig({ key: { official: true }, ...options }).upstream({ steps: hello });
const chunksOf = (text: string) =>
  frames(text).slice(0, -1) as { quota?: number | null; usage?: object | null }[];

describe('official mode', () => {
  it('shows on a JSON answer what the call would have cost, in yuan', async () => {
    const answer = await rigOf().call(official);
    expect(JSON.parse(answer.text)).toMatchObject({ model: 'm', quota: 0.011, usage: { total_tokens: 9 } });
  });

  it('shows the cost on the finish chunk of a stream, and null before', async () => {
    const answer = await rigOf().call({ ...official, stream: true });
    expect(chunksOf(answer.text).map((chunk) => [chunk.quota, chunk.usage === null])).toEqual([
      [null, true],
      [null, true],
      [0.011, false],
    ]);
  });

  it.each([
    ['by the field', official],
    ['by the suffix', { ...small, model: 'm-official' }],
  ])(
    'requested %s needs no balance, charges nothing, and is recorded in the account item',
    async (_case, body) => {
      const rig = rigOf();
      const answer = await rig.call(body);
      expect(answer.status).toBe(200);
      expect(rig.item).toMatchObject({ available: 0n, spent: 0n, settled: 1 });
      expect(rig.item?.last).toMatchObject({
        kind: 'settled',
        charge: 0n,
        cost: 11_000_000n,
        prompt_tokens: 7,
      });
      expect(rig.store.sent).toEqual(['reserve', 'create', 'reserve', 'close']);
    },
  );

  it('has an open entry without a charge while the call runs', async () => {
    const rig = rigOf().granted(yuan);
    rig.store.always('dropped', 'close');
    await rig.call(official);
    expect(rig.open).toMatchObject([{ official: true, amount: 0n, input: 0n, slot: '' }]);
    expect(rig.item?.available).toBe(yuan);
  });

  it('uses no plan slot', async () => {
    const rig = rigOf({ plan: [{ id: 'a', value: 5, models: ['m'] }] }).granted(0n);
    await rig.call(official);
    expect([...(rig.item?.plan ?? [])]).toEqual([]);
  });
});
