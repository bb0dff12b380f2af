import { expect, it } from 'vitest';
import {
  beginMs,
  SimulatedChannels,
  simulatedModels,
  type Incident,
} from '../simulation/simulated-channels.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

it.each([1, 2, 3])(
  'a month of six channels with patterns of the week (seed %i) has less than one false mark a week',
  { timeout: 600_000 },
  (seed) => {
    const found = new SimulatedChannels(seed).run(37);
    console.log(`seed ${seed}:`, found);
    // The first week has no earlier week to compare with.
    expect(found.length).toBeLessThan(30 / 7);
  },
);

it(
  'a busy channel that slows down tenfold gets a mark within ten minutes, at any hour of the week',
  { timeout: 600_000 },
  () => {
    const busy = [
      ...new Set(simulatedModels.filter(({ calls }) => calls >= 8).map(({ channel }) => channel)),
    ];
    const incidents = Array.from({ length: 60 }, (_, at): Incident => {
      const fromMs = beginMs + 7 * dayMs + at * 437 * minuteMs;
      return { channel: busy[at % busy.length] ?? '', fromMs, minutes: 30, slowdown: 10 };
    });
    const found = new SimulatedChannels(4, incidents).run(27);
    const isQuiet = (ms: number): boolean =>
      new Date(ms).getUTCHours() < 6 || new Date(ms).getUTCHours() > 18;
    const late = incidents.filter(
      ({ channel, fromMs }) =>
        !isQuiet(fromMs) &&
        !found.some(
          (each) =>
            each.mark === 'slower' &&
            each.channel === channel &&
            Math.floor(each.atMs / dayMs) === Math.floor(fromMs / dayMs) &&
            each.atMs <= fromMs + 10 * minuteMs,
        ),
    );
    expect(late.map(({ channel, fromMs }) => [channel, new Date(fromMs).toISOString()])).toEqual([]);
  },
);
