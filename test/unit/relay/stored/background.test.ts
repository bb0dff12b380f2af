import { describe, expect, it } from 'vitest';
import { closeExpired } from '../../../../shared/billing/quota-item.ts';
import type { RelayRequest } from '../../../../shared/relay/http/http.ts';
import { cancel } from '../../../../shared/relay/stored/routes.ts';
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
  const ports = { clock: rig.clock, random: { next: () => 0.5 }, quotas: rig.store, stored: rig.stored };
  const log = {
    request: () => {},
    event: () => {},
    fault: (_: string, error: unknown) => void rig.faults.push(error),
  };
  const response = await cancel(
    { ...ports, log },
    { key: keyRow() },
    { id, request: { id: 'cancelling' } as RelayRequest },
  );
  await response.done;
  return JSON.parse(typeof response.body === 'string' ? response.body : '');
};

describe('an accepted background call', () => {
  it('is refused by name where nothing runs what nobody waits for, and costs nothing', async () => {
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

  it('is queued, stored with its reservation, and started with its id alone', async () => {
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
    expect(rig.open).toMatchObject([{ queued: true, amount: 178_000_000n }]);
    expect(await object(rig)).toEqual(shown);
    expect(JSON.stringify(await rig.stored.responses.read('acme', [id]))).not.toContain('sk-test');
  });

  it('is refused soon while no store answers, and what it holds is free without a charge', async () => {
    const rig = rigOf();
    rig.stored.failing = new StoreUnavailable('away');
    rig.store.always('dropped', 'close');
    const { status, said } = await accepted(rig);
    expect(status).toBe(503);
    expect(said[0]?.atMs).toBeLessThan(10_000);
    expect(rig.events).toEqual([]);
    rig.store.always('fine', 'close');
    const nowSeconds = rig.clock.now() / 1000 + 180;
    for (const write of rig.item ? closeExpired(rig.item, nowSeconds, 110) : []) await rig.store.close(write);
    balanced(rig);
    expect(spent(rig)).toBe(0n);
  });

  it('has its minute to begin in from its acceptance on, however long it was read before', async () => {
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

  it('is accepted when its run had begun, though nobody heard that it was started', async () => {
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

describe('a run', () => {
  it('answers, keeps the whole response, and charges it once', async () => {
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

  it('is one, however often its event is delivered', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(Promise.all([rig.runs(), rig.runs(), rig.runs()]));
    await rig.clock.run(rig.runs());
    expect(rig.sent).toHaveLength(1);
    expect(spent(rig)).toBe(11_000_000n);
    expect(rig.events.filter(({ name }) => name === 'background_not_claimed')).toHaveLength(3);
  });

  it('asks no upstream when its event is late', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(rig.clock.sleep(61_000));
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('asks no upstream when its reservation is closed, whoever did that', async () => {
    const rig = rigOf();
    await accepted(rig);
    const [entry] = rig.open;
    if (!entry) throw new Error('nothing is open');
    const closeRecord = { id: requestId, kind: 'released', charge: 0n, at: 0 } as const;
    await rig.quotas.close({ account: 'acme', id: requestId, entry, releaseSlot: true, closeRecord });
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('charges once when the reply of its take-over is lost', async () => {
    const rig = rigOf();
    await accepted(rig);
    rig.store.meets('renew', 'lost');
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'completed' });
    expect(spent(rig)).toBe(11_000_000n);
    balanced(rig);
  });

  it.each(['lost', 'dropped'] as const)('releases all when every take-over is %s', async (fault) => {
    const rig = rigOf();
    await accepted(rig);
    rig.store.always(fault, 'renew');
    await rig.clock.run(rig.runs());
    expect(rig.sent).toEqual([]);
    expect(await object(rig)).toMatchObject({ status: 'failed' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('ends failed with the error, and for nothing, when every candidate fails before content', async () => {
    const rig = rigOf().upstream({ status: 500 });
    await accepted(rig);
    await rig.clock.run(rig.runs());
    expect(await object(rig)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(await head(rig)).toMatchObject({ status: 'failed' });
    expect(spent(rig)).toBe(0n);
    balanced(rig);
  });

  it('ends incomplete after 14 minutes, with its text and its charge', async () => {
    const slow: Step[] = [delta('Hello there'), hang];
    const patient = { channels: [{ first_content_seconds: 900, idle_seconds: 900 }] };
    const rig = rigOf(slow, patient);
    await accepted(rig);
    const startedMs = rig.clock.now();
    await rig.clock.run(rig.runs());
    expect(rig.clock.now() - startedMs).toBeLessThan(14 * 60_000 + 10_000);
    expect(rig.clock.now() - startedMs).toBeGreaterThanOrEqual(14 * 60_000);
    expect(await object(rig)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ content: [{ text: 'Hello there' }] }],
    });
    expect(spent(rig)).toBeGreaterThan(5_000_000n);
    balanced(rig);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('prolongs its claim and its lease while it runs', async () => {
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

  it('that was found dead stops, stays failed, and is charged for what it used', async () => {
    const rig = rigOf([delta('Hello'), hang], { channels: [{ idle_seconds: 900 }] });
    await accepted(rig);
    const run = rig.runs();
    await rig.clock.run(rig.clock.sleep(3_000));
    // Its clock stood still, as far as the readers could tell.
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

describe('cancel', () => {
  it('of a queued response releases its reservation, and nothing runs', async () => {
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
    expect(rig.item?.settled).toBe(1);
  });

  it('stops a run, shows what it had written, and charges that', async () => {
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

  it('after the end returns the response as it ended', async () => {
    const rig = rigOf();
    await accepted(rig);
    await rig.clock.run(rig.runs());
    expect(await rig.clock.run(cancels(rig))).toMatchObject({ status: 'completed' });
    expect(await head(rig)).toMatchObject({ status: 'completed' });
  });

  it('of a response that was answered within its request is refused by name', async () => {
    const rig = rigOf();
    await accepted(rig, { background: false });
    await expect(rig.clock.run(cancels(rig))).rejects.toMatchObject({ param: 'response_id' });
  });
});

describe('a deleted response', () => {
  it('of a run is not written again, and what was used is charged', async () => {
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

  it('that was queued is released at once, gives the call of its plan back, and never runs', async () => {
    const plan = [{ id: 'basic', value: 5, models: ['m'] }];
    const rig = rigOf(answered, { plan });
    await accepted(rig);
    expect(await rig.clock.run(deletes(rig))).toBe(200);
    expect([...(rig.item?.plan.values() ?? [])]).toEqual([0]);
    expect(rig.item?.last).toMatchObject({ kind: 'released', charge: 0n });
    balanced(rig);
    await rig.clock.run(rig.runs());
    expect(await rig.clock.run(deletes(rig))).toBe(404);
    expect(rig.sent).toEqual([]);
    expect(await head(rig)).toBeUndefined();
    expect(rig.item?.settled).toBe(1);
    expect(rig.faults).toEqual([]);
  });
});
