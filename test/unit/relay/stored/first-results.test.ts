import { describe, expect, it } from 'vitest';
import { ResponseTooLarge } from '../../../../shared/relay/ports/stored.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import {
  CoreRig,
  delta,
  done,
  finish,
  hang,
  keyRow,
  reset,
  usage,
  type Answer,
  type RigOptions,
} from '../../../support/core-rig.ts';

const answered = [delta('Hello'), finish(), usage(5, 3), done];
const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const responses = { model: 'm', input: 'hi' };
const paths = { '/v1/chat/completions': chat, '/v1/responses': responses };
const modes = [
  ['/v1/chat/completions', 'JSON'],
  ['/v1/chat/completions', 'stream'],
  ['/v1/responses', 'JSON'],
  ['/v1/responses', 'stream'],
] as const;

const storing = { keys: { 'sk-test': { row: keyRow({ store: true }) } } };
const rigOf = (options: RigOptions = {}): CoreRig =>
  new CoreRig({ ...storing, ...options }).upstream({ steps: answered });

/** Gives each request its own id, as hosts do. */
let requests = 0;
const keyed = (path: string, key = 'k', more: Record<string, string> = {}) => ({
  id: `01call${String((requests += 1)).padStart(20, '0')}`,
  path,
  headers: { authorization: 'Bearer sk-test', 'idempotency-key': key, ...more },
});
const errorOf = (answer: Pick<Answer, 'text'>): Record<string, unknown> => JSON.parse(answer.text).error;

describe('a repeat with an Idempotency-Key, by a key that may store', () => {
  it.each(modes)('gets the first answer byte for byte: %s, %s', async (path, mode) => {
    const rig = rigOf();
    const body = { ...paths[path], stream: mode === 'stream' };
    const first = await rig.post(body, keyed(path));
    for (let repeats = 0; repeats < 2; repeats += 1) {
      const again = await rig.post(body, keyed(path));
      expect([again.status, again.text]).toEqual([200, first.text]);
      const { 'x-request-id': firstId, ...headers } = first.headers;
      const { 'x-request-id': ownId, ...others } = again.headers;
      expect(others).toEqual({ ...headers, 'x-relay-replayed': firstId });
      expect(ownId).not.toBe(firstId);
    }
    expect(first.text).toContain('Hello');
    expect(first.headers).not.toHaveProperty('x-relay-replayed');
    expect(rig.sent).toHaveLength(1);
    expect(rig.faults).toEqual([]);
    expect(rig.logged.map(({ status, end, reason }) => [status, end, reason])).toEqual([
      [200, 'completed', undefined],
      [200, 'completed', 'repeated'],
      [200, 'completed', 'repeated'],
    ]);
  });

  it.each([
    ['its end', answered, '[DONE]'],
    ['its failure', [delta('a'), reset], '"error"'],
  ])('can get the answer before the first client sees %s', async (_what, steps, last) => {
    const rig = rigOf().upstream({ steps });
    const { results } = rig.stored;
    const put = results.put.bind(results);
    let seen = '';
    const seenBefore: string[] = [];
    results.put = async (...given) => {
      await rig.clock.sleep(100);
      seenBefore.push(seen);
      await put(...given);
    };
    const first = await rig.clock.run(rig.respond({ ...chat, stream: true }, keyed('/v1/chat/completions')));
    const read = async (): Promise<void> => {
      for await (const text of first.body) seen += text;
    };
    await rig.clock.run(read());
    expect(seenBefore).toEqual([expect.not.stringContaining(last)]);
    expect(seen).toContain(last);
    await rig.clock.run(first.done);
  });

  it('is charged once', async () => {
    const rig = new BillingRig({ key: { store: true } }).granted(100n * yuan).upstream({ steps: answered });
    await rig.post(chat, keyed('/v1/chat/completions'));
    const spent = rig.item?.spent;
    await rig.post(chat, keyed('/v1/chat/completions'));
    expect(spent).toBeGreaterThan(0n);
    expect(rig.item?.spent).toBe(spent);
    expect(rig.item?.open.size).toBe(0);
  });

  it('is told to come again while the first request runs', async () => {
    const rig = rigOf().upstream({ steps: [delta('a'), hang] });
    const body = { ...chat, stream: true };
    const first = await rig.clock.run(rig.respond(body, keyed('/v1/chat/completions')));
    const again = await rig.post(body, keyed('/v1/chat/completions'));
    expect([again.status, errorOf(again)['code']]).toEqual([409, 'request_in_progress']);
    expect(again.headers['retry-after']).toMatch(/^\d+$/);
    expect(again.headers).not.toHaveProperty('x-should-retry');
    await rig.clock.run(first.done);
  });

  it.each([
    ['messages', { ...chat, messages: [{ role: 'user', content: 'ho' }] }],
    ['temperature', { ...chat, temperature: 1 }],
    ['model', { ...chat, model: 'n' }],
  ])('with another body is rejected and names the difference: %s', async (member, other) => {
    const rig = rigOf({ channels: [{ models: ['m', 'n'] }] });
    await rig.post(chat, keyed('/v1/chat/completions'));
    const again = await rig.post(other, keyed('/v1/chat/completions'));
    expect(again.status).toBe(422);
    expect(errorOf(again)).toMatchObject({ code: 'idempotency_key_reused', param: member });
    expect(again.text).not.toContain('ho');
  });

  it('at the other endpoint is rejected and names the header', async () => {
    const rig = rigOf();
    // Chat Completions accepts this body, too, because Cursor sends it.
    await rig.post(responses, keyed('/v1/chat/completions'));
    const again = await rig.post(responses, keyed('/v1/responses'));
    expect(again.status).toBe(422);
    expect(errorOf(again)).toMatchObject({ code: 'idempotency_key_reused', param: 'Idempotency-Key' });
  });

  it('does not get a response that was removed', async () => {
    const rig = rigOf();
    const first = await rig.post(responses, keyed('/v1/responses'));
    await rig.stored.responses.remove('acme', JSON.parse(first.text).id);
    const again = await rig.post(responses, keyed('/v1/responses'));
    expect([again.status, errorOf(again)['code']]).toEqual([409, 'request_already_completed']);
    expect(again.headers['x-should-retry']).toBe('false');
  });
});

describe('an answer whose result cannot be stored', () => {
  it.each([
    ['the store rejects it', () => Promise.reject(new StoreUnavailable('down'))],
    ['it is too large', () => Promise.reject(new ResponseTooLarge('12 MB'))],
    ['the store does not answer', () => new Promise<never>(() => {})],
  ])('is complete, but its repeat is rejected: %s', async (_, put) => {
    const rig = rigOf();
    rig.stored.results.put = put;
    const first = await rig.post(chat, keyed('/v1/chat/completions'));
    expect(first.text).toContain('Hello');
    expect(rig.events.map(({ name }) => name)).toContain('result_not_kept');
    const again = await rig.post(chat, keyed('/v1/chat/completions'));
    expect([again.status, errorOf(again)['code']]).toEqual([409, 'request_already_completed']);
    expect(rig.sent).toHaveLength(1);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('buffers at most 4 MB', async () => {
    const steps = [...Array<string>(80).fill(delta('x'.repeat(64 * 1024))), finish(), done];
    const rig = rigOf().upstream({ steps });
    const first = await rig.post({ ...chat, stream: true }, keyed('/v1/chat/completions'));
    expect(first.text.length).toBeGreaterThan(4 * 1024 * 1024);
    expect(rig.events).toContainEqual({
      name: 'result_not_kept',
      fields: expect.objectContaining({ why: 'too_large' }),
    });
  });
});

describe('a background call with an Idempotency-Key', () => {
  const path = '/v1/responses';
  const background = { ...responses, background: true };
  const rigWith = () =>
    new BillingRig({ key: { store: true }, channels: [{ idle_seconds: 900 }] })
      .granted(100n * yuan)
      .upstream({ steps: answered });

  it('is accepted once: repeats get the queued response before and after its run', async () => {
    const rig = rigWith();
    const first = await rig.post(background, keyed(path));
    expect(JSON.parse(first.text)).toMatchObject({ status: 'queued' });
    const again = await rig.post(background, keyed(path));
    await rig.clock.run(rig.runs());
    const later = await rig.post(background, keyed(path));
    expect([again.text, later.text]).toEqual([first.text, first.text]);
    expect(again.headers['x-relay-replayed']).toBe(first.headers['x-request-id']);
    expect(rig.stored.started).toHaveLength(1);
  });

  const killed = (rig: BillingRig, body: object): void => {
    const never = () => new Promise<never>(() => {});
    Object.assign(rig.stored.results, { put: never });
    rig.idempotency.finish = never;
    void rig.respond(body, keyed(path));
  };

  it.each(['', 'streamed, '])(
    'whose acceptor was killed repeats its response once a run claims it: %sas the first would have been',
    async (mode) => {
      const rig = rigWith().upstream({ steps: [delta('Hello'), 800_000, ...answered.slice(1)] });
      const body = { ...background, stream: mode !== '', tools: [], metadata: { a: 'b' } };
      killed(rig, body);
      await rig.clock.run(rig.clock.sleep(3_000));
      const [of] = rig.stored.started;
      const { id = '' } = of ?? {};
      const first = (await rig.stored.responses.read('acme', [id])).get(id)?.body.response;
      expect(first).toMatchObject({ status: 'queued' });
      expect((await rig.post(body, keyed(path))).status).toBe(409);
      const run = rig.runs();
      await rig.clock.run(rig.clock.sleep(1_000));
      const during = await rig.respond(body, keyed(path));
      await rig.clock.run(rig.clock.sleep(750_000));
      const later = await rig.respond(body, keyed(path));
      await rig.clock.run(run);
      const afterwards = await rig.post(body, keyed(path));
      expect([during.status, later.status, afterwards.status]).toEqual([200, 200, 200]);
      expect(afterwards.headers['x-relay-replayed']).toBe(id.slice('resp-'.length));
      if (mode === '') {
        expect([during.body, later.body, afterwards.text]).toEqual(Array(3).fill(JSON.stringify(first)));
      } else {
        expect(afterwards.headers['content-type']).toBe('text/event-stream; charset=utf-8');
        expect(afterwards.text).toContain('response.created');
        expect(afterwards.text).toContain('response.completed');
        for (const { body: texts } of [during, later])
          await rig.clock.run(Array.fromAsync(texts as AsyncIterable<string>));
      }
      expect(rig.stored.started).toHaveLength(1);
      expect(rig.sent).toHaveLength(1);
    },
  );

  it('without a stored result is answered by its response until that is removed', async () => {
    const rig = rigWith();
    rig.stored.results.put = () => Promise.reject(new StoreUnavailable('down'));
    const first = await rig.post(background, keyed(path));
    const again = await rig.post(background, keyed(path));
    await rig.clock.run(rig.runs());
    const later = await rig.post(background, keyed(path));
    expect([again.text, later.text]).toEqual([first.text, first.text]);
    await rig.stored.responses.remove('acme', JSON.parse(first.text).id);
    const gone = await rig.post(background, keyed(path));
    expect([gone.status, errorOf(gone)['code']]).toEqual([409, 'request_already_completed']);
  });

  it('that is withdrawn tells its repeats to come again', async () => {
    const rig = rigWith();
    const { responses } = rig.stored;
    const withdraw = responses.withdraw.bind(responses);
    Object.assign(rig.stored, { startRun: () => Promise.reject(new StoreUnavailable('throttled')) });
    const repeats: number[] = [];
    responses.withdraw = async (...given) => {
      repeats.push((await rig.respond(background, keyed(path))).status);
      await withdraw(...given);
    };
    expect((await rig.post(background, keyed(path))).status).toBe(503);
    expect(repeats).toEqual([409]);
  });

  it('that streams is followed by its repeats from the first event', async () => {
    const rig = rigWith();
    const streamed = { ...background, stream: true };
    const first = rig.post(streamed, keyed(path));
    const repeat = async () => {
      for (;;) {
        const again = await rig.respond(streamed, keyed(path));
        if (again.status === 200) return again;
        await rig.clock.sleep(100);
      }
    };
    const again = repeat();
    const run = rig.clock.sleep(1_000).then(() => rig.runs());
    const answer = await first;
    await rig.clock.run(run);
    const followed = await again;
    const texts = await rig.clock.run(Array.fromAsync(followed.body as AsyncIterable<string>));
    await rig.clock.run(followed.done);
    expect(followed.headers['x-relay-replayed']).toBe(answer.headers['x-request-id']);
    const frames = (text: string): string[] => text.split('\n\n').filter((frame) => !frame.startsWith(':'));
    expect(frames(texts.join(''))).toEqual(frames(answer.text));
    expect(texts.join('')).toContain('response.completed');
    expect(rig.stored.started).toHaveLength(1);
  });
});
