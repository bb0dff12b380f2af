import { beforeEach, describe, expect, it } from 'vitest';
import { auditLedger } from '../../shared/operate/ledger/audit-ledger.ts';
import { buildMonthKey } from '../../shared/billing/daily-keys.ts';
import { bucketOf, formatLedgerPartition } from '../../shared/billing/ledger-row.ts';
import { firstCounter } from '../../shared/billing/shares.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

const first = idAt('2026-11-10T10:00:00Z');
const second = idAt('2026-11-10T11:00:00Z');
const tokens = { prompt_tokens: 12, completion_tokens: 40 };
const due = yuan('0.003096');

let rig: LedgerRig;
beforeEach(async () => {
  rig = await LedgerRig.start();
  await rig.grant('acme', '10');
  await rig.call('acme', first, { charge: due, ...tokens });
  await rig.call(
    'acme',
    second,
    { charge: 0n, ...tokens },
    { amount: 0n, input: 0n, slot: 'chat@2026-11-05' },
  );
  return async () => rig.stop();
});

const audit = async (words = '') => rig.ops(`audit --wait 0 ${words}`.trim());

describe('audit', () => {
  it('finds nothing in accounts that add up, including calls in flight and every kind of ending', async () => {
    await rig.call('acme', idAt('2026-11-10T12:00:00Z'), { charge: yuan('0.018'), kind: 'expired' });
    await rig.call('acme', idAt('2026-11-10T13:00:00Z'), { charge: 0n, kind: 'released', ...tokens });
    await rig.call('acme', idAt('2026-11-10T14:00:00Z'), { charge: 0n }, { price: '2:call:0.5' });
    await rig.call('acme', idAt('2026-11-10T15:00:00Z'), { charge: yuan('0.5') }, { price: '2:call:0.5' });
    await rig.call(
      'acme',
      idAt('2026-11-10T16:00:00Z'),
      { charge: 0n, cost: due, ...tokens },
      { amount: 0n, input: 0n, official: true },
    );
    await rig.reserve('acme', idAt('2026-11-11T10:00:00Z'));
    await rig.reserve('acme', idAt('2026-11-11T11:00:00Z'), { amount: 0n, slot: 'chat@2026-11-05' });
    const run = await audit();
    expect(run.output).toContain('Verified 1 account and 8 ledger rows: all balances match.');
    expect(run.errors).not.toContain('never had a balance');
    const misspelt = await rig.ops('audit --account amce --wait 0');
    expect(misspelt.errors).toContain(
      'customer amce never had a balance: check the name with `customer list`',
    );
    expect(run).toMatchObject({ code: 0, errors: '' });
  });

  it('finds a call that was charged by a price other than that of its reservation', async () => {
    const price = '1:tokens:0.18:0.72';
    const own = '1:tokens:0.018:0.072';
    const id = idAt('2026-11-10T12:00:00Z');
    await rig.call('acme', id, { charge: 10n * due, price, ...tokens }, { price: own, tariff: own });
    const run = await audit();
    expect(run.code).toBe(1);
    expect(run.output).toContain(`${id}: it was charged by ${price}, but accepted with ${own}`);
  });

  it('explains why a call cost more than its reservation, without a finding', async () => {
    const id = idAt('2026-11-10T12:00:00Z');
    await rig.call('acme', id, { charge: due, ...tokens }, { amount: yuan('0.001') });
    const run = await audit();
    expect(run.code).toBe(0);
    expect(run.output).toContain(
      'the upstream reported 40 output tokens, of which the reservation covered 10',
    );
  });

  it.each([
    ['a balance that was changed by hand', 'quotas', 'available', 1, 'is not the granted 10'],
    ['a spent amount that is missing from the ledger', 'quotas', 'spent', 3, "but the ledger's charges"],
    [
      'a plan count without ledger rows',
      'quotas',
      'plan',
      { 'chat@2026-11-05': 5 },
      'counts 5 calls of chat@2026-11-05',
    ],
    ['an item that no function wrote', 'quotas', 'granted', 'ten', 'granted is not a whole number'],
  ])('finds %s', async (_case, table, attribute, value, words) => {
    await rig.damage(table, { account: 'acme' }, attribute, value);
    const run = await audit();
    expect(run.code).toBe(1);
    expect(run.output).toContain(words);
    expect(run.errors).toMatch(/\d mismatch(es)? in 1 account/);
  });

  it.each([
    [
      'a charge that does not match price and tokens',
      'charge',
      0.5,
      'it charges 0.5 yuan, expected 0.003096',
    ],
    ['a price that cannot be read', 'price', 'dear', 'its price "dear" cannot be read'],
    ['a missing token count', 'completion_tokens', null, 'its tokens are missing'],
    [
      'a charge for a released call',
      'kind',
      'released',
      'it charges 0.003096 yuan, expected 0 (it was released)',
    ],
  ])('finds %s', async (_case, attribute, value, words) => {
    await rig.damage('ledger', { account: 'acme', id: first }, attribute, value);
    const run = await audit('--account acme');
    expect(run.code).toBe(1);
    expect(run.output).toContain(`acme: ledger row ${first}: ${words}`);
  });

  it('finds reservations that were never closed, and grants that were never applied or were changed afterwards', async () => {
    await rig.reserve('acme', idAt('2026-11-10T18:00:00Z'), { until: 1_795_000_000 });
    await rig.put('grants', { account: 'acme', grant_id: 'late', amount: 5 });
    await rig.damage('grants', { account: 'acme', grant_id: 'start-acme' }, 'amount', 1000);
    await rig.put('grants', { account: 'unknown', grant_id: 'first', amount: 5, _problem: 'not taken' });
    const run = await audit('--json');
    expect(run.code).toBe(1);
    expect(JSON.parse(run.output)).toMatchObject({
      accounts: 2,
      findings: [
        expect.stringContaining('check that the sweeper runs') as string,
        'acme: grant late is not applied: no ledger row names it',
        'acme: grant start-acme has the amount 1000, but 10 was applied: later edits have no effect',
        'unknown: grant first is not applied: not taken',
      ],
    });
  });
});

describe('the audit of daily sums', () => {
  const month = buildMonthKey('2026-11', 'acme');
  const day = 'day#2026-11-10#gpt-4o';
  const served = { channel: 'openai', prompt_tokens: 12, completion_tokens: 40, charge: due };

  it.each([
    ['an account', 'account#acme', day, 3],
    ['a channel', 'channel#openai', day, 1],
    ['a month', month.id, month.period, 3],
    ['a model', 'served', `${day}#openai`, 1],
  ])('finds a sum of %s that differs from the rows, and corrects it on request', async (_of, ...at) => {
    const [id, period, calls] = at;
    await rig.call('acme', idAt('2026-11-10T11:30:00Z'), served);
    await rig.damage('daily', { id, period }, 'calls', 7);
    const found = await audit();
    expect(found.code).toBe(1);
    expect(found.output).toContain(`daily ${id} ${period}: calls 7, not ${calls}`);
    const corrected = await audit('--rebuild-daily');
    expect(corrected).toMatchObject({ code: 0 });
    expect(corrected.errors).toContain('Corrected 1 daily total.');
    expect((await rig.row('daily', { id, period }))?.['calls']).toBe(calls);
    expect((await audit()).code).toBe(0);
  });

  it('finds missing sums of months and models, and restores them', async () => {
    await rig.call('acme', idAt('2026-11-10T11:30:00Z'), served);
    const monthBefore = await rig.row('daily', { ...month });
    const modelDay = await rig.row('daily', { id: 'served', period: 'day#2026-11-10#gpt-4o#openai' });
    await rig.removeDaily(month.id, month.period);
    await rig.removeDaily('served', 'day#2026-11-10#gpt-4o#openai');
    const run = await audit();
    expect(run).toMatchObject({ code: 1 });
    expect(run.output).toContain(`daily ${month.id} account#acme: calls 0, not 3`);
    expect(run.output).toContain('daily served day#2026-11-10#gpt-4o#openai: calls 0, not 1');
    expect((await audit('--rebuild-daily')).errors).toContain('Corrected 2 daily totals.');
    expect(await rig.row('daily', { ...month })).toEqual(monthBefore);
    expect(await rig.row('daily', { id: 'served', period: 'day#2026-11-10#gpt-4o#openai' })).toEqual(
      modelDay,
    );
    expect(await audit()).toMatchObject({ code: 0 });
  });

  it('finds a sum with a larger amount but a smaller count than the rows', async () => {
    await rig.call('acme', idAt('2026-11-10T11:30:00Z'), served);
    const key = { id: 'served', period: 'day#2026-11-10#gpt-4o#openai' };
    const whole = await rig.row('daily', key);
    await rig.damage('daily', key, 'calls', 0);
    await rig.damage('daily', key, 'charged', 9);
    const found = await audit();
    expect(found.code).toBe(1);
    expect(found.output).toContain('gpt-4o#openai: calls 0, not 1, charged 9, not ');
    expect(await audit('--rebuild-daily')).toMatchObject({ code: 0 });
    expect(await rig.row('daily', key)).toEqual(whole);
  });

  it('adds up the buckets of a sum, and corrects it only if no bucket changed since', async () => {
    await rig.call('acme', idAt('2026-11-10T11:30:00Z'), served);
    const key = { id: 'served', period: 'day#2026-11-10#gpt-4o#openai' };
    const other = { id: 'served.3', period: key.period };
    const whole = await rig.row('daily', key);
    await rig.put('daily', { ...whole, ...other });
    await rig.put('daily', { id: 'spread', period: 'day#2026-11-10#3' });
    await rig.removeDaily(key.id, key.period);
    expect((await audit()).code).toBe(0);
    await rig.damage('daily', other, 'calls', 4);
    expect((await audit()).output).toContain(`daily ${key.id} ${key.period}: calls 4, not 1`);
    const ports = await rig.ports();
    const found = { counts: { calls: 3 }, amounts: {} };
    const stale = { key, found, items: [{ key: other, figures: found }], missing: found };
    expect(await ports.ledger.addToDaily(stale)).toBe(false);
    expect(await rig.row('daily', key)).toBeUndefined();
    expect(await audit('--rebuild-daily')).toMatchObject({ code: 0 });
    expect((await rig.row('daily', key))?.['calls']).toBe(-3);
    expect((await rig.row('daily', other))?.['calls']).toBe(4);
  });

  it('counts a correction that it made before a wait', async () => {
    await rig.call('acme', idAt('2026-11-10T11:30:00Z'), served);
    await rig.damage('daily', { id: 'account#acme', period: day }, 'calls', 7);
    await rig.damage('quotas', { account: 'acme' }, 'available', 1);
    const ports = await rig.ports();
    let nowMs = ports.clock.now();
    const sleep = async (ms: number): Promise<void> => void (nowMs += ms);
    const waited: string[] = [];
    const result = await auditLedger(
      { ...ports, clock: { ...ports.clock, now: () => nowMs, sleep } },
      { account: 'acme', waitMs: 4000, rebuildDaily: true },
      { waitingFor: (account) => waited.push(account) },
    );
    expect(waited).toHaveLength(2);
    expect(result).toMatchObject({ findings: [expect.stringContaining('granted')], corrected: 1 });
  });

  it('corrects the current month while calls arrive', async () => {
    const now = (tail: string) => idAt(new Date().toISOString(), tail);
    const month = new Date().toISOString().slice(0, 7);
    const key = { ...buildMonthKey(month, 'acme') };
    await rig.call('acme', now('b'), served);
    await rig.removeDaily(key.id, key.period);
    const ports = await rig.ports();
    const accountMonths = ports.ledger.accountMonths.bind(ports.ledger);
    let reads = 0;
    // A correction compares with the second read.
    ports.ledger.accountMonths = async (wanted) => {
      const items = await accountMonths(wanted);
      if ((reads += 1) === 2) await rig.call('acme', now('c'), served);
      return items;
    };
    const result = await auditLedger(ports, { account: 'acme', waitMs: 0, rebuildDaily: true });
    expect(result).toMatchObject({ findings: [], corrected: 1 });
    const days = (await Array.fromAsync(ports.ledger.daily('account#acme'))).flat();
    const calls = days.flatMap((each) =>
      'row' in each && each.row.key.period.startsWith(`day#${month}`)
        ? [each.row.figures.counts.calls ?? 0]
        : [],
    );
    expect((await rig.row('daily', key))?.['calls']).toBe(calls.reduce((sum, each) => sum + each, 0));
  });

  it('does not touch a day whose rows may still arrive', async () => {
    await rig.call('acme', idAt(new Date(Date.now() - 60_000).toISOString()), served);
    const today = new Date(Date.now() - 60_000).toISOString().slice(0, 10);
    await rig.damage('daily', { id: 'account#acme', period: `day#${today}#gpt-4o` }, 'calls', 7);
    // One transaction writes a day and its month.
    const month = { ...buildMonthKey(today.slice(0, 7), 'acme') };
    await rig.damage('daily', month, 'calls', Number((await rig.row('daily', month))?.['calls']) + 6);
    expect((await audit()).code).toBe(0);
  });
});

describe('an audit of many accounts', () => {
  it('continues in order from the given account', async () => {
    for (const name of ['b', 'c', 'd']) {
      await rig.grant(name, '1');
      await rig.damage('quotas', { account: name }, 'spent', 7);
    }
    const run = await audit('--from c');
    expect(run.output).not.toMatch(/^b:/m);
    expect(run.output).toMatch(/^c: /m);
    expect(run.output).toMatch(/^d: /m);
    expect(run.errors).toContain('in 2 accounts');
  });

  it('that is interrupted prints where to continue', async () => {
    const ports = await rig.ports();
    await rig.grant('broken', '1');
    const quota = async (account: string) =>
      account === 'broken' ? Promise.reject(new Error('the network is down')) : ports.ledger.quota(account);
    const run = auditLedger({ ...ports, ledger: { ...ports.ledger, quota } }, { waitMs: 0 });
    await expect(run).rejects.toThrow("the network is down; resume with --from 'broken'");
  });

  it('includes a row whose account has neither an item nor a grant', async () => {
    await rig.put('ledger', {
      account: 'nobody',
      id: idAt('2026-11-10T11:00:00Z'),
      at: '2026-11-10T11:00:00Z',
      kind: 'released',
      model: 'm',
      key: '0123456789ab',
      charge: 0,
      reserved: 0,
      price: '1:free',
    });
    expect((await audit()).output).toContain('nobody: ');
  });
});

describe('audit --repair', () => {
  const lost = idAt('2026-11-11T10:00:00Z');
  const line = (changes: object = {}) =>
    JSON.stringify({
      level: 'WARN',
      message: 'settle_lost',
      request_id: lost,
      account: 'acme',
      give_back: false,
      kind: 'settled',
      charge_nano: String(due),
      at: 1_795_000_000,
      endpoint: 'chat',
      prompt_tokens: 12,
      completion_tokens: 40,
      cached_tokens: 8,
      cache_write_1h_tokens: 2,
      end: 'completed',
      channel: 'openai',
      upstream_model: 'm-2026',
      first_content_ms: 812,
      bought_nano: '2000000',
      flag: 'too_low',
      price: '1:tokens:0.018:0.072',
      ...changes,
    });

  it.each([
    ['plain lines', `noise\n${line()}\n${line()}\n`],
    ['lines prefixed with a time', `2026-11-11T10:00:05 2026/11/21/[1] ${line()}\n`],
    ['the answer of the log service', JSON.stringify({ events: [{ message: line() }] })],
  ])('writes the close of a lost settlement once, from %s', async (_case, input) => {
    await rig.reserve('acme', lost);
    const run = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect(run.errors).toContain(`request ${lost}: settled, ¥0.003096 charged`);
    const item = await rig.item('acme');
    expect(item?.open.size).toBe(0);
    expect(item?.spent).toBe(due * 2n);
    expect(item?.last).toMatchObject({
      cached_tokens: 8,
      cache_write_1h_tokens: 2,
      channel: 'openai',
      upstream_model: 'm-2026',
      first_content_ms: 812,
      bought: 2_000_000n,
      flag: 'too_low',
      price: '1:tokens:0.018:0.072',
    });
    const again = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect((await rig.item('acme'))?.spent).toBe(due * 2n);
    // No ledger projector runs in this test, so the close has no row.
    expect(again.output).toContain(`request ${lost} is not open and has no ledger row yet`);
  });

  it('closes a reservation in the shard that contains it', async () => {
    await rig.split('acme', 4);
    const entry = await rig.reserve('acme', lost, {}, 2);
    const run = await rig.ops('audit --wait 0 --repair - --yes', line({ part: 2 }));
    expect(run.errors).toContain(`request ${lost}: settled, ¥0.003096 charged`);
    expect(await rig.item('acme', 2)).toMatchObject({ open: new Map(), spent: due });
    expect(entry.amount).toBeGreaterThan(due);
  });

  it.each([
    ['lost', { message: 'settle_lost' }],
    ['late, with an unknown result of its charge', { message: 'settle_late', unsure: true }],
    ['late', { message: 'settle_late', difference_nano: '72000000' }],
  ])('charges once what an expiry left uncharged, if the settlement was %s', async (_case, changes) => {
    await rig.call('acme', lost, { charge: yuan('0.018'), kind: 'expired' });
    const input = line({
      ...changes,
      charge_nano: '90000000',
      prompt_tokens: 1000,
      completion_tokens: 1000,
    });
    const run = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect(run.errors).toContain(`request ${lost}: had expired, ¥0.072 more charged`);
    expect((await rig.item('acme'))?.spent).toBe(due + yuan('0.09'));
    const row = { account: 'acme', id: `late#${lost}` };
    expect(await rig.row('ledger', row)).toMatchObject({ charge: 0.072, model: 'gpt-4o', kind: 'settled' });
    const again = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect(again.errors).toContain('was already settled correctly');
    expect((await rig.item('acme'))?.spent).toBe(due + yuan('0.09'));
    expect(again.output).toContain('all balances match');
  });

  it('accepts the late charge of a call that an earlier version reserved, without comparing it with a tariff', async () => {
    await rig.call('acme', lost, { charge: yuan('0.018'), kind: 'expired' });
    const tokens = { prompt_tokens: 1000, completion_tokens: 1000 };
    const input = line({ ...tokens, charge_nano: '90000000', price: '2:tokens:0.02:0.07' });
    await rig.ops('audit --wait 0 --repair - --yes', input);
    const row = await rig.row('ledger', { account: 'acme', id: `late#${lost}` });
    expect(row).toMatchObject({ charge: 0.072, price: '2:tokens:0.02:0.07' });
    expect((await rig.ops('audit --wait 0')).output).toContain('all balances match');
  });

  it('charges a metered call late without a balance, in the row that the relay itself would write', async () => {
    const before = await rig.item('acme');
    const expired = { charge: yuan('0.018'), kind: 'expired' } as const;
    await rig.call('acme', lost, expired, { metered: true }, firstCounter + 7);
    const input = line({
      message: 'settle_lost',
      charge_nano: '90000000',
      prompt_tokens: 1000,
      completion_tokens: 1000,
    });
    const run = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect(run.errors).toContain(`request ${lost}: had expired, ¥0.072 more charged`);
    expect((await rig.item('acme'))?.available).toBe(before?.available);
    const row = {
      account: formatLedgerPartition({ account: 'acme', bucket: bucketOf(lost, firstCounter) }),
      id: `late#${lost}`,
    };
    expect(await rig.row('ledger', row)).toMatchObject({ charge: 0.072, metered: true });
    expect(run.output).toContain('all balances match');
  });

  it('charges nothing late if the ledger shows that the settlement was written', async () => {
    await rig.call('acme', lost, { charge: due, ...tokens });
    const before = await rig.item('acme');
    const unsure = line({ message: 'settle_late', unsure: true });
    const run = await rig.ops('audit --wait 0 --repair - --yes', unsure);
    expect(run.errors).toContain('was already settled correctly');
    expect(await rig.item('acme')).toEqual(before);
  });

  it('refunds the expiry charge of a failed call', async () => {
    await rig.call('acme', lost, { charge: yuan('0.018'), kind: 'expired' });
    const input = line({
      message: 'settle_late',
      unsure: true,
      kind: 'released',
      charge_nano: '0',
      give_back: true,
    });
    const run = await rig.ops('audit --wait 0 --repair - --yes', input);
    expect(run.errors).toContain(`request ${lost}: had expired, −¥0.018 more charged`);
    expect((await rig.item('acme'))?.spent).toBe(due);
    expect(run.output).toContain('all balances match');
  });

  it('reports a reservation that was meanwhile closed with another charge', async () => {
    await rig.call('acme', lost, { charge: yuan('0.018'), prompt_tokens: 250, completion_tokens: 187 });
    const run = await rig.ops('audit --wait 0 --repair - --yes', line());
    expect(run.code).toBe(1);
    expect(run.output).toContain(
      `request ${lost} was settled in the meantime and charged ¥0.018 instead of ¥0.003096: correct it with a grant`,
    );
  });

  it('rejects an input without such a line, and a missing file', async () => {
    expect((await rig.ops('audit --repair - --yes', 'nothing')).errors).toContain(
      'the input has no settle_lost or settle_late log lines',
    );
    expect(await rig.ops('audit --repair /nowhere')).toMatchObject({ code: 2 });
  });
});
