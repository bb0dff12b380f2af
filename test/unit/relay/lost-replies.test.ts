/** Calls with an Idempotency-Key whose stores lose replies, and the client's repeat. */
import { expect, it } from 'vitest';
import { closeExpired } from '../../../shared/billing/quota-item.ts';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';
import { BillingRig, stream, yuan } from '../../support/billing-rig.ts';
import { demoKey, hello } from '../../support/core-rig.ts';

/** The charge of `hello` after 7 tokens of input. */
const settled = 11_000_000n;
const key = { rpm: 50, max_concurrency: 5, budget: { amount: '50', period: 'month' } };

type Call = (...given: unknown[]) => Promise<unknown>;

/** Store calls; those from `first` up to `end` get no reply, but may be applied. */
interface Losses {
  calls: string[];
  first: number;
  end: number;
  arrive: boolean;
}

function losing(store: object, losses: Losses, names: readonly string[]): void {
  for (const name of names) {
    const call = ((store as Record<string, unknown>)[name] as Call).bind(store);
    const lossy: Call = async (...given) => {
      const at = losses.calls.push(name) - 1;
      const isLost = at >= losses.first && at < losses.end;
      if (isLost && !losses.arrive) throw new StoreUnavailable('no reply');
      const reply = await call(...given);
      if (isLost) throw new StoreUnavailable('no reply');
      return reply;
    };
    Object.assign(store, { [name]: lossy });
  }
}

const responses = { path: '/v1/responses', body: { model: 'm', input: 'hi', max_output_tokens: 78 } };
const calls = {
  'of a key that may not store': { store: false, path: '/v1/chat/completions', body: stream },
  'that is stored': { store: true, ...responses },
  'that a run answers': { store: true, ...responses, body: { ...responses.body, background: true } },
};

it.each(
  Object.entries(calls).flatMap(([which, asked]) =>
    [1, 3].flatMap((count) => [true, false].map((arrive) => ({ which, asked, count, arrive }))),
  ),
)(
  'a call $which and its repeat are paid and answered once if any $count replies in a row are lost (done: $arrive)',
  async ({ asked: { store, path, body }, count, arrive }) => {
    let first = 0;
    for (let isLost = true; isLost; first += 1) {
      const rig = new BillingRig({ key: { ...key, store } }).granted(100n * yuan).upstream({ steps: hello });
      const losses: Losses = { calls: [], first, end: first + count, arrive };
      losing(rig.store, losses, ['reserve', 'close', 'tombstone', 'renew']);
      losing(rig.counters, losses, ['countCall', 'hold']);
      losing(rig.idempotency, losses, ['claim', 'finish']);
      losing(rig.stored.responses, losses, ['put', 'heads', 'remove', 'withdraw']);
      losing(rig.stored.results, losses, ['put', 'read']);
      const ask = async () => {
        const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'k' };
        const answer = await rig.call(body, { path, headers });
        for (const run of rig.stored.started.splice(0)) await rig.clock.run(rig.runs(run));
        for (const [of, kind] of rig.quotas.closed) rig.idempotency.closed.set(of, kind);
        return answer;
      };
      const answer = await ask();
      isLost = losses.calls.length > first;
      Object.assign(losses, { end: 0 });
      const repeat = await ask();
      const [code] = /request_already_completed/.exec(repeat.text) ?? [repeat.status];
      const what = `${losses.calls[first]}: ${answer.status}, then ${code}`;
      expect(what).toMatch(/: 200, then (200|request_already_completed)$|: 503, then 200$/);
      await rig.clock.run(rig.clock.sleep(400_000));
      const late = rig.item ? closeExpired(rig.item, rig.clock.now() / 1000, 120) : [];
      for (const write of late) await rig.quotas.close(write);
      const { available = 0n, spent } = rig.item ?? {};
      const balance = { what, open: rig.open.length, spent, available, asked: rig.sent.length };
      expect(balance).toEqual({ what, open: 0, spent: settled, available: 100n * yuan - settled, asked: 1 });
    }
    expect(first).toBeGreaterThan(5);
  },
);
