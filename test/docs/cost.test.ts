/** Compares docs/cost.md with unit prices, the resources of a call, and the template. test/scripts/cost-page.ts writes its tables. */
import { describe, expect, test } from 'vitest';
import { costBlock, costBlocks, quotedFigures } from '../scripts/cost-page.ts';
import { callUnits } from '../support/call-units.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/cost.md');
const figures = quotedFigures();

describe('docs/cost.md', () => {
  test.each(Object.entries(costBlocks()))('contains the computed block %s', (name, block) => {
    expect(costBlock(name).exec(page)?.[0]).toBe(block);
  });

  test('takes the units of a lone call that the store counts', () => {
    expect(page).toContain(`row and sums take ${callUnits.loneRow.toFixed(1)} `);
  });

  test('quotes these figures in its first lines and in the README', () => {
    const dollars = (amount: number): string => `$${Math.round(amount)}`;
    const readme = readPage('README.md');
    expect(page).toContain(`| about ${dollars(figures.idle)} |`);
    expect(readme).toContain(`About ${dollars(figures.idle)} a month when idle`);
    expect(page).toContain(
      `| ${dollars(figures.million)} more, or ${dollars(figures.millionSmall)} with 128 MB |`,
    );
    expect(readme).toContain(`answers cost about ${dollars(figures.million)} on AWS`);
    expect(page).toContain(`**a quarter from ${figures.quarterFromMillions} million on**`);
  });
});
