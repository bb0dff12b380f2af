/** Reservations for calls whose bytes hide their cost. */
import { describe, expect, it } from 'vitest';
import { ask, BillingRig, byTokens, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';
import { dataUrl, packed, pdfOf, savedAgain } from '../../../support/pdf-files.ts';

/** Yuan per 1,000 tokens. */
const charges = [{ ...byTokens, input: 0.018, output: 0.072 }];
const asking = (...parts: object[]) => ({
  ...ask,
  max_tokens: 100,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Sum it up.' }, ...parts] }],
});
const file = (bytes: string) => ({ type: 'file', file: { filename: 'a.pdf', file_data: dataUrl(bytes) } });
const statusWith = async (granted: bigint, body: object): Promise<number> => {
  const rig = new BillingRig({ charges }).upstream({ steps: hello }).granted(granted);
  const { status } = await rig.call(body);
  expect(rig.sent.length).toBe(status === 200 ? 1 : 0);
  return status;
};

describe('a file', () => {
  it('of 600 pages in a few KB costs more than one yuan', async () => {
    expect(savedAgain(600).length).toBeLessThan(20_000);
    expect(await statusWith(yuan, asking(file(savedAgain(600))))).toBe(429);
    // The window of the largest models: no vendor charges for more.
    expect(await statusWith(20n * yuan, asking(file(savedAgain(600))))).toBe(200);
  });

  it('is inflated up to one limit per call, however many files there are', async () => {
    const drawn = (lines: number): string =>
      pdfOf({
        1: '<< /Type /Catalog /Pages 2 0 R >>',
        2: '<< /Type /Pages /Kids [3 0 R] >>',
        3: '<< /Type /Page /Contents 4 0 R >>',
        4: packed('', '0 0 m\n'.repeat(lines)),
      });
    const [first, second, third] = [300_000, 300_001, 300_002].map((lines) => file(drawn(lines)));
    expect(await statusWith(yuan, asking(first!, second!))).toBe(200);
    expect(await statusWith(yuan, asking(first!, second!, third!))).toBe(429);
  });
});
