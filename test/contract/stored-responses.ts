/** The contract of response stores, for the in-memory store and the real one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { noise, nowOf, queuedOf, responseOf, type OpenedStored, type StoredSuite } from './stored-rig.ts';

export function storedResponsesContract({ name, open }: StoredSuite): void {
  describe(`the store of responses ${name}`, () => {
    let opened: OpenedStored;
    const store = () => opened.stored.responses;
    const put = async (account: string, id: string, text = 'x') => {
      const response = responseOf(opened, { account, id }, { response: { text } });
      await store().put(response);
      return response;
    };
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    it('returns complete stored responses in one read, and nothing for other ids', async () => {
      const one = responseOf(
        opened,
        { account: 'a', id: 'resp-one', ancestors: ['resp-b', 'resp-a'], turn: 3, conversationLength: 77 },
        { input: [{ id: 'msg_1', content: 'höflich 你好 \u0000' }], seal: 'relay1.1.AAA' },
      );
      const two = responseOf(opened, {
        account: 'a',
        id: 'resp-two',
        status: 'incomplete',
        background: { streamed: true, run: 'r', until: 7, events: 9, eventsUntil: 8 },
      });
      await Promise.all([store().put(one), store().put(two)]);
      expect(await store().read('a', ['resp-two', 'resp-three', 'resp-one', 'resp-one'])).toEqual(
        new Map([
          ['resp-one', one],
          ['resp-two', two],
        ]),
      );
      expect(await store().heads('a', ['resp-one', 'resp-none'])).toEqual(new Map([['resp-one', one.head]]));
      expect(await store().read('a', [])).toEqual(new Map());
    });

    it('passes several responses to the reader one by one, and returns the results', async () => {
      for (const id of ['resp-1', 'resp-2']) await put('each', id, noise(400_000));
      const handed: string[] = [];
      const taken = await store().readEach('each', ['resp-1', 'resp-2', 'resp-3'], ({ head, body }) => {
        handed.push(head.id);
        return String(body.response['text']).length;
      });
      expect(taken).toEqual(
        new Map([
          ['resp-1', 400_000],
          ['resp-2', 400_000],
        ]),
      );
      expect(handed.toSorted()).toEqual(['resp-1', 'resp-2']);
    });

    it('reports the length of contents before unpacking, and unpacks only admitted ones', async () => {
      const { body } = await put('long', 'resp-1', 'x'.repeat(900_000));
      const length = JSON.stringify(body).length;
      const admitted: number[] = [];
      await store().read('long', ['resp-1'], (of) => void admitted.push(of));
      await store().read('long', ['resp-2'], (of) => void admitted.push(of));
      expect(admitted).toEqual([length]);
      const taken: unknown[] = [];
      const refused = new Error('too long');
      const reading = store().readEach(
        'long',
        ['resp-1'],
        (one) => taken.push(one),
        () => {
          throw refused;
        },
      );
      await expect(reading).rejects.toBe(refused);
      expect(taken).toEqual([]);
    });

    it('never shows an account the response of another account', async () => {
      await put('b', 'resp-1');
      for (const account of ['c', 'b\n', ' b', 'B']) {
        expect(await store().read(account, ['resp-1'])).toEqual(new Map());
        expect(await store().heads(account, ['resp-1'])).toEqual(new Map());
        expect(await store().remove(account, 'resp-1')).toBe(false);
      }
      expect(await store().read('b', ['resp-1'])).toHaveProperty('size', 1);
    });

    it('finds nothing under invalid ids', async () => {
      await put('d', 'resp-1', noise(450_000));
      const key = { account: 'd', key: 'k' };
      const later = nowOf(opened) + 60;
      await opened.stored.results.put(key, { requestId: 'r', status: 200, headers: {}, body: '' }, later);
      await opened.stored.events.append({ account: 'd', id: 'resp-1' }, { from: 0, frames: ['x'] }, later);
      const ids = [
        '',
        '#',
        'resp-',
        'resp-1#1',
        'resp-1#e#0',
        'result#k',
        'resp-1 ',
        'x'.repeat(3000),
        'resp-\u0000',
      ];
      expect(await store().read('d', ids)).toEqual(new Map());
      expect(await store().heads('d', ids)).toEqual(new Map());
      for (const id of ids) expect(await store().remove('d', id)).toBe(false);
    });

    it('neither returns nor deletes expired responses', async () => {
      const now = nowOf(opened);
      await store().put(responseOf(opened, { account: 'e', id: 'resp-old', expires: now }));
      await store().put(responseOf(opened, { account: 'e', id: 'resp-new', expires: now + 1 }));
      const ids = ['resp-old', 'resp-new'];
      expect([...(await store().read('e', ids)).keys()]).toEqual(['resp-new']);
      expect([...(await store().heads('e', ids)).keys()]).toEqual(['resp-new']);
      expect(await store().remove('e', 'resp-old')).toBe(false);
    });

    it('deletes a response once, together with its events', async () => {
      await put('f', 'resp-1', noise(450_000));
      await put('f', 'resp-10');
      const events = { account: 'f', id: 'resp-1' };
      await opened.stored.events.append(events, { from: 0, frames: ['a'] }, nowOf(opened) + 60);
      expect(await store().remove('f', 'resp-1')).toBe(true);
      expect(await store().read('f', ['resp-1', 'resp-10'])).toHaveProperty('size', 1);
      expect(await opened.stored.events.after(events, -1)).toEqual([]);
      expect(await store().remove('f', 'resp-1')).toBe(false);
    });

    it('writes a response once: a late retry of its put restores neither a deleted nor an older response', async () => {
      const of = { account: 'j', id: 'resp-1' };
      const run = { ...of, run: 'one' };
      const late = nowOf(opened) + 120;
      const queued = queuedOf(opened, of, { request: { text: noise(450_000) } });
      await store().put(queued);
      await opened.stored.runs.claim(run, late);
      await store().put(queued);
      const claimed = (await store().read('j', ['resp-1'])).get('resp-1');
      expect(claimed).toMatchObject({ head: { status: 'in_progress' }, body: queued.body });
      const background = { streamed: true, run: 'one', until: late };
      const done = responseOf(opened, { ...of, background }, { response: { text: noise(400_000, 2) } });
      expect(await opened.stored.runs.finish(run, done)).toBe(true);
      await store().put(queued);
      expect((await store().read('j', ['resp-1'])).get('resp-1')).toEqual(done);
      await store().remove('j', 'resp-1');
      await store().put(queued);
      expect(await store().heads('j', ['resp-1'])).toEqual(new Map());
      expect(await opened.stored.runs.claim({ ...of, run: 'two' }, late)).toBe(undefined);
      expect(await opened.stored.runs.renew(run, late)).toBe(undefined);
      expect(await opened.stored.runs.cancel('j', 'resp-1')).toBe(undefined);
      expect(await store().remove('j', 'resp-1')).toBe(false);
    });

    it('never writes a withdrawn response, whether its put comes before or after', async () => {
      await store().withdraw('k', 'resp-1');
      await put('k', 'resp-1', noise(450_000));
      await put('k', 'resp-2');
      await store().withdraw('k', 'resp-2');
      await put('k', 'resp-2');
      expect(await store().read('k', ['resp-1', 'resp-2'])).toEqual(new Map());
    });

    it('writes a response although a delete of its id came before', async () => {
      expect(await store().remove('l', 'resp-1')).toBe(false);
      await put('l', 'resp-1');
      expect(await store().read('l', ['resp-1'])).toHaveProperty('size', 1);
    });

    it('returns 120 responses at once', async () => {
      const ids = Array.from({ length: 120 }, (_, i) => `resp-${i}`);
      await Promise.all(ids.map((id) => put('h', id, noise(3_000, Number(id.slice(5)) + 1))));
      expect([...(await store().read('h', ids)).keys()].toSorted()).toEqual(ids.toSorted());
    });

    it('shows readers either the old or the new content while it is replaced', async () => {
      const texts = [noise(400_000, 1), noise(450_000, 2)];
      const of = { account: 'i', id: 'resp-1' };
      const run = { ...of, run: 'one' };
      await store().put(queuedOf(opened, of, { response: { text: texts[0] } }));
      await opened.stored.runs.claim(run, nowOf(opened) + 60);
      const background = { streamed: true, run: 'one', until: nowOf(opened) + 60 };
      const ended = (text: string | undefined) =>
        responseOf(opened, { ...of, status: 'cancelled', background }, { response: { text } });
      const writes = (async () => {
        for (let i = 1; i < 6; i += 1) await opened.stored.runs.finish(run, ended(texts[i % 2]));
      })();
      const seen = new Set<unknown>();
      for (let i = 0; i < 10; i += 1)
        seen.add((await store().read('i', ['resp-1'])).get('resp-1')?.body.response['text']);
      await writes;
      expect([...seen].every((text) => texts.includes(text as string))).toBe(true);
    });
  });
}
