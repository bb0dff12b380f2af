import { describe, expect, it } from 'vitest';
import type { EventBatch } from '../../../../../shared/relay/ports/stored.ts';
import { StoreBusy, StoreUnavailable } from '../../../../../shared/relay/ports/store-errors.ts';
import type { EventWriter } from '../../../../../shared/relay/stored/run-recorder.ts';
import { account, answerTexts, dataOf, FollowedRig, frame, id } from './followed-rig.ts';

const of = { account, id };

async function begun(): Promise<{ rig: FollowedRig; writer: EventWriter }> {
  const rig = new FollowedRig();
  await rig.accept();
  return { rig, writer: await rig.begin() };
}

const kept = (rig: FollowedRig): Promise<EventBatch[]> => rig.stored.events.after(of, -1);
const numbersOf = (batches: EventBatch[]): unknown[] =>
  batches.flatMap(({ frames }) =>
    frames.filter((one) => one !== '').map((one) => dataOf(one)['sequence_number']),
  );
const wait = (rig: FollowedRig, ms: number): Promise<void> => rig.clock.run(rig.clock.sleep(ms));

describe('the event writer', () => {
  it('stores events in batches of half a second, without comments and without the last event', async () => {
    const { rig, writer } = await begun();
    for (const text of answerTexts(3)) writer.wrote(text);
    writer.wrote(': ping\n\n');
    await wait(rig, 499);
    expect(await kept(rig)).toEqual([]);
    await wait(rig, 2);
    expect(numbersOf(await kept(rig))).toEqual([0, 1, 2, 3, 4]);
    expect(await kept(rig)).toHaveLength(1);
    writer.wrote(frame('response.output_item.done', 5) + frame('response.completed', 6));
    expect(await rig.clock.run(writer.finished())).toBe(7);
    expect(numbersOf(await kept(rig))).toEqual([0, 1, 2, 3, 4, 5]);
    writer.wrote(frame('response.in_progress', 6));
    await wait(rig, 2_000);
    expect(numbersOf(await kept(rig))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('stores events in order and once each while the store rejects writes and loses replies', async () => {
    const { rig, writer } = await begun();
    const seen = new Map<number, string>();
    let calls = 0;
    rig.before = () => {
      calls += 1;
      if (calls % 3 === 0) throw new StoreBusy();
    };
    rig.afterwards = () => {
      if (calls % 3 === 1) throw new StoreUnavailable();
    };
    for (const text of answerTexts(60)) {
      writer.wrote(text);
      await wait(rig, 200);
      for (const { from, frames } of await kept(rig))
        for (const [i, one] of frames.entries()) {
          expect(seen.get(from + i) ?? one).toBe(one);
          seen.set(from + i, one);
        }
    }
    expect(await rig.clock.run(writer.finished())).toBe(63);
    expect(numbersOf(await kept(rig))).toEqual(Array.from({ length: 62 }, (_, i) => i));
  });

  it('stops when its claim expires: a run that was paused writes nothing', async () => {
    const { rig, writer } = await begun();
    for (const text of answerTexts(1)) writer.wrote(text);
    await wait(rig, 1_000);
    await wait(rig, 120_000);
    writer.wrote(frame('response.output_text.delta', 3));
    await wait(rig, 1_000);
    expect(await rig.clock.run(writer.finished())).toBe(4);
    expect(numbersOf(await kept(rig))).toEqual([0, 1, 2]);
  });

  it('counts the stored events even if the last reply was lost', async () => {
    const { rig, writer } = await begun();
    for (const text of answerTexts(1)) writer.wrote(text);
    let isLost = false;
    rig.before = (what) => {
      if (isLost && what === 'append') throw new StoreUnavailable();
    };
    rig.afterwards = () => {
      isLost = true;
      throw new StoreUnavailable();
    };
    expect(await rig.clock.run(writer.finished())).toBe(4);
  });
});
