import { describe, expect, test } from 'vitest';
import { ExpiringCache } from '../../../../shared/adapters/system/node-ports.ts';
import { steeredClock } from '../steered-clock.ts';

function countedCache(entriesMax: number) {
  const clock = steeredClock();
  const cache = new ExpiringCache<string>({ clock, entriesMax, lifetimeMs: () => 1000 });
  const loads: string[] = [];
  const get = (key: string) =>
    cache.get(key, async () => {
      loads.push(key);
      return `value of ${key}`;
    });
  return { cache, clock, loads, get };
}

describe('the expiring cache', () => {
  test('shares one load among concurrent calls for one key', async () => {
    const { get, loads } = countedCache(10);
    await Promise.all([get('a'), get('a'), get('b')]);
    expect(loads).toEqual(['a', 'b']);
  });

  test('forgets a failed load, so that the next call tries again', async () => {
    const { cache, get, loads } = countedCache(10);
    await expect(cache.get('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await get('a')).toBe('value of a');
    expect(loads).toEqual(['a']);
  });

  test('evicts the least recently used entry when it is full', async () => {
    const { get, loads } = countedCache(2);
    await get('a');
    await get('b');
    await get('a');
    await get('c');
    await get('a');
    await get('b');
    expect(loads).toEqual(['a', 'b', 'c', 'b']);
  });
});
