import { describe, expect, it } from 'vitest';
import { run, type Machine, readUntilOpen } from '../../../shared/stream/machine.ts';

async function* source<T>(batches: T[][], failure?: Error): AsyncGenerator<T[], void, undefined> {
  yield* batches;
  if (failure) throw failure;
}

async function collect<T>(sequence: AsyncIterable<T[]>): Promise<{ batches: T[][]; error?: unknown }> {
  const batches: T[][] = [];
  try {
    for await (const batch of sequence) batches.push(batch);
    return { batches };
  } catch (error) {
    return { batches, error };
  }
}

const text: Machine<number, string> = { push: (n) => [String(n)], end: () => ['end'] };
const failOn = (bad: number): Machine<number, number> => ({
  push: (n) => {
    if (n === bad) throw new Error('bad');
    return [n];
  },
  end: () => [],
});
const recovering: Machine<number, string> = { ...text, fail: () => ['recovered'] };

describe('run', () => {
  it('yields what a batch emitted before it failed', async () => {
    const { batches, error } = await collect(run(source([[1, 2, 3]]), failOn(3)));
    expect(batches).toEqual([[1, 2]]);
    expect(error).toEqual(new Error('bad'));
  });

  it('lets a machine recover from a failure of its source', async () => {
    expect(await collect(run(source([[1]], new Error('x')), recovering))).toEqual({
      batches: [['1'], ['recovered']],
    });
  });

  it('passes a failure through a machine that ignores failures', async () => {
    expect((await collect(run(source([[1]], new Error('x')), text))).error).toEqual(new Error('x'));
  });
});

describe('opened', () => {
  it('waits for the batch that opens and then yields everything', async () => {
    const sequence = await readUntilOpen(source([[0], [0, 1], [2]]), (n) => n > 0);
    expect(await collect(sequence)).toEqual({ batches: [[0], [0, 1], [2]] });
  });

  it('rejects when the source fails before it opens', async () => {
    await expect(readUntilOpen(source([[0]], new Error('x')), (n) => n > 0)).rejects.toThrow('x');
  });

  it('treats an end before opening as the complete sequence', async () => {
    expect(await collect(await readUntilOpen(source([[0]]), (n) => n > 0))).toEqual({ batches: [[0]] });
  });
});
