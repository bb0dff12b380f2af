/** Runs the tasks of docs/daily-tasks.md unchanged and in order, on the running stack. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { happenings, outcomes } from './happenings.ts';
import { patternOf, readTasks } from './page.ts';
import { DailyRelay, filledIn } from './relay.ts';

const tasks = readTasks();

let relay: DailyRelay;
beforeAll(async () => {
  relay = await DailyRelay.start();
});
afterAll(() => relay?.stop());

it('every task with a prepared event is on the page', () => {
  const headings = tasks.map(({ heading }) => heading);
  expect(headings).toEqual(expect.arrayContaining(Object.keys({ ...happenings, ...outcomes })));
});

it('every task has commands, and a walk through the console', () => {
  const lacking = tasks.filter(({ steps, walk }) => steps.length === 0 || walk.length === 0);
  expect(lacking.map(({ heading }) => heading)).toEqual([]);
});

// Each task starts from the state that the previous one left.
describe('an operator does', () => {
  it.each(tasks)('$heading', async ({ heading, steps }) => {
    await happenings[heading]?.(relay);
    for (const { commands, seen, code: wanted } of steps) {
      const runs = [];
      for (const command of commands) runs.push(await relay.shell(command));
      const screen = runs.map((run) => run.screen).join('');
      expect(screen).toMatch(patternOf(seen.map((line) => filledIn(line, relay.named))));
      expect(screen).not.toContain('vendor-secret');
      expect(runs.map(({ code }) => code)).toEqual([...runs.slice(1).map(() => 0), wanted]);
    }
    await outcomes[heading]?.(relay);
  });
});
