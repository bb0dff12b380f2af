import { expect, it } from 'vitest';
import { findClock } from '../../../shared/billing/wall-clock.ts';

it('keeps the clocks of recent time zones when many are in use', () => {
  const zones = Intl.supportedValuesOf('timeZone').slice(0, 150);
  const clocks = zones.map(findClock);
  const recent = zones.slice(-100);
  expect(recent.filter((zone, at) => findClock(zone) !== clocks[50 + at])).toEqual([]);
  expect(findClock(zones[0] ?? '')).not.toBe(clocks[0]);
});
