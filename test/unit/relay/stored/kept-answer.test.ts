/** Answers and their stored copies, through failures of the upstream, the client and the store. */
import { describe, expect, it } from 'vitest';
import { ResponseTooLarge } from '../../../../shared/relay/ports/stored.ts';
import { StoreBusy, StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { delta, hello, reset, type Step } from '../../../support/core-rig.ts';
import { parsed, plainKey, StoredRig, type Value } from './stored-rig.ts';

const id = 'resp-01testrequest0000000000001';
const kept = async (rig: StoredRig, account = 'acme') =>
  (await rig.stored.responses.read(account, [id])).get(id);
const last = (text: string): Value => parsed(text.split('\ndata: ').at(-1) ?? '');
const modes = [true, false];

/** The object that a client ends up with. */
const whole = (text: string, stream: boolean): Value =>
  stream ? (last(text)['response'] as Value) : parsed(text);

describe.each(modes)('a stored answer (stream: %s)', (stream) => {
  it('is stored as its client got it, until it expires', async () => {
    const rig = new StoredRig();
    const { text, headers } = await rig.create({ stream });
    const found = await kept(rig);
    expect(found?.body.response).toEqual(whole(text, stream));
    expect(found?.body.response).toMatchObject({ id, status: 'completed', store: true });
    expect(found?.body.input).toMatchObject([{ content: [{ text: 'hi' }] }]);
    expect(found?.head.expires).toBe(Math.floor(rig.clock.now() / 1000) + 30 * 24 * 60 * 60);
    expect(headers['x-relay-store']).toBeUndefined();
  });

  it('is stored in full even if its client has left', async () => {
    const rig = new StoredRig();
    rig.upstream({ steps: [delta('Hel'), 1000, delta('lo'), ...hello.slice(2)] });
    await rig.create({ stream }, { leaveAfter: 1 });
    expect((await kept(rig))?.body.response).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'Hello' }] }],
    });
  });
});

describe.each(modes)('an answer that is not stored (stream: %s)', (stream) => {
  it.each([
    ['its client sends store: false', { store: false }, undefined],
    ['its key may not store', {}, plainKey],
    ['its key may not store, despite store: true', { store: true }, plainKey],
  ])('because %s touches no store and reports store: false', async (_, body, key) => {
    const rig = new StoredRig();
    rig.stored.failing = new Error('touched');
    const headers = key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } };
    const { text } = await rig.create({ ...body, stream }, headers);
    expect(whole(text, stream)).toMatchObject({ status: 'completed', store: false });
    expect([rig.faults, rig.events]).toEqual([[], []]);
  });

  it.each([
    ['is down', new StoreUnavailable('down'), 'write_failed'],
    ['keeps throttling', new StoreBusy('throttled'), 'write_failed'],
    ['rejects it as too large', new ResponseTooLarge(), 'too_large'],
    ['has a bug', new Error('odd'), 'write_failed'],
  ])('because the store %s is complete within 2 s and reports it', async (_, failing, why) => {
    const rig = new StoredRig();
    rig.stored.failing = failing;
    const { text, headers, said, status } = await rig.create({ stream });
    expect(status).toBe(200);
    expect(whole(text, stream)).toMatchObject({
      status: 'completed',
      store: false,
      output: [{ content: [{ text: 'Hello' }] }],
    });
    expect(said.at(-1)?.atMs).toBeLessThanOrEqual(2_000);
    // A stream has sent its headers before this is known.
    expect(headers['x-relay-store']).toBe(stream ? undefined : 'failed');
    const of = { request_id: id.slice(5), account: 'acme' };
    const notTakenBack = { name: 'response_not_taken_back', fields: of };
    expect(rig.events).toEqual([
      { name: 'response_not_stored', fields: { ...of, why } },
      ...(why === 'too_large' ? [] : [notTakenBack]),
    ]);
    expect(rig.logged).toMatchObject([{ status: 200, end: 'completed' }]);
    rig.stored.failing = undefined;
    expect(await kept(rig)).toBeUndefined();
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('because the store is slow is removed if the store gets it later', async () => {
    const rig = new StoredRig();
    const put = rig.stored.responses.put.bind(rig.stored.responses);
    let isThere = false;
    rig.stored.responses.put = async (response) => {
      await rig.clock.sleep(3_000);
      await put(response);
      isThere = true;
    };
    const { text, said } = await rig.create({ stream });
    expect(whole(text, stream)).toMatchObject({ store: false });
    expect(said.at(-1)?.atMs).toBe(2_000);
    expect(rig.events).toMatchObject([{ fields: { why: 'write_late' } }]);
    expect(isThere).toBe(true);
    expect(await kept(rig)).toBeUndefined();
  });
});

describe('a store that throttles once', () => {
  it.each([new StoreBusy('throttled'), new StoreUnavailable('no reply')])(
    'is retried and gets the answer: %s',
    async (failing) => {
      const rig = new StoredRig();
      const put = rig.stored.responses.put.bind(rig.stored.responses);
      let tries = 0;
      rig.stored.responses.put = (response) => {
        tries += 1;
        return tries === 1 ? Promise.reject(failing) : put(response);
      };
      expect(parsed((await rig.create({})).text)).toMatchObject({ store: true });
      expect((await kept(rig))?.head.status).toBe('completed');
      expect(rig.events).toEqual([]);
    },
  );
});

describe('a failed answer', () => {
  const breaksOff: Step[] = [delta('Hel'), reset];

  it('can be read as failed if its client has seen its start', async () => {
    const rig = new StoredRig();
    const { text } = await rig.upstream({ steps: breaksOff }).create({ stream: true });
    const event = last(text);
    expect(event).toMatchObject({ type: 'response.failed', response: { status: 'failed', store: true } });
    const found = await kept(rig);
    expect(found?.head.status).toBe('failed');
    expect(found?.body.response).toEqual(event['response']);
    expect(found?.body.seal).toBeUndefined();
    expect((await rig.ask(`GET /${id}`)).json).toEqual(event['response']);
  });

  it('that cannot be stored reports it in its last event', async () => {
    const rig = new StoredRig();
    rig.stored.failing = new StoreUnavailable('down');
    const { text } = await rig.upstream({ steps: breaksOff }).create({ stream: true });
    expect(last(text)).toMatchObject({ type: 'response.failed', response: { store: false } });
  });

  it.each([
    ['before anything was sent', { status: 400 }, true],
    ['before anything was sent', { status: 400 }, false],
    ['before it was complete', { steps: breaksOff }, false],
  ])('%s is a rejection, which is not stored (stream: %s)', async (_, script, stream) => {
    const rig = new StoredRig();
    const { status } = await rig.upstream(script).create({ stream });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(await kept(rig)).toBeUndefined();
    expect(rig.events.filter(({ name }) => name === 'response_not_stored')).toEqual([]);
  });
});
