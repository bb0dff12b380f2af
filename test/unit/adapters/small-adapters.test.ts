import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/adapters/system/node-ports.ts';
import { keyHash } from '../../../shared/wire/ids.ts';

describe('the system clock', () => {
  test('sleeps, and wakes at once when the signal aborts or is already aborted', async () => {
    await systemClock.sleep(1);
    const stop = new AbortController();
    const asleep = systemClock.sleep(3_600_000, stop.signal);
    stop.abort(new Error('a reason that must not surface'));
    await expect(asleep).resolves.toBeUndefined();
    await expect(systemClock.sleep(3_600_000, stop.signal)).resolves.toBeUndefined();
  });
});

test('a key is hashed as operators would hash it with sha256sum', () => {
  expect(keyHash('sk-test')).toBe('f3abf2a6cc4f00987743db5f544ba345b4899ae31f326d8ee9c4816de153c9e0');
});
