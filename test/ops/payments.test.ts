import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeHmac } from '../../shared/adapters/system/node-ports.ts';
import { parseReference, formatTextToSign, type Payment } from '../../shared/billing/payments.ts';
import { LedgerRig, yuan } from './ledger-rig.ts';

let rig: LedgerRig;
const stripe = {
  live: false,
  webhook_secret: 'env:HOOK',
  link_secret: ['env:OLD_LINKS', 'env:LINKS'],
  rates: { usd: 7.1, jpy: 0.048, kwd: 23.1 },
};
beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.put('accounts', { account: 'acme' }, { account: 'Zoë & Söhne_1' }, { account: 'x'.repeat(120) });
  await rig.put('settings', { name: 'payments', value: { stripe } });
});
afterAll(async () => rig.stop());

const linked = (...words: string[]) =>
  rig.ops(['payment', 'link', ...words], undefined, { LINKS: 'newest secret' });

describe('payment link', () => {
  it.each([
    ['acme', '10.5', 'usd', 1050n, '74.55'],
    ['acme', '500', 'JPY', 500n, '24.00'],
    ['Zoë & Söhne_1', '1.25', 'kwd', 1250n, '28.875'],
  ])(
    'signs a reference for %s over %s %s with the last secret',
    async (account, amount, currency, minor, yuanText) => {
      const run = await linked(account, '--amount', amount, '--currency', currency);
      expect(run).toMatchObject({ code: 0 });
      expect(run.output).toContain(`credits ¥${yuanText} to ${account}`);
      const text = run.output.trim().split('\n').at(-1) ?? '';
      expect(text).toMatch(/^[A-Za-z0-9_-]{1,200}$/);
      const parsed = parseReference(text);
      expect(parsed?.reference).toMatchObject({ account, minor, currency: currency.toLowerCase() });
      const { body = '', signature = '' } = parsed ?? {};
      expect(nodeHmac.matches('newest secret', formatTextToSign(body), [signature])).toBe(true);
      expect(run.errors).toContain(`client_reference_id=${text}`);
      expect(run.errors).toContain(`[unit_amount]=${minor}`);
    },
  );

  it('shows the payment’s bonus', async () => {
    await rig.put('settings', { name: 'top_up_bonus', value: [{ pay: '70', get: 80 }] });
    const words = ['acme', '--amount', '10', '--currency', 'usd', '--json'];
    expect(JSON.parse((await linked(...words)).output)).toMatchObject({ granted: '81' });
    await rig.put('settings', { name: 'top_up_bonus', value: [{ pay: 70, get: 60 }] });
    expect((await linked(...words)).errors).toContain('the setting top_up_bonus is invalid');
    await rig.put('settings', { name: 'top_up_bonus', value: [{ pay: 1e6, get: 1e6 + 1 }] });
  });

  it('never signs the same reference twice', async () => {
    const words = ['acme', '--amount', '1', '--currency', 'usd', '--json'];
    const [one, two] = [await linked(...words), await linked(...words)];
    expect(one.output).not.toBe(two.output);
  });

  it.each([
    [['acmee', '--amount', '1', '--currency', 'usd'], 'no customer acmee: create it with `customer new`'],
    [['acme', '--amount', '0', '--currency', 'usd'], 'use an amount in usd above 0, with at most'],
    [['acme', '--amount', '1.005', '--currency', 'usd'], 'above 0, with at most 2 decimals'],
    [['acme', '--amount', '1.5', '--currency', 'jpy'], 'above 0, with at most 0 decimals'],
    [['acme', '--amount', '1.005', '--currency', 'kwd'], 'Stripe allows at most two decimals'],
    [['acme', '--amount', '1', '--currency', 'eur'], 'the setting payments has no rate for eur (only for'],
    [['x'.repeat(120), '--amount', '1', '--currency', 'usd'], 'is too long'],
  ])('refuses %j', async (words, message) => {
    const run = await linked(...words);
    expect(run.code).toBeGreaterThan(0);
    expect(run.errors).toContain(message);
  });
});

const parked = (changes: Partial<Payment> = {}): Payment => ({
  id: 'pi_1',
  version: 1,
  state: 'parked',
  at: '2026-11-20T00:00:00Z',
  paid: { minor: 1000n, currency: 'usd' },
  rate: '7',
  live: false,
  problem: 'the payment has no reference of this relay',
  reversals: { re_1: { kind: 'refund', state: 'taken', minor: 400n, currency: 'usd' } },
  ...changes,
});

async function park(changes: Partial<Payment>): Promise<Payment> {
  const { payments } = await rig.ports();
  const after = parked(changes);
  expect(await payments.write({ before: undefined, after, grants: [] })).toBe('written');
  return after;
}

describe('parked payments', () => {
  it('are listed with their reason', async () => {
    await park({ id: 'pi_list' });
    await park({ id: 'pi_done', state: 'rejected' });
    const run = await rig.ops('payment list --parked');
    expect(run.output).toContain('no reference of this relay');
    expect(run.output).toContain('refund 4 usd');
    expect(run.output).not.toContain('pi_done');
    expect((await rig.ops('payment list')).output).toContain('pi_done');
    expect((await rig.ops('payment list --json')).output).toContain('"paid": "10 usd"');
  });

  it('are credited to an account with their refunds, once, after a question', async () => {
    await park({ id: 'pi_a' });
    const words = 'payment assign pi_a acme';
    const asked = await rig.ops(words);
    expect(asked).toMatchObject({ code: 2 });
    expect(asked.errors).toContain('Credit payment pi_a of 10 usd to acme?');
    expect((await rig.ops(`${words} --dry-run`)).output).toContain('nothing was written');
    expect((await rig.ops(`${words} --yes`)).output).toContain('Credited payment pi_a to acme');
    await rig.applyGrants();
    expect((await rig.item('acme'))?.granted).toBe(yuan('42'));
    const again = await rig.ops(['payment', 'assign', 'pi_a', 'Zoë & Söhne_1', '--yes']);
    expect(again.errors).toContain('pi_a is not parked: it was credited to acme');
  });

  it('are credited to one account if two operators assign them at once', async () => {
    await park({ id: 'pi_race', reversals: {} });
    const runs = await Promise.all(
      ['acme', 'Zoë & Söhne_1'].map((account) => rig.ops(['payment', 'assign', 'pi_race', account, '--yes'])),
    );
    expect(runs.map(({ code }) => code).reduce((sum, code) => sum + code)).toBe(1);
    const rows = await Promise.all(
      ['acme', 'Zoë & Söhne_1'].map((account) => rig.row('grants', { account, grant_id: 'pi_race' })),
    );
    expect(rows.filter((row) => row !== undefined)).toHaveLength(1);
  });

  it('without a rate use the current one, and wait if there is none', async () => {
    const card = { customer: 'cus_1', method: 'pm_1' };
    await park({ id: 'pi_late', rate: undefined, reversals: {}, card });
    const { output } = await rig.ops('payment assign pi_late acme --yes');
    expect(output).toContain('once for the payment of 10 usd');
    expect(output).toContain(
      'To store the card for automatic top-ups, resend an event of the payment in Stripe',
    );
    await park({ id: 'pi_refunded', card });
    await park({ id: 'pi_other', reversals: {}, card, account: 'Zoë & Söhne_1' });
    for (const id of ['pi_refunded', 'pi_other'])
      expect((await rig.ops(`payment assign ${id} acme --yes`)).output).not.toContain('automatic top-ups');
    await park({ id: 'pi_eur', rate: undefined, paid: { minor: 1n, currency: 'eur' } });
    const run = await rig.ops('payment assign pi_eur acme --yes');
    expect(run).toMatchObject({ code: 1 });
    expect(run.errors).toContain('the setting payments has no rate for eur: add one and try again');
  });

  it('are rejected, and then credited to no account', async () => {
    await park({ id: 'pi_no' });
    expect((await rig.ops('payment reject pi_no --yes')).output).toContain('Rejected payment pi_no');
    const run = await rig.ops('payment assign pi_no acme --yes');
    expect(run.errors).toContain('pi_no is not parked: it was rejected');
    expect(await rig.row('grants', { account: 'acme', grant_id: 'pi_no' })).toBeUndefined();
  });

  it.each([
    [['pi_gone', 'acme'], 'no payment pi_gone: see `payment list`'],
    [['pi_list', 'acmee'], 'no customer acmee: create it first'],
  ])('are not assigned: %j', async (words, message) => {
    const run = await rig.ops(['payment', 'assign', ...words, '--yes']);
    expect(run.code).toBeGreaterThan(0);
    expect(run.errors).toContain(message);
  });
});
