/** The contract of event logs and result stores, for the in-memory stores and the real ones. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventBatch, StoredResult } from '../../shared/relay/ports/stored.ts';
import { noise, nowOf, responseOf, type OpenedStored, type StoredSuite } from './stored-rig.ts';

const framesOf = (batches: readonly EventBatch[]): [number, string][] =>
  batches.flatMap(({ from, frames }) => frames.map((frame, i): [number, string] => [from + i, frame]));

const numbered = (from: number, count: number): EventBatch => ({
  from,
  frames: Array.from({ length: count }, (_, i) => `event ${from + i}`),
});

export function storedLogsContract({ name, open }: StoredSuite): void {
  describe(`the log of events ${name}`, () => {
    let opened: OpenedStored;
    const log = () => opened.stored.events;
    const later = () => nowOf(opened) + 60;
    /** Reads all later events page by page, as a reader does. */
    const allAfter = async (of: { account: string; id: string }, sequence: number) => {
      const all: [number, string][] = [];
      for (let last = sequence; ;) {
        const found = framesOf(await log().after(of, last)).filter(([number]) => number > last);
        if (found.length === 0) return all;
        all.push(...found);
        last = found.at(-1)?.[0] ?? last;
      }
    };
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    it('returns the events after any number, in order', async () => {
      const of = { account: 'a', id: 'resp-1' };
      for (const batch of [numbered(0, 1), numbered(1, 9), numbered(10, 1), numbered(11, 90)])
        await log().append(of, batch, later());
      const whole = framesOf([numbered(0, 101)]);
      for (const sequence of [-1, 0, 1, 5, 9, 10, 11, 99, 100, 1e15, Number.MAX_SAFE_INTEGER])
        expect(await allAfter(of, sequence)).toEqual(whole.slice(sequence + 1));
    });

    it('keeps events once that were appended twice', async () => {
      const of = { account: 'a', id: 'resp-2' };
      await log().append(of, numbered(0, 3), later());
      await log().append(of, numbered(0, 3), later());
      await log().append(of, numbered(0, 5), later());
      await log().append(of, numbered(5, 2), later());
      expect(await allAfter(of, -1)).toEqual(framesOf([numbered(0, 7)]));
      expect(await allAfter(of, 1)).toEqual(framesOf([numbered(2, 5)]));
    });

    it('returns a large log in several reads', async () => {
      const of = { account: 'a', id: 'resp-3' };
      const large = (from: number): EventBatch => ({ from, frames: ['x'.repeat(3 * 1024 * 1024)] });
      const batches = [0, 1, 2].map(large);
      for (const batch of batches) await log().append(of, batch, later());
      expect(await allAfter(of, -1)).toEqual(framesOf(batches));
    });

    it('separates responses and accounts', async () => {
      await log().append({ account: 'b', id: 'resp-1' }, numbered(0, 1), later());
      for (const of of [
        { account: 'c', id: 'resp-1' },
        { account: 'b', id: 'resp-10' },
        { account: 'b', id: 'resp-' },
        { account: 'b', id: '' },
        { account: 'b', id: 'resp-1#e' },
      ])
        expect(await log().after(of, -1)).toEqual([]);
    });

    it('keeps events larger than an item or a page', async () => {
      const of = { account: 'd', id: 'resp-1' };
      const frames = Array.from({ length: 12 }, (_, i) => noise(i === 5 ? 900_000 : 200_000, i + 1));
      for (const [i, frame] of frames.entries())
        await log().append(of, { from: i, frames: [frame] }, later());
      expect((await allAfter(of, -1)).map(([, frame]) => frame)).toEqual(frames);
      expect((await allAfter(of, 4)).map(([, frame]) => frame)).toEqual(frames.slice(5));
    });

    it('returns nothing that has expired', async () => {
      const of = { account: 'e', id: 'resp-1' };
      await log().append(of, numbered(0, 3), nowOf(opened));
      expect(await log().after(of, -1)).toEqual([]);
      expect(await log().last(of)).toBe(undefined);
    });

    it('reads the last batch without the others, however large it is', async () => {
      const of = { account: 'f', id: 'resp-1' };
      expect(await log().last(of)).toBe(undefined);
      const batches = [
        numbered(0, 3),
        numbered(3, 40),
        { from: 43, frames: [noise(900_000)] },
        numbered(44, 2),
      ];
      for (const batch of batches) {
        await log().append(of, batch, later());
        expect(await log().last(of)).toEqual(batch);
      }
      for (const id of ['resp-10', 'resp-', '', 'resp-1#e'])
        expect(await log().last({ account: 'f', id })).toBe(undefined);
      expect(await log().last({ account: 'g', id: 'resp-1' })).toBe(undefined);
    });
  });

  describe(`the store of results ${name}`, () => {
    let opened: OpenedStored;
    const results = () => opened.stored.results;
    const resultOf = (body: string): StoredResult => ({
      requestId: 'r1',
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body,
    });
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    it('returns the result of a key to its own account only', async () => {
      const later = nowOf(opened) + 60;
      const large = resultOf(noise(900_000));
      await results().put({ account: 'a', key: 'k' }, resultOf('höflich'), later);
      await results().put({ account: 'b', key: 'k' }, large, later);
      expect(await results().read({ account: 'a', key: 'k' })).toEqual(resultOf('höflich'));
      expect(await results().read({ account: 'b', key: 'k' })).toEqual(large);
      for (const of of [
        { account: 'c', key: 'k' },
        { account: 'a', key: 'K' },
        { account: 'a\nk', key: '' },
      ])
        expect(await results().read(of)).toBe(undefined);
    });

    it('loses the result of a request whose response was deleted', async () => {
      for (const key of ['1', '10']) {
        await opened.stored.responses.put(responseOf(opened, { account: 'd', id: `resp-${key}` }));
        await results().put({ account: 'd', key }, resultOf(noise(450_000)), nowOf(opened) + 60);
      }
      await opened.stored.responses.remove('d', 'resp-1');
      expect(await results().read({ account: 'd', key: '1' })).toBe(undefined);
      expect(await results().read({ account: 'd', key: '10' })).toBeDefined();
    });

    it('records that the answer consists of the events of a response', async () => {
      const events: StoredResult = { ...resultOf(''), body: undefined };
      await results().put({ account: 'e', key: 'k' }, events, nowOf(opened) + 60);
      expect(await results().read({ account: 'e', key: 'k' })).toEqual(events);
    });

    it('returns nothing that has expired', async () => {
      await results().put({ account: 'a', key: 'old' }, resultOf('x'), nowOf(opened));
      expect(await results().read({ account: 'a', key: 'old' })).toBe(undefined);
    });
  });
}
