import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';
import { runOps } from './run-ops.ts';

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.put('accounts', { account: 'acme' }, { account: 'holder', note: 'contract 4711' });
  await rig.put('plans', {
    level: 1,
    items: [{ id: 'chat', name: 'Chat calls', value: 100, models: ['m'] }],
  });
  await rig.put('settings', { name: 'subscription.enabled', value: true });
});
afterAll(async () => rig.stop());

describe('grant new', () => {
  it('writes a grant of any size exactly, reports when it is applied, and is safe to repeat', async () => {
    const amount = '123456789012.123456789';
    const words = `grant new acme ${amount} --id invoice-1 --reason paid --wait 0 --yes`;
    const first = await rig.ops(words);
    expect(first).toMatchObject({ code: 0 });
    expect(first.output).toContain('grant "invoice-1"');
    expect(first.errors).toContain('is pending');

    await rig.applyGrants();
    const second = await rig.ops(words);
    expect(second).toMatchObject({ code: 0 });
    expect(second.errors).toContain('already existed; nothing was written');
    expect(second.output).toContain('Balance: ¥123,456,789,012.123456789');
    expect(second.output).not.toContain('Credited');
    await rig.applyGrants();
    expect((await rig.item('acme'))?.granted).toBe(yuan(amount));
  });

  it('rejects another amount for a used id', async () => {
    const run = await rig.ops('grant new acme 5 --id invoice-1 --wait 0 --yes');
    expect(run.code).toBe(1);
    expect(run.errors).toContain('grant "invoice-1" already exists with ¥123,456,789,012.123456789');
  });

  it('that was throttled or lost its reply names the next step, and credits once when it is repeated', async () => {
    await rig.put('accounts', { account: 'unlucky', enabled: false });
    const proxy = await startFaultProxy({ upstream: String((await rig.ports()).target.endpoint) });
    const words = 'grant new unlucky 5 --id once --wait 0 --yes'.split(' ');
    const said = async (kind: 'throttle' | 'lost_reply') => {
      proxy.rules.add({ fault: { kind }, operations: ['PutItem'], times: 1 });
      return (await runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint })).errors;
    };
    expect(await said('throttle')).toContain('re-run the command in a minute');
    expect(await said('lost_reply')).toContain('the change may or may not be saved');
    await proxy.close();
    const again = await rig.ops(words);
    expect(again.errors).toContain('already existed');
    expect(again.errors).toContain('unlucky is disabled');
    await rig.applyGrants();
    expect((await rig.item('unlucky'))?.granted).toBe(yuan('5'));
  });

  it('shows the balance before and after a negative amount, and warns before it falls below zero', async () => {
    await rig.put('accounts', { account: 'small' });
    await rig.ops('grant new small 99.92 --id paid --wait 0 --yes');
    await rig.applyGrants();
    const part = await rig.ops('grant new small -9.92 --dry-run');
    expect(part.output).toContain('¥99.92 → ¥90.00');
    expect(part.errors).not.toContain('warning');
    const all = await rig.ops('grant new small -999.92 --dry-run');
    expect(all.output).toContain('¥99.92 → −¥900.00');
    expect(all.errors).toMatch(/warning: .*more than the balance of small/);
    expect((await rig.ops('grant new small 1 --dry-run')).output).not.toContain('→');
  });

  it('accepts a correction below zero, and never retries it automatically', async () => {
    const words = 'grant new acme -2.5 --wait 0 --yes';
    expect(await rig.ops(words)).toMatchObject({ code: 0 });
    // The state after a lost reply, or after a kill that followed the write.
    const again = await rig.ops(words);
    expect(again).toMatchObject({ code: 1 });
    expect(again.errors).toContain('−¥2.50 was credited to acme minutes ago (grant "');
    await rig.applyGrants();
    expect((await rig.item('acme'))?.granted).toBe(yuan('123456789009.623456789'));
  });

  it.each([
    [['acmee', '5'], 'no customer acmee'],
    [['acme', '0'], 'amount: found "0", expected an amount in yuan: not 0'],
    [['acme', '1.0000000001'], 'at most 9 decimals'],
    [['acme', 'ten'], 'expected an amount in yuan'],
    [['..', '5', '--new'], 'invalid customer name'],
    [['ac\u202Eme', '5', '--new'], 'invalid customer name'],
    [['a\u0000', '5', '--new'], 'invalid customer name'],
    [['a'.repeat(201), '5', '--new'], 'up to 200 visible characters'],
  ])('refuses %j', async (words, message) => {
    const run = await rig.ops(['grant', 'new', ...words, '--wait', '0']);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
  });

  it('shows the relay’s warning about a grant', async () => {
    await rig.put('grants', {
      account: 'acme',
      grant_id: 'odd',
      amount: '1',
      _problem: 'amount: missing',
    });
    const run = await rig.ops('grant new acme 1 --id odd --yes');
    expect(run.code).toBe(1);
    expect(run.errors).toContain('the relay rejects it: amount: missing');
  });
});

const plan = async () => (await rig.row('accounts', { account: 'holder' }))?.['plan'];

describe('the plan of a customer', () => {
  it('can be set, changed without moving its months, and removed, and the rest of the row stays', async () => {
    const words = 'customer set holder';
    const given = await rig.ops(`${words} plan.level=1 plan.since=2026-10-05 plan.until=2027-10-05`);
    expect(given).toMatchObject({ code: 0, errors: '' });
    expect(given.output).toMatch(
      /no plan -> level 1\n.*since: 2026-10-05T00:00:00Z\n.*until: 2027-10-05T00:00:00Z\n/,
    );
    expect(await plan()).toEqual({ level: 1, since: '2026-10-05', until: '2027-10-05' });

    const changed = await rig.ops(`${words} plan.level=2 plan.until=`);
    expect(changed.code).toBe(0);
    expect(changed.errors).toContain('there is no plan with level 2');
    expect(changed.output).toMatch(/level 1 -> level 2\n.*until: 2027-10-05T00:00:00Z -> \(removed\)\n/);
    expect(await plan()).toEqual({ level: 2, since: '2026-10-05' });
    expect((await rig.ops([...words.split(' '), 'plan={"level": 1}', '--yes'])).code).toBe(0);
    expect(await plan()).toEqual({ level: 1, since: '2026-10-05' });

    const asked = await rig.ops(`${words} plan.level=`);
    expect(asked).toMatchObject({ code: 2 });
    expect(asked.errors).toContain('End the plan of holder?');
    expect(await rig.ops(`${words} plan= --yes`)).toMatchObject({ code: 0 });
    const { _by, _at, ...row } = (await rig.row('accounts', { account: 'holder' })) ?? {};
    expect(row).toEqual({ account: 'holder', note: 'contract 4711' });
  });

  it('is downgraded or shortened only after a question', async () => {
    const words = ['customer', 'set', 'cut'];
    await rig.put('accounts', { account: 'cut' });
    await rig.ops([...words, 'plan.level=2', 'plan.since=2026-10-05', 'plan.until=2027-10-05']);
    for (const less of [
      ['plan.level=1'],
      ['plan.until=2026-10-06'],
      ['plan.level=3', 'plan.until=2027-10-04'],
    ]) {
      const run = await rig.ops([...words, ...less]);
      expect(run.code).toBe(2);
      expect(run.errors).toContain('Downgrade or shorten the plan of cut?');
    }
    for (const more of ['plan.until=2027-10-06', 'plan.level=3'])
      expect(await rig.ops([...words, more])).toMatchObject({ code: 0 });
    expect(await rig.ops([...words, 'plan.level=1', '--yes'])).toMatchObject({ code: 0 });
  });

  it('starts its months today if there was no plan', async () => {
    await rig.put('accounts', { account: 'fresh' });
    expect(await rig.ops('customer set fresh plan.level=1')).toMatchObject({ code: 0 });
    const row = await rig.row('accounts', { account: 'fresh' });
    expect(row).toMatchObject({
      account: 'fresh',
      plan: { level: 1, since: new Date().toISOString().slice(0, 10) },
    });
  });

  it.each([
    [['plan.since=2026-10-05'], 'plan.since: set plan.level as well'],
    [['plan.level=4'], 'plan.level: found 4, expected a plan level'],
    [
      ['plan.level=1', 'plan.since=05.10.2026'],
      'plan.since: invalid time "05.10.2026", expected a time such as 2h',
    ],
    [
      ['plan.level=1', 'plan.since=2026-10-05', 'plan.until=2026-10-05'],
      'plan.until: must be later than plan.since',
    ],
  ])('refuses %j', async (words, message) => {
    const run = await rig.ops(['customer', 'set', 'holder', ...words]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
  });
});

describe('customer show', () => {
  it('shows money, plan use, keys and grants', async () => {
    await rig.put('accounts', { account: 'shown', plan: { level: 1, since: '2026-11-01' } });
    await rig.put('keys', { hash: 'a'.repeat(64), account: 'shown', hint: 'sk-AbCd...wXyZ' });
    await rig.grant('shown', '10');
    await rig.call('shown', idAt('2026-11-10'), { charge: yuan('0.25') });
    await rig.reserve('shown', idAt('2026-11-11'));
    const run = await rig.ops('customer show shown');
    expect(run).toMatchObject({ code: 0, errors: '' });
    for (const words of [
      'available  ¥9.45',
      'reserved   ¥0.30 for 1 call in flight',
      'spent      ¥0.25 for 1 call',
      'granted    ¥10.00',
      'level 1',
      'Chat calls: 0 of 100 calls',
      'sk-AbCd...wXyZ (hash aaaaaaaaaaaa): usable',
      'start-shown: ¥10.00, applied 2026-11-11T12:00:00Z',
    ])
      expect(run.output).toContain(words);
    const json = JSON.parse((await rig.ops('customer show shown --json')).output) as object;
    expect(json).toMatchObject({ available: '9.45', reserved: '0.3', open: 1, plan: { level: 1 } });
  });

  it('shows the note, the limits, the row’s author, and the usage of the last days by model', async () => {
    await rig.put('accounts', {
      account: 'full',
      note: 'pays by invoice',
      rpm: 60,
      enabled: false,
      stripe: 'whsec_abcdefghijkl',
      _by: 'arn:aws:sts::1:assumed-role/operator/li',
      _at: '2026-11-20T09:12:44Z',
    });
    await rig.grant('full', '10');
    for (const tail of ['b', 'c'])
      await rig.call('full', idAt(new Date().toISOString(), tail), { charge: yuan('0.25') });
    const run = await rig.ops('customer show full');
    expect(run.code).toBe(0);
    for (const words of [
      'Customer full (disabled)',
      'used       ¥0.50 for 2 calls (0 failed) in the last 30 days',
      'gpt-4o: ¥0.50 for 2 calls (0 failed),',
      'note       pays by invoice',
      'rpm        60',
      'changed    2026-11-20T09:12:44Z by arn:aws:sts::1:assumed-role/operator/li',
    ])
      expect(run.output).toContain(words);
    expect(run.output).not.toContain('whsec_');
    expect(run.errors).toContain('this customer is disabled; all its keys are rejected');
    const { output } = await rig.ops('customer show full --json');
    expect(JSON.parse(output)).toMatchObject({
      state: 'off',
      attributes: { note: 'pays by invoice', rpm: 60 },
      written_at: '2026-11-20T09:12:44Z',
      all_keys: true,
      all_grants: true,
      use: {
        charged: '0.5',
        calls: 2,
        failures: 0,
        models: [{ model: 'gpt-4o', calls: 2, charged: '0.5' }],
        days: [{ calls: 2 }],
      },
    });
    expect(output).not.toContain('whsec_');
  });

  it('shows the last 20 grants and the command that lists all', async () => {
    await rig.put('accounts', { account: "O'Hara" });
    for (let at = 11; at < 31; at += 1)
      await rig.put('grants', { account: "O'Hara", grant_id: `invoice-${at}`, amount: at });
    const twenty = await rig.ops(['customer', 'show', "O'Hara", '--json']);
    expect(JSON.parse(twenty.output)).toMatchObject({ all_grants: true });
    await rig.put('grants', { account: "O'Hara", grant_id: 'invoice-10', amount: 10 });
    const { output, errors } = await rig.ops(['customer', 'show', "O'Hara", '--json']);
    const shown = JSON.parse(output) as { grants: { grantId: string }[]; all_grants: boolean };
    expect(shown.grants.map(({ grantId }) => grantId)).toEqual(
      Array.from({ length: 20 }, (_, at) => `invoice-${30 - at}`),
    );
    expect(shown.all_grants).toBe(false);
    expect(errors).toContain('it has grants, but no key, so nobody can spend them');
    expect(errors).toContain(String.raw`--account 'O'\''Hara'`);
  });

  it('exits with 2 if no table contains the account', async () => {
    const run = await rig.ops('customer show nobody');
    expect(run.code).toBe(2);
    expect(run.errors).toContain('no customer nobody');
  });
});
