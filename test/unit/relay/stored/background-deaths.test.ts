import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from 'vitest';
import { closeExpired } from '../../../../shared/billing/quota-item.ts';
import { failIfRunDied } from '../../../../shared/relay/stored/reads.ts';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import { delta, done, finish, usage } from '../../../support/core-rig.ts';

const ask = { model: 'm', input: 'hi', max_output_tokens: 78, background: true, stream: true };
const id = 'resp-01call00000000000000000001';
const of = { account: 'acme', id };
const settled = 11_000_000n;
/** Its estimate, at the price of its tokens. */
const input = 5_000_000n;

/** A process that dies at one of its store calls, before it is applied or before its reply. */
interface Mortal {
  calls: number;
  diesAt: number;
  isDone: boolean;
}

const processes = new AsyncLocalStorage<Mortal>();
const forever = new Promise<never>(() => {});

type Call = (...given: unknown[]) => Promise<unknown>;

/** A dead process makes no more calls. */
function mortal(store: object): void {
  for (const [name, call] of Object.entries(store) as [string, unknown][]) {
    if (typeof call !== 'function') continue;
    const living = call as Call;
    Object.assign(store, {
      [name]: async (...given: unknown[]) => {
        const process = processes.getStore();
        if (!process) return living(...given);
        process.calls += 1;
        if (process.calls > process.diesAt + 1) return forever;
        if (process.calls === process.diesAt + 1 && !process.isDone) return forever;
        const reply = await living(...given);
        return process.calls > process.diesAt ? forever : reply;
      },
    });
  }
}

function rigOfMortals(): BillingRig {
  const rig = new BillingRig({ key: { store: true } }).granted(yuan);
  rig.upstream({ steps: [delta('Hello'), 3_000, delta(' there'), finish(), usage(5, 3), done] });
  const { responses, runs, events } = rig.stored;
  for (const store of [rig.store, responses, runs, events]) mortal(store);
  return rig;
}

/** Runs the work while time passes, because a dead process never ends. */
async function lives(rig: BillingRig, process: Mortal, work: () => Promise<unknown>): Promise<void> {
  void processes.run(process, work).catch(() => {});
  await rig.clock.run(rig.clock.sleep(30_000));
}

interface End {
  status: string | undefined;
  calls: number;
  spent: bigint;
  asked: number;
}

async function endOf(rig: BillingRig, process: Mortal): Promise<End> {
  // Deliver the event again if it was sent, and once more far too late.
  if (rig.stored.started.length > 0) await rig.clock.run(rig.runs(of));
  await rig.clock.run(rig.clock.sleep(200_000));
  await rig.clock.run(rig.runs(of));
  const head = (await rig.stored.responses.heads('acme', [id])).get(id);
  const found = head && (await failIfRunDied(rig.stored, head, rig.clock.now() / 1000));
  const { item } = rig;
  for (const write of item ? closeExpired(item, rig.clock.now() / 1000, 120) : [])
    await rig.quotas.close(write);
  const { available = 0n, spent = 0n, granted = 0n, open = new Map<string, unknown>() } = rig.item ?? {};
  expect({ open: open.size, sum: available + spent }).toEqual({ open: 0, sum: granted });
  return { status: found?.status, calls: process.calls, spent, asked: rig.sent.length };
}

it.each([false, true])(
  'a run that dies at any store call ends once and is charged once (%s)',
  async (isDone) => {
    const ends: End[] = [];
    for (let diesAt = 0; (ends.at(-1)?.calls ?? 0) > diesAt - 1; diesAt += 1) {
      const rig = rigOfMortals();
      await rig.call(ask, { path: '/v1/responses', leaveAfter: 1 }).catch(() => {});
      const process = { calls: 0, diesAt, isDone };
      await lives(rig, process, () => rig.runs(of));
      const end = await endOf(rig, process);
      ends.push(end);
      expect(['completed', 'failed']).toContain(end.status);
      expect(end.asked).toBeLessThanOrEqual(1);
      // A run that died between its takeover and the upstream is charged its input, like any crashed call.
      expect(end.asked === 1 || end.status === 'failed').toBe(true);
      expect([0n, input, settled]).toContain(end.spent);
    }
    expect(ends.length).toBeGreaterThan(8);
    expect(ends.at(-1)).toMatchObject({ status: 'completed', spent: settled, asked: 1 });
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['completed', 'failed']));
  },
);

it.each([false, true])(
  'an acceptor that dies at any store call leaves no charge or reservation open (%s)',
  async (isDone) => {
    for (let diesAt = 0; diesAt < 12; diesAt += 1) {
      const rig = rigOfMortals();
      const process = { calls: 0, diesAt, isDone };
      await lives(rig, process, () => rig.call({ ...ask, stream: false }, { path: '/v1/responses' }));
      const started = rig.stored.started.length;
      const end = await endOf(rig, process);
      const ran = end.status === 'completed';
      expect([end.asked, end.spent]).toEqual(ran ? [1, settled] : [0, 0n]);
      expect(ran).toBe(started > 0);
    }
  },
);
