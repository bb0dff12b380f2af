import { expect, it } from 'vitest';
import { searchTokensMax } from '../../../../shared/relay/money/bill.ts';
import { BillingRig, small, smallNeed, yuan } from '../../../support/billing-rig.ts';
import { delta, hang } from '../../../support/core-rig.ts';

const search = { type: 'searxng', endpoint: 'https://search.test', results: 5 } as const;

it('reserves for a search only where the model name asks for one', async () => {
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
