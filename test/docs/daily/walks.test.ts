/** Runs the walks of docs/daily-tasks.md through the console unchanged and in order, on the running stack. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { happenings, beforeWalks, afterWalks } from './happenings.ts';
import { readTasks } from './page.ts';
import { DailyRelay } from './relay.ts';
import { makesImages, Walker } from './walker.ts';

let relay: DailyRelay;
let walker: Walker;
beforeAll(async () => {
  // Pictures show the default address.
  relay = await DailyRelay.start(makesImages ? 8787 : 0);
  walker = await Walker.start(relay);
});
afterAll(async () => {
  await walker?.stop();
  await relay?.stop();
});

// Each walk starts from the state that the previous one left.
describe('an operator uses the console', () => {
  it.each(readTasks())('$heading', async ({ heading, walk }) => {
    await happenings[heading]?.(relay);
    await beforeWalks[heading]?.(relay);
    for (const step of walk) await walker.take(step);
    await afterWalks[heading]?.(relay);
    expect(relay.faults).toEqual([]);
    // Answers to rejected forms and failed plans.
    expect(walker.complaints.filter((each) => !/status of 4\d\d/.test(each))).toEqual([]);
  });
});
