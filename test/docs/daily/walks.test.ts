/** The walks of docs/daily-tasks.md through the console, as they are, in their order, on the running stack. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../pages.ts';
import { beforeWalks, afterWalks } from './walk-happenings.ts';
import { happenings } from './happenings.ts';
import { readTasks } from './page.ts';
import { DailyRelay } from './relay.ts';
import { makesImages, Walker } from './walker.ts';
import { walkOf } from './walk.ts';

const imageBytesMax = 120_000;
const tasks = readTasks();
const walked = tasks.flatMap(({ heading, steps, walk }) =>
  walk === undefined ? [] : [{ heading, steps, walk }],
);

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

describe('the page', () => {
  it('counts the steps of each walk as they are, and says of each other task that it has none', () => {
    const steps = tasks.map(({ heading, walk }) => [heading, walk?.steps.length]);
    expect(steps).toEqual(tasks.map(({ heading, countedSteps }) => [heading, countedSteps]));
    expect(walked.length).toBeGreaterThanOrEqual(12);
    expect(walked.filter(({ walk }) => !walk.steps.some(({ says }) => says.length > 0))).toEqual([]);
  });

  it.each([
    '1. Click **Go on**.',
    '1. Press Go on.',
    '1. Type 50 into **Amount**.',
    '1. Press **Go on**. The page says Done.',
    '2. Press **Go on**.',
    'Then press **Go on**.',
  ])('may not say: %s', (line) => {
    expect(() => walkOf(`A task\n\nIn the console:\n\n${line}\n`)).toThrow(
      line.replace(/^1\. | The page.*/g, '').slice(0, 10),
    );
  });
});

// Each begins with what the one before it left.
describe('an operator walks', () => {
  it.each(walked)('$heading', async ({ heading, steps, walk }) => {
    await happenings[heading]?.(relay);
    if (walk.isAfterCommands)
      for (const command of steps.flatMap(({ commands }) => commands)) await relay.shell(command);
    await beforeWalks[heading]?.(relay);
    for (const step of walk.steps) await walker.take(step);
    await afterWalks[heading]?.(relay);
    expect(relay.faults).toEqual([]);
    // Answers to forms that were refused, and to plans that failed.
    expect(walker.complaints.filter((each) => !/status of 4\d\d/.test(each))).toEqual([]);
  });
});

// After the walks, which make them.
describe('the page', () => {
  it('shows pictures that are small', () => {
    const images = walked.flatMap(({ walk }) => walk.steps.flatMap(({ image }) => image ?? []));
    const sizes = images.map((image) => statSync(path.join(root, 'docs', image)).size);
    expect(images.length).toBeGreaterThanOrEqual(6);
    expect(Math.max(...sizes)).toBeLessThan(imageBytesMax);
  });
});
