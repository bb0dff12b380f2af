import { describe, expect, it } from 'vitest';
import type { AlertedAccount } from '../../../../shared/config/rows/alerted-account.ts';
import type { AlertSettings } from '../../../../shared/config/settings.ts';
import { createNotifier, triesMax } from '../../../../shared/relay/alerts/notifier.ts';
import type { NoticeTarget } from '../../../../shared/relay/ports/alerts.ts';
import type { Notice } from '../../../../shared/wire/public-api.ts';
import { MemoryAlertStores } from '../../../support/memory-alert-stores.ts';

const notice: Notice = { id: 'n1', type: 'balance.low', created: 1, account: 'acme', data: { balance: '1' } };
const settings = { planDays: 7, keyDays: 7, webhook: 'https://ops.example.com/', secret: 'env:HOOK' };
const row: AlertedAccount = { account: 'acme', email: 'a@example.com', webhook: 'https://acme.example.com/' };

/** @param fails how many tries each kind of receiver refuses */
async function rig(fails: Partial<Record<NoticeTarget['kind'], number>> = {}, offers = { mail: true }) {
  const stores = new MemoryAlertStores();
  await stores.raise({ cause: 'c', seen: undefined, notice });
  const sent: NoticeTarget[] = [];
  const events: string[] = [];
  const counted: string[] = [];
  const time = { nowMs: 1_000_000 };
  const facts = { settings: { ...settings } as AlertSettings, row };
  const jobs = createNotifier({
    clock: { now: () => time.nowMs },
    notices: stores,
    accounts: { row: async () => facts.row },
    settings: async () => facts.settings,
    sender: {
      offers: { topic: true, ...offers },
      async send(target) {
        sent.push(target);
        const left = fails[target.kind] ?? 0;
        fails[target.kind] = left - 1;
        return left > 0 ? 'status_500' : undefined;
      },
    },
    metrics: { count: (name) => void counted.push(name) },
    log: { request: () => {}, event: (name) => void events.push(name), fault: () => {} },
  });
  const later = async (): Promise<void> => {
    time.nowMs += 24 * 3600 * 1000;
    await jobs.retry();
  };
  const kinds = () => sent.map((target) => target.kind);
  return { ...jobs, stores, sent, kinds, events, counted, time, facts, later };
}

describe('a notice', () => {
  it('is sent to the topic, the operators and the contacts of the account, once each', async () => {
    const { take, sent, stores } = await rig();
    await take('n1');
    await take('n1');
    expect(sent).toEqual([
      { kind: 'topic' },
      { kind: 'webhook', url: settings.webhook, signs: 'env:HOOK' },
      { kind: 'webhook', url: row.webhook, signs: 'env:HOOK', account: 'acme' },
      { kind: 'mail', to: row.email },
    ]);
    expect(await stores.waiting()).toEqual([]);
  });

  it('is sent again later, only to the targets that failed', async () => {
    const { take, retry, later, kinds, stores } = await rig({ mail: 2 });
    await take('n1');
    expect(await stores.waiting()).toEqual(['n1']);
    await retry();
    expect(kinds()).toHaveLength(4);
    await later();
    await later();
    await later();
    expect(kinds().slice(4)).toEqual(['mail', 'mail']);
    expect(await stores.waiting()).toEqual([]);
  });

  it('is dropped after its last try, with a metric and a log line', async () => {
    const { take, later, kinds, counted, events, stores } = await rig({ topic: Infinity });
    await take('n1');
    for (let run = 0; run < triesMax + 3; run += 1) await later();
    expect(kinds().filter((kind) => kind === 'topic')).toHaveLength(triesMax);
    expect(counted).toEqual(['AlertUndelivered']);
    expect(events.filter((name) => name === 'alert_undelivered')).toHaveLength(1);
    expect(await stores.waiting()).toEqual([]);
  });

  it('taken by two consumers at once is sent by one, and stays queued in case that one died', async () => {
    const { take, kinds, stores } = await rig();
    await Promise.all([take('n1'), take('n1')]);
    expect(kinds()).toHaveLength(4);
    expect(await stores.waiting()).toEqual(['n1']);
  });

  it('is dropped if its last try died', async () => {
    const { later, kinds, stores, counted } = await rig();
    for (let tries = 0; tries < triesMax; tries += 1) await stores.claim('n1', tries, 0);
    await stores.await('n1');
    await later();
    expect([kinds(), counted]).toEqual([[], ['AlertUndelivered']]);
  });

  it('stays in the table stream when too many wait, and raises an alarm', async () => {
    const { take, stores, counted } = await rig({ topic: 1 });
    for (let other = 0; other < 1_000; other += 1) await stores.await(`other${other}`);
    await expect(take('n1')).rejects.toThrow('Too many notices wait.');
    expect(counted).toEqual(['AlertUndelivered']);
  });

  it('to a customer without a signing secret is not posted, and the failure is logged', async () => {
    const { take, facts, kinds, events } = await rig();
    facts.settings = { planDays: 7, keyDays: 7 };
    await take('n1');
    expect(kinds()).toEqual(['topic', 'mail']);
    expect(events).toContain('alert_not_taken');
  });
});
