import { describe, expect, it } from 'vitest';
import { closeExpired, type OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import type { RelayRequest } from '../../../../shared/relay/http/http.ts';
import { cancelResponse } from '../../../../shared/relay/stored/routes.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { BillingRig, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import {
  delta,
  demoKey,
  done,
  finish,
  hang,
  keyRow,
  usage,
  type Answer,
  type Step,
} from '../../../support/core-rig.ts';

const path = '/v1/responses';
const ask = { model: 'm', input: 'hi', max_output_tokens: 78, background: true };
const id = 'resp-01call00000000000000000001';
const requestId = '01call00000000000000000001';
const of = { account: 'acme', id };
const answered: Step[] = [delta('Hello'), finish(), usage(5, 3), done];

function rigOf(steps: Step[] = answered, options: BillingOptions = {}): BillingRig {
  const rig = new BillingRig({ key: { store: true }, ...options });
  return rig.granted(yuan).upstream({ steps });
}

const accepted = (rig: BillingRig, more: object = {}): Promise<Answer> =>
  rig.call({ ...ask, ...more }, { path });

async function head(rig: BillingRig) {
  return (await rig.stored.responses.heads('acme', [id])).get(id);
}

async function object(rig: BillingRig): Promise<Record<string, unknown> | undefined> {
  return (await rig.stored.responses.read('acme', [id])).get(id)?.body.response;
}

async function swept(rig: BillingRig): Promise<void> {
  const nowSeconds = rig.clock.now() / 1000 + 180;
  for (const write of rig.item ? closeExpired(rig.item, nowSeconds, 110) : []) await rig.quotas.close(write);
}

const spent = (rig: BillingRig): bigint | undefined => rig.item?.spent;

function balanced(rig: BillingRig): void {
  const {
    available,
    spent: paid,
    granted,
    open,
  } = rig.item ?? { available: 0n, spent: 0n, granted: 1n, open: new Map() };
  expect({ open: open.size, sum: available + paid }).toEqual({ open: 0, sum: granted });
}

const cancels = async (rig: BillingRig): Promise<Record<string, unknown>> => {
  const response = await cancelResponse(
    { clock: rig.clock, random: { next: () => 0.5 }, stored: rig.stored },
    { key: keyRow() },
    { id, request: { id: 'cancelling' } as RelayRequest },
  );
  await response.done;
  return JSON.parse(typeof response.body === 'string' ? response.body : '');
};

describe('a background call', () => {
  it('is rejected and named, at no charge, if the host cannot run it', async () => {
    const rig = rigOf();
    Object.assign(rig.stored, { startRun: undefined });
    const { status, text } = await accepted(rig);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({
      error: { param: 'background', code: 'unsupported_parameter' },
    });
    expect(await head(rig)).toBeUndefined();
    balanced(rig);
  });

  it('is stored as queued, started with its id only, and reserves nothing yet', async () => {
    const rig = rigOf();
    const answer = await accepted(rig);
    expect(answer.status).toBe(200);
    const shown = JSON.parse(answer.text);
    expect(shown).toMatchObject({
      id,
      status: 'queued',
      background: true,
      store: true,
      output: [],
      usage: null,
    });
    expect(rig.stored.started).toEqual([of]);
    expect(rig.sent).toEqual([]);
    expect(rig.open).toEqual([]);
    expect(await object(rig)).toEqual(shown);
    expect(JSON.stringify(await rig.stored.responses.read('acme', [id]))).not.toContain('sk-test');
  });

  it('is rejected soon and at no charge while the store does not answer', async () => {
    const rig = rigOf();
    rig.stored.failing = new StoreUnavailable('away');
    const { status, said } = await accepted(rig);
    expect(status).toBe(503);
    expect(said[0]?.atMs).toBeLessThan(10_000);
    expect(rig.events).toEqual([]);
    balanced(rig);
    expect(spent(rig)).toBe(0n);
  });

  it('may start its run for a minute after acceptance, however long the request took before', async () => {
    const rig = rigOf(answered, {
      composed: (ports, handleOf) => {
        const find = (key: string) => ports.clock.sleep(70_000).then(() => ports.keys.find(key));
        return handleOf({ ...ports, keys: { find } });
      },
    });
    await accepted(rig);
    expect((await object(rig))?.['status']).toBe('queued');
    await rig.clock.run(rig.clock.sleep(50_000));
    await rig.clock.run(rig.runs());
    expect((await head(rig))?.status).toBe('completed');
  });

  it('is accepted if its run has begun, even if the start got no reply', async () => {
    const rig = rigOf();
    let run: Promise<void> | undefined;
    Object.assign(rig.stored, {
      startRun: () => {
        run ??= rig.runs(of);
        return Promise.reject(new StoreUnavailable('no reply'));
      },
    });
    expect((await accepted(rig)).status).toBe(200);
    await rig.clock.run(run ?? Promise.resolve());
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    expect(spent(rig)).toBe(11_000_000n);
    balanced(rig);
  });
});

describe('a background call that costs money', () => {
  const refusedWith = async (rig: BillingRig, more: object = {}): Promise<unknown> => {
    const { status, text } = await accepted(rig, more);
    expect(status).toBe(429);
    expect(rig.stored.started).toEqual([]);
    return JSON.parse(text).error.code;
  };

  it('is rejected at once for an empty account', async () => {
    const rig = new BillingRig({ key: { store: true } }).upstream({ steps: answered });
    expect(await refusedWith(rig)).toBe('insufficient_quota');
  });

  it('is rejected at once if the balance was emptied a moment ago', async () => {
    const rig = rigOf();
    await rig.call({ ...ask, background: false }, { path });
    rig.quotas.grant('acme', -yuan + 11_000_000n);
    expect(await refusedWith(rig)).toBe('insufficient_quota');
  });

  it('is rejected at once by the budget of its key', async () => {
    const budget = { amount: 0.011, period: 'day' };
    const rig = rigOf(answered, { key: { store: true, budget } });
    expect(await refusedWith(rig)).toBe('insufficient_quota');
    expect([...rig.counters.budgets.values()].every(({ used }) => used === 0n)).toBe(true);
  });

  it('is rejected at once while its key is at its limit of concurrent calls', async () => {
    const rig = rigOf([delta('a'), 100_000, ...answered], {
      key: { store: true, max_concurrency: 1 },
      channels: [{ idle_seconds: 300 }],
    });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(1_000));
    expect((await rig.call(ask, { path })).status).toBe(429);
    await rig.clock.run(run);
  });

  it('is paid by a plan, whose slot is used when the run begins', async () => {
    const plan = [{ id: 'basic', value: 1, models: ['m'] }];
    const rig = new BillingRig({ key: { store: true }, plan }).granted(0n).upstream({ steps: answered });
    await accepted(rig);
    expect([...(rig.item?.plan.values() ?? [])]).toEqual([]);
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    expect([...(rig.item?.plan.values() ?? [])]).toEqual([1]);
    expect(spent(rig)).toBe(0n);
  });

  it('is not charged if the balance is spent before its run, and the response reports it', async () => {
    const rig = rigOf();
    await accepted(rig);
    rig.quotas.grant('acme', -yuan);
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'insufficient_quota' } });
    expect(rig.logged.at(-1)).toMatchObject({ request_id: requestId, code: 'insufficient_quota' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  /** Another call of the key, which runs until it is closed. */
  const busy = async (rig: BillingRig) => {
    const entry = {
      until: rig.clock.now() / 1000 + 900,
      amount: 1n,
      input: 0n,
      key: keyRow().hash.slice(0, 12),
      model: 'm',
      price: '',
      slot: '',
      official: false,
      tombstone: false,
    };
    const of = { account: 'acme', id: 'another', entry };
    await rig.quotas.reserve({ ...of, permit: { key: entry.key, max: 1 } });
    const closeRecord = { id: 'another', kind: 'released', charge: 0n, at: 0 } as const;
    return () => rig.quotas.close({ ...of, releaseSlot: true, closeRecord });
  };

  it.each([
    ['a concurrency permit', 20_000, 'completed', 11_000_000n],
    ['a concurrency permit for no longer than a minute', 90_000, 'failed', 0n],
  ])('reserves when its run begins, which waits for %s', async (_case, freeMs, status, charge) => {
    const rig = rigOf(answered, { key: { store: true, max_concurrency: 1 } });
    await accepted(rig);
    const over = await busy(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(freeMs));
    await over();
    await rig.clock.run(run);
    expect(await object(rig)).toMatchObject({ status });
    if (status === 'failed')
      expect(await object(rig)).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
    expect(spent(rig)).toBe(charge);
    balanced(rig);
  });

  it('is not charged if it is cancelled while its run waits', async () => {
    const rig = rigOf(answered, { key: { store: true, max_concurrency: 1 } });
    await accepted(rig);
    const over = await busy(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(5_000));
    await rig.clock.run(cancels(rig));
    const cancelledMs = rig.clock.now();
    await rig.clock.run(run);
    expect(rig.clock.now() - cancelledMs).toBeLessThan(3_000);
    await over();
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'cancelled' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('is metered as it was when accepted', async () => {
    const account = AccountRow.parse({ account: 'acme', metered: true });
    const keys = { [demoKey]: { row: keyRow({ store: true }), account } };
    const rig = new BillingRig({ keys }).granted(0n).upstream({ steps: answered });
    await accepted(rig);
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    const items = [...rig.quotas.items.values()];
    expect(items.map(({ available }) => available).every((available) => available === 0n)).toBe(true);
    expect(items.reduce((sum, { metered = 0n }) => sum + metered, 0n)).toBe(11_000_000n);
  });
});

describe('a response accepted by a version before decision 93', () => {
  /** Stores it as that version did: with the request under another name and a reservation for its run. */
  async function acceptedBefore(rig: BillingRig): Promise<OpenEntry> {
    await accepted(rig);
    const stored = (await rig.stored.responses.read('acme', [id])).get(id);
    if (!stored) throw new Error('nothing is stored');
    const { call, ...body } = stored.body;
    rig.stored.set({ ...stored, body: { ...body, request: { ...call, reservation: { part: 0 } } } });
    const entry = {
      until: rig.clock.now() / 1000 + 60,
      amount: 178_000_000n,
      input: 5_000_000n,
      key: keyRow().hash.slice(0, 12),
      model: 'm',
      price: '1:tokens:1:2',
      slot: '',
      official: false,
      tombstone: false,
      queued: true,
    };
    await rig.quotas.reserve({ account: 'acme', id: requestId, entry });
    return entry;
  }

  it('runs on its waiting reservation and is charged once', async () => {
    const rig = rigOf();
    await acceptedBefore(rig);
    await rig.clock.run(Promise.all([rig.runs(), rig.runs()]));
    expect(rig.sent).toHaveLength(1);
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    expect(rig.item?.settled).toBe(1);
    expect(spent(rig)).toBe(11_000_000n);
    balanced(rig);
  });

  it('costs nothing if it never runs, because its reservation expires', async () => {
    const rig = rigOf();
    await acceptedBefore(rig);
    await rig.clock.run(cancels(rig));
    await rig.clock.run(rig.clock.sleep(200_000));
    await swept(rig);
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });
});

describe('a background run', () => {
  it('answers, stores the whole response, and charges it once', async () => {
    const rig = rigOf();
    const headers = { authorization: `Bearer ${demoKey}`, 'x-relay-tags': 'team=search' };
    await rig.call({ ...ask, user: 'alice' }, { path, headers });
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({
      id,
      status: 'completed',
      background: true,
      store: true,
      output: [{ content: [{ text: 'Hello' }] }],
      usage: { input_tokens: 5, output_tokens: 3 },
    });
    expect(await head(rig)).toMatchObject({ status: 'completed' });
    const stored = (await rig.stored.responses.read('acme', [id])).get(id);
    expect(stored?.body.request).toBeUndefined();
    expect(rig.logged.at(-1)).toMatchObject({
      request_id: requestId,
      endpoint: 'responses',
      end: 'completed',
      charge: '0.011',
      end_user: 'alice',
      tags: { team: 'search' },
    });
    expect(spent(rig)).toBe(11_000_000n);
    balanced(rig);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('happens once, however often its event is delivered', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(Promise.all([rig.runs(), rig.runs(), rig.runs()]));
    await rig.clock.run(rig.runs());
    expect(rig.sent).toHaveLength(1);
    expect(spent(rig)).toBe(11_000_000n);
    expect(rig.events.filter(({ name }) => name === 'background_not_claimed')).toHaveLength(3);
  });

  it('calls no upstream when its event is late', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(rig.clock.sleep(61_000));
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('charges once when its reservation gets no reply', async () => {
    const rig = rigOf();
    await accepted(rig);
    rig.store.meets('reserve', 'lost');
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    expect(spent(rig)).toBe(11_000_000n);
    balanced(rig);
  });

  it.each(['lost', 'dropped'] as const)('fails at no charge when every reservation is %s', async (fault) => {
    const rig = rigOf();
    await accepted(rig);
    rig.store.always(fault, 'reserve');
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    await swept(rig);
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('fails with the error and at no charge when every candidate fails before content', async () => {
    const rig = rigOf().upstream({ status: 500 });
    await accepted(rig);
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(await head(rig)).toMatchObject({ status: 'failed' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it.each([15, 30])(
    'ends as incomplete a minute before the host limit of %i minutes, with its text and charge',
    async (minutes) => {
      const slow: Step[] = [delta('Hello there'), hang];
      const patient = {
        channels: [{ first_content_seconds: 1800, idle_seconds: 1800, total_seconds: 1800 }],
      };
      const rig = rigOf(slow, patient);
      await accepted(rig);
      const startedMs = rig.clock.now();
      await rig.clock.run(rig.runs({ hostDeadlineMs: startedMs + minutes * 60_000 }));
      expect(rig.clock.now() - startedMs).toBeLessThan((minutes - 1) * 60_000 + 10_000);
      expect(rig.clock.now() - startedMs).toBeGreaterThanOrEqual((minutes - 1) * 60_000);
      expect(await object(rig)).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ content: [{ text: 'Hello there' }] }],
      });
      expect(spent(rig)).toBeGreaterThan(5_000_000n);
      balanced(rig);
      expect(rig.clock.pendingTimers).toBe(0);
    },
  );

  it('renews its claim and its lease while it runs', async () => {
    const rig = rigOf([delta('a'), 100_000, ...answered], { channels: [{ idle_seconds: 300 }] });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(95_000));
    const nowSeconds = rig.clock.now() / 1000;
    expect((await head(rig))?.background?.until).toBeGreaterThan(nowSeconds + 30);
    expect(rig.open[0]?.until).toBeGreaterThan(nowSeconds);
    await rig.clock.run(run);
    expect(await object(rig)).toMatchObject({ status: 'completed' });
  });

  it('that was declared dead stops, stays failed, and is charged for its use', async () => {
    const rig = rigOf([delta('Hello'), hang], { channels: [{ idle_seconds: 900 }] });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(3_000));
    // The readers believe that the run is dead, because its claim is not renewed.
    const runs = { ...rig.stored.runs };
    rig.stored.runs.renew = () => Promise.reject(new StoreUnavailable('away'));
    await rig.clock.run(rig.clock.sleep(70_000));
    expect(await rig.stored.runs.fail('acme', id, 0)).toMatchObject({ status: 'failed' });
    Object.assign(rig.stored.runs, runs);
    const foundMs = rig.clock.now();
    await rig.clock.run(run);
    expect(rig.clock.now() - foundMs).toBeLessThan(5_000);
    expect(await head(rig)).toMatchObject({ status: 'failed' });
    expect(spent(rig)).toBeGreaterThan(5_000_000n);
    balanced(rig);
  });
});

describe('cancelling', () => {
  it('a queued response costs nothing and prevents its run', async () => {
    const rig = rigOf();
    await accepted(rig);
    expect(await rig.clock.run(cancels(rig))).toMatchObject({
      id,
      status: 'cancelled',
      output: [],
      error: null,
    });
    balanced(rig);
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await rig.clock.run(cancels(rig))).toMatchObject({ status: 'cancelled' });
    expect(spent(rig)).toBe(0n);
    expect(rig.item?.settled).toBe(0);
  });

  it('a running response stops it, keeps its text, and charges it', async () => {
    const rig = rigOf([delta('Hello there'), hang], { channels: [{ idle_seconds: 900 }] });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(5_500));
    expect(await rig.clock.run(cancels(rig))).toMatchObject({
      status: 'cancelled',
      incomplete_details: null,
      output: [{ content: [{ text: 'Hello there' }] }],
    });
    await rig.clock.run(run);
    expect(await head(rig)).toMatchObject({ status: 'cancelled' });
    expect(rig.logged.at(-1)?.usage_implausible).toBeFalsy();
    expect(spent(rig)).toBeGreaterThan(5_000_000n);
    balanced(rig);
  });

  it('a finished response returns it unchanged', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(rig.runs());
    expect(await rig.clock.run(cancels(rig))).toMatchObject({ status: 'completed' });
    expect(await head(rig)).toMatchObject({ status: 'completed' });
  });

  it('a response that was not a background call is rejected with the field’s name', async () => {
    const rig = rigOf();
    await accepted(rig, { background: false });
    await expect(rig.clock.run(cancels(rig))).rejects.toMatchObject({ param: 'response_id' });
  });
});

describe('a deleted response', () => {
  it('of a run is not written again, and its use is charged', async () => {
    const rig = rigOf([delta('Hello'), hang], { channels: [{ idle_seconds: 900 }] });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(5_500));
    await rig.stored.responses.remove('acme', id);
    const deletedMs = rig.clock.now();
    await rig.clock.run(run);
    expect(rig.clock.now() - deletedMs).toBeLessThan(5_000);
    expect(await head(rig)).toBeUndefined();
    expect(spent(rig)).toBeGreaterThan(5_000_000n);
    balanced(rig);
  });

  const deletes = async (rig: BillingRig): Promise<number> => {
    const { status, done } = await rig.respond(undefined, { method: 'DELETE', path: `${path}/${id}` });
    await done;
    return status;
  };

  it('in the queue costs nothing and never runs', async () => {
    const rig = rigOf();
    await accepted(rig);
    expect(await rig.clock.run(deletes(rig))).toBe(200);
    balanced(rig);
    await rig.clock.run(rig.runs());
    expect(await rig.clock.run(deletes(rig))).toBe(404);
    expect(rig.sent).toEqual([]);
    expect(await head(rig)).toBeUndefined();
    expect(rig.item?.settled).toBe(0);
    expect(rig.faults).toEqual([]);
  });
});
