/** The tasks of docs/daily-tasks.md, as they are, in their order, on the running stack. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { happenings, outcomes } from './happenings.ts';
import { patternOf, readTasks, type Step } from './page.ts';
import { DailyRelay, filledIn, type Done } from './relay.ts';

const tasks = readTasks();

let relay: DailyRelay;
beforeAll(async () => {
  relay = await DailyRelay.start();
});
afterAll(() => relay?.stop());

/** Runs the commands of a step until one fails, and returns what was seen of all. */
async function run({ commands }: Step): Promise<Done> {
  let screen = '';
  for (const command of commands) {
    const done = await relay.shell(command);
    screen += done.screen;
    if (done.code !== 0 && command !== commands.at(-1)) throw new Error(`${command} failed: ${done.screen}`);
    if (command === commands.at(-1)) return { code: done.code, screen };
  }
  throw new Error('a step has no command');
}

describe('the page', () => {
  it('counts the commands of each task as they are, and says what is seen after each', () => {
    const commands = tasks.map(({ heading, steps }) => [
      heading,
      steps.flatMap((step) => step.commands).length,
    ]);
    expect(commands).toEqual(tasks.map(({ heading, counted }) => [heading, counted]));
    expect(tasks.flatMap(({ steps }) => steps.filter(({ seen }) => seen.length === 0))).toEqual([]);
  });

  it('begins five tasks and more with wrong or incomplete data', () => {
    expect(tasks.length).toBeGreaterThanOrEqual(20);
    expect(tasks.filter(({ wrongStart }) => wrongStart !== '-').length).toBeGreaterThanOrEqual(5);
  });

  it('has every task for which something happens', () => {
    const headings = tasks.map(({ heading }) => heading);
    for (const heading of [...Object.keys(happenings), ...Object.keys(outcomes)])
      expect(headings).toContain(heading);
  });
});

// Each begins with what the one before it left.
describe('an operator does', () => {
  it.each(tasks)('$heading', async ({ heading, steps }) => {
    await happenings[heading]?.(relay);
    for (const step of steps) {
      const { code, screen } = await run(step);
      expect(screen).toMatch(patternOf(step.seen.map((line) => filledIn(line, relay.named))));
      expect(screen).not.toContain('vendor-secret');
      expect(code).toBe(step.code);
    }
    await outcomes[heading]?.(relay);
  });
});
