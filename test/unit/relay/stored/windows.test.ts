import { describe, expect, it } from 'vitest';
import { closeExpired } from '../../../../shared/billing/quota-item.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { byTokens, yuan } from '../../../support/billing-rig.ts';
import {
  CoreRig,
  delta,
  demoKey,
  done,
  finish,
  keyRow,
  usage,
  type RigOptions,
} from '../../../support/core-rig.ts';

import { WindowVendor } from '../../../support/window-vendor.ts';

const path = '/v1/responses';
const charges = [{ ...byTokens, service_tiers: { background_2h: 0.7, background_8h: 0.6 } }];
const inWindow = (completion_window: unknown): object => ({
  model: 'm',
  input: 'hi',
  max_output_tokens: 78,
  background: true,
  background_options: { completion_window },
});

function rigOf(options: RigOptions = {}): CoreRig {
  const keys = { [demoKey]: { row: keyRow({ store: true }) } };
  const rig = new CoreRig(Object.assign(options, { charges, keys, ...options }));
  rig.quotas.grant('acme', yuan);
  rig.upstream({ steps: [delta('Hello'), finish(), usage(5, 3), done] });
  return rig;
}

const atOnce = [{ params: { completion_windows: 'run_at_once' } }];

describe('a call with a completion window', () => {
  it.each<[string, string, object, RigOptions, string]>([
    ['no channel supports it', path, {}, {}, 'background_options.completion_window'],
    [
      'it is an unknown window',
      path,
      inWindow('soon'),
      { channels: atOnce },
      'background_options.completion_window',
    ],
    ['it is an object', path, inWindow({}), { channels: atOnce }, 'background_options.completion_window'],
    [
      'it is in the foreground',
      path,
      { background: false },
      { channels: atOnce },
      'background_options.completion_window',
    ],
    [
      'it also requests another tier',
      path,
      { service_tier: 'priority' },
      { channels: atOnce },
      'background_options.completion_window',
    ],
    ['it searches the web', path, { model: 'web-m' }, { channels: atOnce }, 'model'],
    ['its key does not store', path, { background: false }, { keys: undefined }, 'background_options'],
    [
      'it is a chat call that names the tier',
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: 'hi' }], service_tier: 'background_8h' },
      { channels: atOnce },
      'service_tier',
    ],
  ])('is rejected with the name of the field if %s', async (_case, at, body, options, param) => {
    const {
      background: _,
      background_options: __,
      input: ___,
      ...plain
    } = inWindow('8h') as Record<string, unknown>;
    const asked = at === path ? { ...inWindow('8h'), ...body } : { ...plain, ...body };
    const rig = rigOf(options);
    const answer = await rig.post(asked, { path: at });
    expect([answer.status, JSON.parse(answer.text).error.param]).toEqual([400, param]);
    expect([rig.sent, rig.stored.started, rig.quotas.items.get('acme')?.available]).toEqual([[], [], yuan]);
  });

  it.each(['8h', 'soonest'])(
    'runs at once at the standard price if its channel says so: %s',
    async (window) => {
      const rig = rigOf({ channels: atOnce });
      expect((await rig.post(inWindow(window), { path })).status).toBe(200);
      await rig.clock.run(rig.runs());
      expect(rig.quotas.items.get('acme')?.spent).toBe(11_000_000n);
      expect(JSON.stringify(rig.sent[0]?.json)).not.toMatch(/background|8h|service_tier/);
      expect(rig.logged.at(-1)?.service_tier).toBeUndefined();
    },
  );
});

const submitting = [{ type: 'openai', dialect: 'responses', params: { completion_windows: 'submit' } }];
const requestId = '01call00000000000000000001';
const id = `resp-${requestId}`;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** 22 tokens of input and 78 of output, at the standard price. */
const held = 178_000_000n;
/** 5 tokens of input and 3 of output for 60 %. */
const inWindowOf8h = 6_600_000n;

/** Moves a rig's time, polls and sweeps, and reads its state. */
function watch(rig: CoreRig) {
  const account = () => rig.quotas.items.get('acme');
  const pass = (ms: number) => rig.clock.run(rig.clock.sleep(ms));
  const poll = () => rig.clock.run(rig.polls());
  const stored = async () => (await rig.stored.responses.read('acme', [id])).get(id);
  /** Closes expired reservations like the sweeper. */
  const sweep = async () => {
    const item = account();
    const writes = item ? closeExpired(item, Math.floor(rig.clock.now() / 1000), 120) : [];
    for (const write of writes) await rig.quotas.close(write);
    return writes.length;
  };
  const end = async () => {
    const { open, available = 0n, spent = 0n } = account() ?? {};
    expect(available + spent + [...(open?.values() ?? [])].reduce((sum, one) => sum + one.amount, 0n)).toBe(
      yuan,
    );
    return {
      open: open?.size,
      spent,
      status: (await stored())?.head.status,
      waiting: (await rig.stored.waiting.list()).length,
    };
  };
  return { account, pass, poll, stored, sweep, end };
}

/** A call that its vendor has accepted. */
async function submitted(window = '8h', more: RigOptions = {}) {
  const vendor = new WindowVendor();
  const rig = rigOf(Object.assign(more, { channels: submitting, send: vendor.send }));
  expect((await rig.post(inWindow(window), { path, id: requestId })).status).toBe(200);
  await rig.clock.run(rig.runs());
  return { vendor, rig, ...watch(rig) };
}

describe('a call that waits for its vendor', () => {
  it('is submitted in the vendor’s form and reserves the higher price', async () => {
    const { vendor, rig, account, end } = await submitted();
    expect(vendor.taken).toMatchObject([
      {
        background: true,
        background_options: { completion_window: '8h' },
        store: true,
        max_output_tokens: 78,
      },
    ]);
    expect(vendor.taken[0]).not.toHaveProperty('stream');
    expect([...(account()?.open.values() ?? [])]).toMatchObject([{ amount: held }]);
    expect(await end()).toMatchObject({ open: 1, spent: 0n, status: 'in_progress', waiting: 1 });
    expect(rig.faults).toEqual([]);
  });

  it.each<[string, string, (vendor: WindowVendor) => void, bigint, string]>([
    ['in its window', '8h', () => {}, inWindowOf8h, 'background_8h'],
    ['in 2 hours', '2h', () => {}, 7_700_000n, 'background_2h'],
    [
      'at the higher price of the reported window',
      '8h',
      (one) => (one.reported = '2h'),
      7_700_000n,
      'background_2h',
    ],
    ['at the reported standard price', '8h', (one) => (one.reported = 'soonest'), 11_000_000n, ''],
    [
      'at the standard price if the reported window has no price',
      '8h',
      (one) => (one.reported = '4h'),
      11_000_000n,
      'background_4h',
    ],
  ])('is settled once, %s', async (_case, window, change, spent, tier) => {
    const { vendor, rig, pass, poll, end, stored } = await submitted(window);
    await poll();
    expect(await end()).toMatchObject({ open: 1, spent: 0n });
    vendor.word = 'completed';
    change(vendor);
    await pass(minuteMs);
    await poll();
    expect(await end()).toEqual({ open: 0, spent, status: 'completed', waiting: 0 });
    const shown = (await stored())?.body.response as { output: unknown; usage: unknown };
    expect(shown).toMatchObject({
      id,
      output: [{ content: [{ text: 'Hello' }] }],
      usage: { output_tokens: 3 },
    });
    expect(rig.logged.at(-1)?.service_tier ?? '').toBe(tier);
    expect(rig.faults).toEqual([]);
  });

  it.each<[string, (vendor: WindowVendor) => void, string, bigint]>([
    ['it fails', (one) => (one.word = 'failed'), 'failed', 0n],
    ['it expires', (one) => (one.word = 'expired'), 'failed', 0n],
    ['the vendor lost it', (one) => (one.word = 'lost'), 'failed', 0n],
    [
      'it finishes with impossible counts',
      (one) => Object.assign(one, { word: 'completed', counts: { input_tokens: 9e15, output_tokens: 9e15 } }),
      'completed',
      -1n,
    ],
    [
      'it finishes without counts',
      (one) => Object.assign(one, { word: 'completed', counts: null }),
      'completed',
      -1n,
    ],
  ])('ends within its reservation if %s', async (_case, change, status, spent) => {
    const { vendor, pass, poll, end } = await submitted();
    change(vendor);
    await pass(20 * minuteMs);
    for (let minutes = 0; minutes < 6; minutes += 1) {
      await poll();
      await pass(minuteMs);
    }
    const ended = await end();
    expect(ended).toMatchObject({ open: 0, status, waiting: 0, ...(spent >= 0n && { spent }) });
    expect(ended.spent).toBeLessThanOrEqual(held);
    if (spent < 0n) expect(ended.spent).toBeGreaterThan(0n);
  });

  it('is polled again after failed polls', async () => {
    const { vendor, pass, poll, end } = await submitted();
    vendor.word = 'down';
    for (let minutes = 0; minutes < 5; minutes += 1) {
      await poll();
      await pass(minuteMs);
    }
    expect(await end()).toMatchObject({ open: 1, status: 'in_progress' });
    vendor.word = 'completed';
    await poll();
    expect(await end()).toEqual({ open: 0, spent: inWindowOf8h, status: 'completed', waiting: 0 });
  });

  it('does not count towards its key’s limit of concurrent calls', async () => {
    const keys = { [demoKey]: { row: keyRow({ store: true, max_concurrency: 1 }) } };
    const { vendor, rig, account } = await submitted('8h', { keys });
    await rig.post(inWindow('8h'), { path, id: requestId.replace(/1$/, '2') });
    await rig.clock.run(rig.runs());
    expect([vendor.taken.length, account()?.open.size]).toEqual([2, 2]);
  });

  it('is polled seldom and cancelled an hour after its window', async () => {
    const { vendor, pass, poll, end, sweep } = await submitted('2h');
    const minutesUntil = async (minutes: number): Promise<void> => {
      for (let minute = 0; minute < minutes; minute += 1) {
        await pass(minuteMs);
        await poll();
        expect(await sweep()).toBe(0);
      }
    };
    await minutesUntil(179);
    expect(vendor.asked.length).toBeLessThan(50);
    expect(await end()).toMatchObject({ open: 1, status: 'in_progress' });
    vendor.counts = null;
    await minutesUntil(10);
    expect(vendor.asked).toContain('POST /v1/responses/resp_vendor1/cancel');
    expect(await end()).toEqual({ open: 0, spent: 0n, status: 'failed', waiting: 0 });
  });

  it('is charged its input if its vendor never answers again', async () => {
    const { vendor, rig, pass, poll, end, sweep } = await submitted('2h');
    vendor.word = 'down';
    await pass(3 * hourMs + 16 * minuteMs);
    for (let minutes = 0; minutes < 6; minutes += 1) {
      await pass(minuteMs);
      await poll();
    }
    await sweep();
    const { spent, ...ended } = await end();
    expect(ended).toMatchObject({ open: 0, waiting: 0 });
    expect(spent).toBeGreaterThan(0n);
    expect(spent).toBeLessThan(22_000_000n);
    expect(rig.events.map(({ name }) => name)).toContain('background_lost');
  });

  it.each<[string, WindowVendor['counts'], bigint]>([
    ['the usage that the vendor reports', { input_tokens: 5, output_tokens: 3 }, inWindowOf8h],
    ['nothing if it reports nothing', null, 0n],
  ])('is cancelled at the vendor when its client cancels it, and costs %s', async (_case, counts, spent) => {
    const { vendor, rig, pass, poll, end } = await submitted();
    await rig.stored.runs.cancel('acme', id);
    vendor.counts = counts;
    await pass(minuteMs);
    await poll();
    expect(vendor.asked.at(-1)).toBe('POST /v1/responses/resp_vendor1/cancel');
    expect(await end()).toEqual({ open: 0, spent, status: 'cancelled', waiting: 0 });
  });

  it('is charged in full if it finished before its client cancelled it', async () => {
    const { vendor, rig, poll, end, stored } = await submitted();
    vendor.word = 'completed';
    await rig.stored.runs.cancel('acme', id);
    await poll();
    expect(await end()).toEqual({ open: 0, spent: inWindowOf8h, status: 'cancelled', waiting: 0 });
    expect((await stored())?.body.response).toMatchObject({ status: 'cancelled', output: [{}] });
  });

  it('is cancelled at the vendor when its client deletes it, and costs its input', async () => {
    const { vendor, rig, pass, poll, end, sweep } = await submitted();
    await rig.stored.responses.remove('acme', id);
    await poll();
    expect(vendor.asked.at(-1)).toBe('POST /v1/responses/resp_vendor1/cancel');
    await pass(3 * minuteMs);
    expect(await sweep()).toBe(1);
    const { spent, ...ended } = await end();
    expect(ended).toMatchObject({ open: 0, waiting: 0 });
    expect(spent).toBeGreaterThan(0n);
    expect(spent).toBeLessThan(22_000_000n);
  });

  it('is charged once by a hundred parallel polls', async () => {
    const { vendor, rig, end } = await submitted();
    vendor.word = 'completed';
    await rig.clock.run(Promise.all(Array.from({ length: 100 }, () => rig.polls())).then(() => {}));
    expect(await end()).toEqual({ open: 0, spent: inWindowOf8h, status: 'completed', waiting: 0 });
  });

  it('is not charged again by a poll that comes second', async () => {
    const { vendor, rig, account, poll, end } = await submitted();
    vendor.word = 'completed';
    const [waiting] = await rig.stored.waiting.list();
    await poll();
    if (waiting) await rig.stored.waiting.put(waiting);
    const other = account();
    if (other?.last) other.last = { ...other.last, id: 'another' };
    await poll();
    expect(await end()).toEqual({ open: 0, spent: inWindowOf8h, status: 'completed', waiting: 0 });
  });

  it('is charged once and stored, wherever the polling function dies', async () => {
    for (const isApplied of [false, true])
      for (let calls = 0; ; calls += 1) {
        const { vendor, rig, pass, poll, end } = await submitted();
        vendor.word = 'completed';
        const mortal = makeMortal(rig, { calls, isApplied });
        void rig.polls();
        await pass(5 * minuteMs);
        const wasKilled = mortal.revive();
        await poll();
        const where = `after ${calls} calls, the last one ${isApplied ? 'applied' : 'lost'}`;
        const ended = { open: 0, spent: inWindowOf8h, status: 'completed', waiting: 0 };
        expect([where, await end()]).toEqual([where, ended]);
        if (!wasKilled) break;
        expect(calls).toBeLessThan(40);
      }
  });

  it('leaves no money reserved and no call open, wherever the submitting run dies', async () => {
    const ends = new Set<bigint>();
    for (const isApplied of [false, true])
      for (let calls = 0; ; calls += 1) {
        const vendor = new WindowVendor();
        const rig = rigOf({ channels: submitting, send: vendor.send });
        await rig.post(inWindow('8h'), { path, id: requestId });
        const mortal = makeMortal(rig, { calls, isApplied });
        void rig.runs();
        await rig.clock.run(rig.clock.sleep(4 * minuteMs));
        const wasKilled = mortal.revive();
        const { poll, sweep, end } = watch(rig);
        await sweep();
        vendor.word = 'completed';
        await poll();
        const { open, spent, waiting } = await end();
        expect([calls, isApplied, open, waiting]).toEqual([calls, isApplied, 0, 0]);
        ends.add(spent);
        if (!wasKilled) break;
        expect(calls).toBeLessThan(40);
      }
    // Not begun, crashed with its input sent, or answered.
    expect([...ends].toSorted((a, b) => Number(a - b))).toEqual([0n, 3_000_000n, inWindowOf8h]);
  });

  it.each<[string, (options: RigOptions) => void]>([
    ['its rule', (options) => void (options.charges = [{ ...byTokens, input: 100, output: 200 }])],
    ['the windows of its channel', (options) => void (options.channels = [{ ...submitting[0], params: {} }])],
    [
      'the models of its channel',
      (options) => void (options.channels = [{ ...submitting[0], models: ['other'] }]),
    ],
    ['its channel to disabled', (options) => void (options.channels = [{ ...submitting[0], state: false }])],
  ])('ends as accepted after an edit of %s', async (_case, edit) => {
    const options: RigOptions = {};
    const { vendor, poll, end } = await submitted('8h', options);
    edit(options);
    vendor.word = 'completed';
    await poll();
    expect(await end()).toEqual({ open: 0, spent: inWindowOf8h, status: 'completed', waiting: 0 });
  });

  it('is polled at its old host with that host’s secret after its channel moved', async () => {
    const options: RigOptions = {};
    const { vendor, rig, poll, end } = await submitted('8h', options);
    options.channels = [{ ...submitting[0], endpoint: 'https://moved.test/v1', secret: 'env:KEY' }];
    const [waiting] = await rig.stored.waiting.list();
    if (waiting)
      await rig.stored.waiting.put({ ...waiting, vendor: { ...waiting.vendor, secret: 'env:KEY' } });
    vendor.word = 'completed';
    await poll();
    expect([rig.secretHosts, rig.sent.at(-1)?.url]).toEqual([
      ['upstream.test'],
      'https://upstream.test/v1/responses/resp_vendor1?include%5B%5D=reasoning.encrypted_content',
    ]);
    expect(await end()).toMatchObject({ open: 0, spent: inWindowOf8h });
  });

  it('does not start and costs nothing if no vendor accepts it', async () => {
    const vendor = new WindowVendor();
    vendor.word = 'down';
    const rig = rigOf({ channels: submitting, send: vendor.send });
    await rig.post(inWindow('8h'), { path, id: requestId });
    await rig.clock.run(rig.runs());
    expect(rig.quotas.items.get('acme')).toMatchObject({ available: yuan, spent: 0n });
    expect((await rig.stored.responses.heads('acme', [id])).get(id)?.status).toBe('failed');
    expect(await rig.stored.waiting.list()).toEqual([]);
  });

  it('is cancelled at the vendor if the waiting call cannot be stored', async () => {
    const vendor = new WindowVendor();
    const rig = rigOf({ channels: submitting, send: vendor.send });
    await rig.post(inWindow('8h'), { path, id: requestId });
    rig.stored.waiting.put = () => Promise.reject(new StoreUnavailable());
    await rig.clock.run(rig.runs());
    expect(vendor.asked.at(-1)).toBe('POST /v1/responses/resp_vendor1/cancel');
    expect(rig.quotas.items.get('acme')).toMatchObject({ available: yuan, spent: 0n });
  });
});

/** Lets a rig make this many store calls; the next caller never gets a reply. */
function makeMortal(rig: CoreRig, { calls, isApplied }: { calls: number; isApplied: boolean }) {
  let left = calls;
  const undo: (() => void)[] = [];
  const { responses, runs, waiting } = rig.stored;
  for (const store of [responses, runs, waiting, rig.store] as object[]) {
    const names = new Set([
      ...Object.keys(store),
      ...Object.getOwnPropertyNames(Object.getPrototypeOf(store)),
    ]);
    for (const name of names) {
      const call: unknown = Reflect.get(store, name);
      if (typeof call !== 'function' || name === 'constructor') continue;
      const mortal = async (...given: unknown[]): Promise<unknown> => {
        left -= 1;
        if (left < -1) return forever;
        const dies = left === -1;
        if (dies && !isApplied) return forever;
        const reply: unknown = await call.apply(store, given);
        return dies ? forever : reply;
      };
      Object.defineProperty(store, name, { value: mortal, configurable: true, writable: true });
      undo.push(() =>
        Object.defineProperty(store, name, { value: call, configurable: true, writable: true }),
      );
    }
  }
  return {
    /** True if it died. */
    revive(): boolean {
      for (const one of undo) one();
      return left < 0;
    },
  };
}

const forever = new Promise<never>(() => {});
