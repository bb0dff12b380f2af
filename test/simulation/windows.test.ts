import { expect, it } from 'vitest';
import { runWindows } from './windows.ts';

const seeds = Number(process.env['RELAY_WINDOW_SEEDS'] ?? 1);

it('calls in background windows are charged once, as the oracle computes, despite crashes and lost replies', async () => {
  for (let seed = 1; seed <= seeds; seed += 1) {
    const ran = await runWindows(seed, 40);
    expect({ seed, ...ran }).toMatchObject({ seed, wrong: [], difference: 0n, open: 0, waiting: 0 });
    const { deaths, faults, closes } = ran;
    if (process.env['RELAY_WINDOW_SEEDS'] !== undefined)
      console.log(JSON.stringify({ seed, deaths, faults, closes }));
    expect([deaths, faults, closes['settled'], closes['expired'], closes['released']].every(Boolean)).toBe(
      true,
    );
  }
});
