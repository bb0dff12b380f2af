import { expect, it } from 'vitest';
import { runEdited } from './price-edits.ts';

it('background responses are charged the agreed price despite any edits, crashes and lost replies', async () => {
  const ran = await runEdited(1, 150);
  expect(ran).toMatchObject({ wrong: [], difference: 0n, open: 0 });
  const { edits, deaths, faults, closes } = ran;
  expect([edits, deaths, faults, closes['settled'], closes['expired']].every(Boolean)).toBe(true);
});
