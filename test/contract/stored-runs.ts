/** The contract of run stores, for the in-memory store and the real one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResponseStatus, StoredResponse } from '../../shared/relay/ports/stored.ts';
import { noise, nowOf, queuedOf, responseOf, type OpenedStored, type StoredSuite } from './stored-rig.ts';

export function storedRunsContract({ name, open }: StoredSuite): void {
  describe(`the store of runs ${name}`, () => {
    let opened: OpenedStored;
    let names = 0;
    const runs = () => opened.stored.runs;
    const later = () => nowOf(opened) + 120;
    const queued = async (request: string = 'r'): Promise<{ account: string; id: string }> => {
      const of = { account: 'a', id: `resp-${(names += 1)}` };
      await opened.stored.responses.put(queuedOf(opened, of, { request: { request } }));
      return of;
    };
    const head = async ({ account, id }: { account: string; id: string }) =>
      (await opened.stored.responses.heads(account, [id])).get(id);
    const ended = (of: { account: string; id: string }, status: ResponseStatus, text = 'x'): StoredResponse =>
      responseOf(
        opened,
        {
          ...of,
          status,
          background: { streamed: true, run: 'one', until: later(), events: 4, eventsUntil: 9 },
        },
        { response: { text } },
      );
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    it('lets only one of two runs claim a response, and lets that run claim it again', async () => {
      const of = await queued(noise(450_000));
      const claims = await Promise.all(['one', 'two'].map((run) => runs().claim({ ...of, run }, later())));
      const won = claims[0] ? 'one' : 'two';
      expect(claims.filter(Boolean)).toHaveLength(1);
      const again = await runs().claim({ ...of, run: won }, later() + 1);
      expect(again?.head).toMatchObject({
        status: 'in_progress',
        background: { streamed: true, run: won, until: later() + 1 },
      });
      expect(again?.body.request).toEqual({ request: noise(450_000) });
      expect(await head(of)).toEqual(again?.head);
    });

    it('rejects claims of responses that are not queued, not in the background, or missing', async () => {
      const of = await queued();
      await runs().cancel(of.account, of.id);
      expect(await runs().claim({ ...of, run: 'one' }, later())).toBe(undefined);
      const done = responseOf(opened, { account: 'a', id: 'resp-done' });
      const progressing = responseOf(opened, { account: 'a', id: 'resp-now', status: 'in_progress' });
      await Promise.all([done, progressing].map((each) => opened.stored.responses.put(each)));
      for (const id of ['resp-done', 'resp-now', 'resp-none', 'resp-done#1', ''])
        expect(await runs().claim({ account: 'a', id, run: 'one' }, later())).toBe(undefined);
      expect(await runs().claim({ ...(await queued()), account: 'b', run: 'one' }, later())).toBe(undefined);
    });

    it('renews the claim of the run that holds it, and returns its end', async () => {
      const of = await queued();
      const run = { ...of, run: 'one' };
      expect(await runs().renew(run, later())).toBe(undefined);
      await runs().claim(run, later());
      expect(await runs().renew(run, later() + 20)).toMatchObject({ background: { until: later() + 20 } });
      expect(await runs().renew({ ...of, run: 'two' }, later())).toBe(undefined);
      await runs().cancel(of.account, of.id);
      expect(await runs().renew(run, later() + 40)).toMatchObject({
        status: 'cancelled',
        background: { until: later() + 20 },
      });
      await opened.stored.responses.remove(of.account, of.id);
      expect(await runs().renew(run, later())).toBe(undefined);
    });

    it('ends a run once, with the whole response, even when the first reply was lost', async () => {
      const of = await queued(noise(450_000));
      await runs().claim({ ...of, run: 'one' }, later());
      const response = ended(of, 'completed', noise(400_000));
      expect(await runs().finish({ ...of, run: 'two' }, ended(of, 'failed'))).toBe(false);
      expect(await runs().finish({ ...of, run: 'one' }, response)).toBe(true);
      expect((await opened.stored.responses.read(of.account, [of.id])).get(of.id)).toEqual(response);
      expect(await runs().finish({ ...of, run: 'one' }, ended(of, 'failed', 'other'))).toBe(false);
      expect((await opened.stored.responses.read(of.account, [of.id])).get(of.id)).toEqual(response);
      expect(await runs().claim({ ...of, run: 'one' }, later())).toBe(undefined);
    });

    it('keeps what a cancelled run had written, and does not restore a deleted response', async () => {
      const of = await queued();
      const run = { ...of, run: 'one' };
      await runs().claim(run, later());
      expect(await runs().cancel(of.account, of.id)).toMatchObject({ status: 'cancelled' });
      expect(await runs().cancel(of.account, of.id)).toMatchObject({ status: 'cancelled' });
      expect(await runs().finish(run, ended(of, 'completed', noise(450_000)))).toBe(false);
      expect(await head(of)).toMatchObject({ status: 'cancelled', background: { run: 'one' } });
      expect(await runs().finish(run, ended(of, 'cancelled'))).toBe(true);
      await opened.stored.responses.remove(of.account, of.id);
      expect(await runs().finish(run, ended(of, 'completed', noise(450_000)))).toBe(false);
      expect(await head(of)).toBe(undefined);
      expect(await runs().cancel(of.account, of.id)).toBe(undefined);
      expect(await runs().cancel('a', 'result#1')).toBe(undefined);
    });

    it('does not change a finished response when it is cancelled', async () => {
      const of = await queued();
      await runs().claim({ ...of, run: 'one' }, later());
      const response = ended(of, 'incomplete');
      await runs().finish({ ...of, run: 'one' }, response);
      expect(await runs().cancel(of.account, of.id)).toEqual(response.head);
      expect(await head(of)).toEqual(response.head);
    });

    it('marks a run as failed after its deadline, and accepts nothing more from it', async () => {
      const of = await queued();
      const run = { ...of, run: 'one' };
      const until = nowOf(opened) + 5;
      await runs().claim(run, until);
      expect(await runs().fail(of.account, of.id, 7)).toMatchObject({ status: 'in_progress' });
      await opened.clock.run(opened.clock.sleep(6_000));
      const failed = await runs().fail(of.account, of.id, 7);
      expect(failed).toMatchObject({ status: 'failed', background: { until, events: 7 } });
      expect(await runs().fail(of.account, of.id, 9)).toEqual(failed);
      expect(await runs().finish(run, ended(of, 'completed'))).toBe(false);
      expect(await runs().renew(run, later())).toMatchObject({ status: 'failed' });
      expect(await head(of)).toEqual(failed);
      expect(await runs().fail(of.account, 'resp-none', 1)).toBe(undefined);
    });

    it('ends a run once, whichever end comes first', async () => {
      const of = await queued();
      const run = { ...of, run: 'one' };
      await runs().claim(run, later());
      const [finished, cancelled] = await Promise.all([
        runs().finish(run, ended(of, 'completed')),
        runs().cancel(of.account, of.id),
      ]);
      expect(cancelled?.status).toBe(finished ? 'completed' : 'cancelled');
      expect((await head(of))?.status).toBe(cancelled?.status);
    });

    it('lists the runs that wait for their vendor until they are removed, each in its latest version', async () => {
      const { waiting } = opened.stored;
      const vendor = {
        channel: 'main',
        secret: 'env:X',
        model: 'm',
        url: 'https://v.test/responses',
        vendorId: 'r',
      };
      const runOf = (id: string) => {
        const times = { submitted: nowOf(opened), deadline: later() };
        return { account: 'a', id, run: 'one', vendor, ...times, reservation: '{"amount":"\u00001"}' };
      };
      const [first, second] = [runOf('resp-w1'), { ...runOf('resp-w2'), account: 'b' }];
      await Promise.all([first, second, { ...first, deadline: 1 }, first].map((run) => waiting.put(run)));
      await waiting.put(first);
      const listed = async () => (await waiting.list()).toSorted((a, b) => a.id.localeCompare(b.id));
      expect(await listed()).toEqual([first, second]);
      await waiting.remove(second);
      await waiting.remove(second);
      expect(await listed()).toEqual([first]);
      expect(await head(first)).toBe(undefined);
      await waiting.remove(first);
    });

    it('ignores expired responses', async () => {
      const of = { account: 'a', id: 'resp-old' };
      const { head: young, body } = queuedOf(opened, of);
      await opened.stored.responses.put({ head: { ...young, expires: nowOf(opened) }, body });
      const run = { ...of, run: 'one' };
      expect(await runs().claim(run, later())).toBe(undefined);
      expect(await runs().renew(run, later())).toBe(undefined);
      expect(await runs().finish(run, ended(of, 'completed'))).toBe(false);
      expect(await runs().cancel(of.account, of.id)).toBe(undefined);
      expect(await runs().fail(of.account, of.id, 1)).toBe(undefined);
    });
  });
}
