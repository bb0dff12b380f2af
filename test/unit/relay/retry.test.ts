import { describe, expect, it } from 'vitest';
import { Backoff } from '../../../shared/relay/retry.ts';
import { StoreUnavailable, StoreBusy } from '../../../shared/relay/ports/store-errors.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const unknown = new StoreUnavailable('no reply');
const busy = new StoreBusy('throttled');

/** A write that fails as scripted, then succeeds, and the times of its tries. */
function write(clock: VirtualClock, ...errors: Error[]) {
  const triedMs: number[] = [];
  const startMs = clock.now();
  const act = (): Promise<string> => {
    triedMs.push(clock.now() - startMs);
    const error = errors.shift();
    return error ? Promise.reject(error) : Promise.resolve('done');
  };
  return { triedMs, act };
}

const patient = (clock: VirtualClock, budgetMs: number, chance = 1): Backoff =>
  new Backoff({ clock, random: { next: () => chance } }, budgetMs);

describe('an idempotent write', () => {
  it('is retried until its outcome is known, with pauses that double up to 400 ms', async () => {
    const clock = new VirtualClock();
    const { triedMs, act } = write(clock, busy, unknown, busy, busy, unknown, busy, busy);
    const backoff = patient(clock, 10_000);
    expect(await clock.run(backoff.until(act))).toBe('done');
    expect(triedMs).toEqual([0, 25, 75, 175, 375, 775, 1175, 1575]);
    expect(backoff.unknowns).toBe(2);
  });

  it('waits for a random part of the pause, so that colliding callers spread out', async () => {
    const clock = new VirtualClock();
    const { triedMs, act } = write(clock, busy, busy);
    await clock.run(patient(clock, 10_000, 0.2).until(act));
    expect(triedMs).toEqual([0, 5, 15]);
  });

  it('fails when the time of its backoff is used up over all its writes', async () => {
    const clock = new VirtualClock();
    const backoff = patient(clock, 100);
    await clock.run(backoff.until(write(clock, busy, busy).act));
    await expect(clock.run(backoff.until(write(clock, unknown).act))).rejects.toBe(unknown);
  });
});
