/** The walks of docs/daily-tasks.md through the console, as they are, in their order, on the running stack. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { happenings, beforeWalks, afterWalks } from './happenings.ts';
import { readTasks } from './page.ts';
import { DailyRelay } from './relay.ts';
import { makesImages, Walker } from './walker.ts';

let relay: DailyRelay;
let walker: Walker;
beforeAll(async () => {
  // Pictures show the address that everybody has.
  relay = await DailyRelay.start(makesImages ? 8787 : 0);
  walker = await Walker.start(relay);
});
afterAll(async () => {
  await walker?.stop();
  await relay?.stop();
});

// Each begins with what the one before it left.
describe('an operator walks', () => {
  it.each(readTasks())('$heading', async ({ heading, walk }) => {
    await happenings[heading]?.(relay);
    await beforeWalks[heading]?.(relay);
    for (const step of walk) await walker.take(step);
    await afterWalks[heading]?.(relay);
    expect(relay.faults).toEqual([]);
    // Answers to forms that were refused, and to plans that failed.
    expect(walker.complaints.filter((each) => !/status of 4\d\d/.test(each))).toEqual([]);
  });
});
