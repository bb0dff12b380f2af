import { describe, expect, it } from 'vitest';
import { AnswerCut } from '../../../../../shared/relay/http/http.ts';
import { StoreBusy, StoreUnavailable } from '../../../../../shared/relay/ports/store-errors.ts';
import { account, answerTexts, dataOf, FollowedRig, frame, id, typeOf, type Read } from './followed-rig.ts';

const numbersOf = ({ events }: Read): unknown[] => events.map((event) => dataOf(event)['sequence_number']);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const statusOf = (event: string | undefined): unknown =>
  (dataOf(String(event))['response'] as { status: string }).status;

/** A run and its readers at once. */
async function together<Of extends unknown[]>(
  rig: FollowedRig,
  ...of: { [I in keyof Of]: () => Promise<Of[I]> }
): Promise<Of> {
  return (await rig.clock.run(Promise.all(of.map((each) => each())))) as Of;
}

describe('a follower of a background response', () => {
  it('gets all events from acceptance on: the first as queued, the last with the response', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const [, read] = await together<[void, Read]>(
      rig,
      () => rig.run(),
      () => rig.read({ method: 'POST' }),
    );
    expect(read.broken).toBeUndefined();
    expect(numbersOf(read)).toEqual(upTo(11));
    expect(read.events.map(typeOf)).toEqual([
      'response.created',
      'response.in_progress',
      ...Array.from({ length: 8 }, () => 'response.output_text.delta'),
      'response.completed',
    ]);
    expect(statusOf(read.events[0])).toBe('queued');
    expect(dataOf(String(read.events[10]))['response']).toMatchObject({
      status: 'completed',
      output: ['all of it'],
    });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('gets the uncut stream around a cut at any event, during the run and after it', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const cuts = upTo(12);
    const resumed = async (leaveAfter: number): Promise<string[]> => {
      const before = leaveAfter === 0 ? [] : (await rig.read({ leaveAfter })).events;
      const last = before.at(-1);
      const rest = await rig.read(last ? { after: Number(dataOf(last)['sequence_number']) } : {});
      return [...before, ...rest.events];
    };
    const [, uncut, ...live] = await together<[void, Read, ...string[][]]>(
      rig,
      () => rig.run(),
      () => rig.read({ method: 'POST' }),
      ...cuts.map((leaveAfter) => () => resumed(leaveAfter)),
    );
    for (const one of live) expect(one).toEqual(uncut.events);
    for (const leaveAfter of cuts) expect(await rig.clock.run(resumed(leaveAfter))).toEqual(uncut.events);
  });

  it('gets comments that keep the connection open while nothing happens, with few reads', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    rig.until += 600;
    const [, read] = await together<[void, Read]>(
      rig,
      async () => {
        const writer = await rig.begin();
        for (const text of answerTexts(1)) writer.wrote(text);
        await rig.clock.sleep(100_000);
        await rig.finish(writer);
      },
      () => rig.read(),
    );
    expect(read.events).toHaveLength(4);
    expect(read.comments).toBeGreaterThanOrEqual(6);
    expect(rig.calls.after).toBeLessThan(220);
    expect(rig.calls.heads).toBeLessThan(70);
    expect(rig.calls.read).toBeLessThan(5);
  });

  it('gets a long answer with little buffering if it is slow, and is cut off if it reads nothing', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    await rig.clock.run(rig.run(answerTexts(100, 'x'.repeat(50_000)), 10));
    const slow = await rig.clock.run(rig.read({ slowMs: 50 }));
    expect(numbersOf(slow)).toEqual(upTo(103));
    rig.calls.after = 0;
    const response = await rig.follow();
    await rig.clock.run(response.done);
    expect(rig.calls.after).toBeLessThan(4);
    expect(await response.cut).toBeInstanceOf(AnswerCut);
    expect(rig.logged).toMatchObject([{ name: 'answer_cut', fields: { why: 'stuck' } }]);
  });

  it('is cut off before its host ends and can continue from there', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const texts = answerTexts(40);
    const [, first] = await together<[void, Read]>(
      rig,
      () => rig.run(texts, 1_000),
      () => rig.read({ hostDeadlineMs: rig.clock.now() + 20_000 }),
    );
    expect(first.broken).toBeInstanceOf(AnswerCut);
    expect(first.events.length).toBeGreaterThan(5);
    const rest = await rig.clock.run(rig.read({ after: first.events.length - 1 }));
    expect(numbersOf({ ...rest, events: [...first.events, ...rest.events] })).toEqual(upTo(43));
  });
});

describe('the end of a followed response', () => {
  it.each(['incomplete', 'cancelled'] as const)('is response.completed with status %s', async (status) => {
    const rig = new FollowedRig();
    await rig.accept();
    const [, read] = await together<[void, Read]>(
      rig,
      async () => {
        const writer = await rig.begin();
        for (const text of answerTexts(3)) writer.wrote(text);
        if (status === 'cancelled') await rig.stored.runs.cancel(account, id);
        await rig.clock.sleep(1_000);
        expect(await rig.finish(writer, { status })).toBe(true);
      },
      () => rig.read(),
    );
    expect(numbersOf(read)).toEqual(upTo(6));
    expect(typeOf(String(read.events[5]))).toBe('response.completed');
    expect(statusOf(read.events[5])).toBe(status);
  });

  it('is response.failed with its error in both places', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const error = { message: 'No.', type: 'upstream_error', param: null, code: 'upstream_unavailable' };
    const [, read] = await together<[void, Read]>(
      rig,
      async () => {
        const writer = await rig.begin();
        writer.wrote(frame('response.created', 0) + frame('response.failed', 1));
        await rig.finish(writer, { status: 'failed', error });
      },
      () => rig.read(),
    );
    expect(read.events.map(typeOf)).toEqual(['response.created', 'response.failed']);
    expect(dataOf(String(read.events[1]))).toMatchObject({ sequence_number: 1, error, response: { error } });
  });

  it('comes at once if the response was cancelled before its run', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    await rig.stored.runs.cancel(account, id);
    const read = await rig.clock.run(rig.read());
    expect(read.events.map(typeOf)).toEqual(['response.created', 'response.completed']);
    expect(statusOf(read.events[1])).toBe('cancelled');
  });

  it('is the same failure for all readers if the run was killed, even if it comes back', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const [writer, live] = await together<[Awaited<ReturnType<FollowedRig['begin']>>, Read]>(
      rig,
      async () => {
        const begun = await rig.begin();
        for (const text of answerTexts(3)) begun.wrote(text);
        await rig.clock.sleep(2_000);
        return begun;
      },
      () => rig.read(),
    );
    expect(live.events.map(typeOf).at(-1)).toBe('response.failed');
    expect(numbersOf(live)).toEqual(upTo(6));
    expect(dataOf(String(live.events[5]))['error']).toMatchObject({ code: 'server_error' });
    writer.wrote(frame('response.output_text.delta', 5, { delta: 'late' }));
    expect(await rig.clock.run(rig.finish(writer))).toBe(false);
    expect((await rig.clock.run(rig.read())).events).toEqual(live.events);
    expect((await rig.clock.run(rig.read({ after: 3 }))).events).toEqual(live.events.slice(4));
  });

  it('is a broken connection if the response is deleted, and the next request gets 404', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    const [, read] = await together<[void, Read]>(
      rig,
      async () => {
        const writer = await rig.begin();
        for (const text of answerTexts(3)) writer.wrote(text);
        await rig.clock.sleep(2_000);
        await rig.stored.responses.remove(account, id);
      },
      () => rig.read(),
    );
    expect(read.broken).toBeInstanceOf(AnswerCut);
    await expect(rig.clock.run(rig.read({ after: 2 }))).rejects.toMatchObject({
      status: 404,
      body: { error: { code: 'response_not_found' } },
    });
    expect(rig.faults).toEqual([]);
  });

  it('waits some seconds for a failing store, and breaks off if it keeps failing', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    let refusedUntilMs = 0;
    rig.before = (what) => {
      if (rig.clock.now() < refusedUntilMs)
        throw what === 'append' ? new StoreBusy() : new StoreUnavailable();
    };
    const [, read] = await together<[void, Read, void]>(
      rig,
      () => rig.run(answerTexts(20), 1_000),
      () => rig.read(),
      async () => {
        await rig.clock.sleep(3_000);
        refusedUntilMs = rig.clock.now() + 10_000;
      },
    );
    expect(numbersOf(read)).toEqual(upTo(23));
    refusedUntilMs = Infinity;
    await expect(rig.clock.run(rig.read())).rejects.toBeInstanceOf(StoreUnavailable);
    refusedUntilMs = 0;
    const response = await rig.follow();
    refusedUntilMs = Infinity;
    await rig.clock.run(response.done);
    expect(await response.cut).toBeInstanceOf(AnswerCut);
  });
});

describe('a follow request', () => {
  const refused = async (rig: FollowedRig, more: Parameters<FollowedRig['follow']>[0]) =>
    rig.clock.run(rig.follow(more)).then(
      () => 'followed',
      (error: { code?: string; param?: string; body?: { error: { code: string } } }) =>
        error.body?.error.code ?? `${error.code} ${error.param}`,
    );

  it.each(['', '-1', '1.5', '1e3', 'last', '9'.repeat(30), ' 1'])('is rejected after %j', async (after) => {
    const rig = new FollowedRig();
    await rig.accept();
    expect(await refused(rig, { after })).toBe('invalid_value starting_after');
  });

  it('is rejected beyond the last event, and gets no events after the last one', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    expect(await refused(rig, { after: 0 })).toBe('followed');
    expect(await refused(rig, { after: 1 })).toBe('invalid_value starting_after');
    await rig.clock.run(rig.run());
    expect(await refused(rig, { after: 11 })).toBe('invalid_value starting_after');
    expect(await rig.clock.run(rig.read({ after: 10 }))).toEqual({
      events: [],
      comments: 0,
      broken: undefined,
    });
    expect(numbersOf(await rig.clock.run(rig.read({ after: 9 })))).toEqual([10]);
  });

  it.each([{ streamed: false }, { background: false }])(
    'is rejected for a response created with %j',
    async (created) => {
      const rig = new FollowedRig();
      await rig.accept(created);
      expect(await refused(rig, {})).toBe('invalid_value stream');
    },
  );

  it('is rejected once the events have expired, however the response ended', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    await rig.clock.run(rig.run());
    await rig.clock.run(rig.clock.sleep(599_000));
    expect(await refused(rig, { after: 3 })).toBe('followed');
    await rig.clock.run(rig.clock.sleep(2_000));
    expect(await refused(rig, { after: 3 })).toBe('invalid_value stream');
    const dead = new FollowedRig();
    await dead.accept();
    await dead.clock.run(dead.read());
    await dead.clock.run(dead.clock.sleep(600_000));
    expect(await refused(dead, {})).toBe('invalid_value stream');
  });

  it('is rejected for another account’s response or an unknown one', async () => {
    const rig = new FollowedRig();
    await rig.accept();
    expect(await refused(rig, { by: 'other' })).toBe('response_not_found');
    expect(await refused(rig, { named: 'resp-00000000000000000000000009' })).toBe('response_not_found');
  });
});
