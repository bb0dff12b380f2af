import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseModelName } from '../../../../shared/relay/call/model-name.ts';
import { BillingRig, byTokens, small, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

const baseOf = (requested: string): string => parseModelName(requested, false).base;

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
  ])('%s is %s with at most one prefix and one suffix', (requested, base) => {
    expect(baseOf(requested)).toBe(base);
  });

  it.each([
    ['a blank behind it', 'm '],
    ['a zero-width space in it', 'm\u200b'],
    ['a letter that looks like another', '\u043c'],
    ['a line feed behind it', 'm\n'],
    ['nothing between its modifiers', 'web--official'],
    ['too many characters', 'm'.repeat(129)],
  ])('with %s is refused', (_case, requested) => {
    expect(() => baseOf(requested)).toThrow(/model must be 1 to 128/);
  });

  it('never reaches beyond a whitelist, nor another price, by what stands around its name', async () => {
    const affix = fc.constantFrom('web-', '-official', 'official-', '-web', 'Web-', '-OFFICIAL', '');
    const names = fc.tuple(affix, affix, fc.constantFrom('m', 'dear'), affix, affix);
    await fc.assert(
      fc.asyncProperty(names, fc.boolean(), async (parts, official) => {
        const rig = new BillingRig({
          key: { models: ['m'], official: true },
          channels: [{ models: ['m', 'dear', 'web-m', 'm-official'] }],
          charges: [byTokens, { id: 9, type: 'times-billing', models: ['dear', 'web-m'], output: 9 }],
        });
        rig.granted(100n * yuan).upstream({ steps: hello });
        const model = parts.join('');
        const { status } = await rig.call({ ...small, model, official });
        const served = rig.sent.map(({ json }) => json['model']);
        expect(served).toEqual(status === 200 ? ['m'] : []);
        if (status !== 200) return;
        const isFree = official || model.endsWith('-official');
        expect(rig.item?.last?.charge).toBe(isFree ? 0n : 11_000_000n);
      }),
      { numRuns: 60 },
    );
  });
});
