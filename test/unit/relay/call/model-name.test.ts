import { describe, expect, it } from 'vitest';
import { parseModelName } from '../../../../shared/relay/call/access.ts';
import { BillingRig, byTokens, small, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

const baseOf = (requested: string): string | undefined => parseModelName(requested, false)?.base;

describe('a requested model', () => {
  it.each([
    ['web-m', 'm'],
    ['m-official', 'm'],
    ['web-m-official', 'm'],
    ['web-web-m', 'web-m'],
    ['m-official-official', 'm-official'],
    ['official-web-m', 'official-web-m'],
    ['WEB-m', 'WEB-m'],
    ['m-Official', 'm-Official'],
  ])('%s means %s: at most one prefix and one suffix are removed', (requested, base) => {
    expect(baseOf(requested)).toBe(base);
  });

  it.each([
    ['a trailing blank', 'm '],
    ['a zero-width space in it', 'm\u200b'],
    ['a letter that looks like another', '\u043c'],
    ['a trailing line feed', 'm\n'],
    ['nothing between its modifiers', 'web--official'],
    ['too many characters', 'm'.repeat(129)],
  ])('with %s is rejected', async (_case, requested) => {
    expect(baseOf(requested)).toBeUndefined();
    const { status, text } = await new BillingRig().call({ ...small, model: requested });
    expect([status, text]).toEqual([400, expect.stringContaining('model must be 1 to 128')]);
  });

  const prefixes = ['', 'web-', 'web-web-', 'Web-', 'official-'];
  const suffixes = ['', '-official', '-official-official', '-OFFICIAL', '-web'];
  const names = prefixes.flatMap((prefix) =>
    ['m', 'dear'].flatMap((name) => suffixes.map((suffix) => prefix + name + suffix)),
  );
  it.each([true, false])(
    'never escapes a whitelist or its price by a prefix or suffix (official: %s)',
    async (official) => {
      for (const model of names) {
        const rig = new BillingRig({
          key: { models: ['m'], official: true },
          channels: [{ models: ['m', 'dear', 'web-m', 'm-official'] }],
          charges: [byTokens, { id: 9, type: 'times-billing', models: ['dear', 'web-m'], output: 9 }],
        });
        rig.granted(100n * yuan).upstream({ steps: hello });
        const { status } = await rig.call({ ...small, model, official });
        expect([status, rig.sent.map(({ json }) => json['model'])]).toEqual(
          /^(web-)?m(-official)?$/.test(model) ? [200, ['m']] : [403, []],
        );
        const charge = official || model.endsWith('-official') ? 0n : 11_000_000n;
        if (status === 200) expect(rig.item?.last?.charge).toBe(charge);
      }
    },
  );
});
