import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
});
afterAll(async () => rig.stop());

let calls = 0;

/** The ledger row of a call by a new account. */
async function chargedCall(charge: string): Promise<{ account: string; id: string }> {
  calls += 1;
  const account = `refunded-${calls}`;
  const id = idAt('2026-11-10T12:00:00Z', `r${calls}`);
  const row = { account, id, at: '2026-11-10T12:00:05Z', kind: 'settled', model: 'm', key: '0123456789ab' };
  await rig.put('ledger', { ...row, charge: Number(charge), reserved: 1, price: '1:tokens:0.018:0.072' });
  return { account, id };
}

/** A call that was charged 1 yuan at its expiry, and a difference when it finally ended. */
async function chargedLate(difference: string, tokens: object): Promise<{ account: string; id: string }> {
  const call = await chargedCall('1');
  const price = '1:tokens:1:1';
  await rig.damage('ledger', call, 'kind', 'expired');
  await rig.damage('ledger', call, 'price', price);
  const row = {
    account: call.account,
    id: `late#${call.id}`,
    at: '2026-11-10T12:09:00Z',
    model: 'm',
    ...tokens,
  };
  await rig.put('ledger', { ...row, key: '0123456789ab', charge: Number(difference), reserved: 0, price });
  return call;
}

const refund = (id: string, ...words: string[]) =>
  rig.ops(['request', 'refund', id, '--wait', '0', '--yes', ...words]);

async function granted(account: string): Promise<bigint | undefined> {
  await rig.applyGrants();
  return (await rig.item(account))?.granted;
}

describe('request refund', () => {
  it('refunds the whole charge once, as a grant that names the row', async () => {
    const { account, id } = await chargedCall('0.123456789');
    const run = await refund(`chatcmpl-${id}`, '--reason', 'answer was cut');
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain(`Request ${id} (m) was charged ¥0.123456789`);
    expect(run.output).toContain(`(grant "refund#${id}")`);
    expect(await rig.row('grants', { account, grant_id: `refund#${id}` })).toMatchObject({
      reason: 'answer was cut',
    });
    expect(await granted(account)).toBe(yuan('0.123456789'));
    const again = await refund(id);
    expect(again).toMatchObject({ code: 1 });
    expect(again.errors).toContain('nothing is left to refund');
    expect(await granted(account)).toBe(yuan('0.123456789'));
  });

  it('asks first, and writes nothing with --dry-run', async () => {
    const { account, id } = await chargedCall('2');
    const asked = await rig.ops(`request refund ${id}`);
    expect(asked.errors).toContain(`Refund ¥2.00 to ${account}?`);
    expect((await refund(id, '--dry-run')).output).toContain('nothing was written');
    expect(await granted(account)).toBeUndefined();
  });

  it('accepts parts that never exceed the charge in total, whether they were applied or not', async () => {
    const { account, id } = await chargedCall('1');
    await refund(id, '--amount', '0.4');
    await rig.applyGrants();
    await refund(id, '--amount', '0.5');
    const tooMuch = await refund(id, '--amount', '0.2');
    expect(tooMuch).toMatchObject({ code: 2 });
    expect(tooMuch.errors).toContain('of which ¥0.90 is already refunded');
    expect(tooMuch.errors).toContain('at most 0.1');
    expect(await refund(id)).toMatchObject({ code: 0 });
    expect(await granted(account)).toBe(yuan('1'));
  });

  it('treats the same part within minutes as a repeat, unless it has a number', async () => {
    const { account, id } = await chargedCall('1');
    const part = ['--amount', '0.3'];
    expect(await refund(id, ...part, '--part', '1')).toMatchObject({ code: 0 });
    // As after a lost reply, or when it was killed after its write: before the relay has applied it, and after.
    const again = await refund(id, ...part);
    expect(again).toMatchObject({ code: 1 });
    expect(again.errors).toContain(`was refunded minutes ago (grant "refund#${id}")`);
    await rig.applyGrants();
    await rig.damage('ledger', { account, id: `grant#refund#${id}` }, 'at', new Date().toISOString());
    expect((await refund(id, ...part)).errors).toContain('--part 2');
    const numbered = await refund(id, ...part, '--part', '1');
    expect(numbered).toMatchObject({ code: 2 });
    expect(numbered.errors).toContain('--part 1: the next part is 2');
    expect(await granted(account)).toBe(yuan('0.3'));
    expect(await refund(id, ...part, '--part', '2')).toMatchObject({ code: 0 });
    expect(await granted(account)).toBe(yuan('0.6'));
  });

  it('counts applied refunds even if their grant rows were edited or deleted since', async () => {
    const { account, id } = await chargedCall('1');
    await refund(id, '--amount', '0.7');
    await rig.applyGrants();
    await rig.damage('grants', { account, grant_id: `refund#${id}` }, 'amount', 0.1);
    expect((await refund(id, '--amount', '0.5')).errors).toContain('at most 0.3');
    await rig.remove('grants', { account, grant_id: `refund#${id}` });
    expect((await refund(id, '--amount', '0.5')).errors).toContain('at most 0.3');
  });

  it('warns before it asks if the calls of a leaked key were already refunded', async () => {
    const { account, id } = await chargedCall('1');
    expect((await rig.ops(`request refund ${id}`)).errors).not.toContain('warning');
    const leaked = `grant new ${account} 1 --id leaked-0123456789ab --new --wait 0`;
    expect(await rig.ops(`${leaked} --yes`)).toMatchObject({ code: 0 });
    expect((await rig.ops(`request refund ${id}`)).errors).toContain(
      'warning: grant "leaked-0123456789ab" already refunded ¥1.00 for calls of this key, possibly including this one',
    );
  });

  it('is written once if two operators refund at once', async () => {
    const { account, id } = await chargedCall('1');
    const runs = await Promise.all([1, 2, 3, 4].map(() => refund(id, '--amount', '0.6')));
    expect(runs.filter(({ code }) => code === 0)).toHaveLength(1);
    expect(await granted(account)).toBe(yuan('0.6'));
  });

  it.each([
    ['more', '0.3', '1.3', 800],
    ['less', '-0.4', '0.6', 100],
  ])('refunds the total charge of a call that was charged %s late', async (_case, late, all, output) => {
    const tokens = { kind: 'settled', prompt_tokens: 500, completion_tokens: output };
    const { account, id } = await chargedLate(late, tokens);
    const lateId = `late#${id}`;
    const tooMuch = await refund(lateId, '--amount', '1.4');
    expect(tooMuch.errors).toContain(`Request ${id} (m) was charged ¥${all}`);
    expect((await refund(id)).code).toBe(0);
    expect(await granted(account)).toBe(yuan(all));
    const shown = await rig.ops(`request show ${id}`);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.output).toContain(`¥${all}`);
    expect(shown.output).not.toContain('the function died');
  });

  it('is rejected if a late close already returned the charge of the expiry', async () => {
    const call = await chargedLate('-1', { kind: 'released', end: 'failed' });
    expect((await refund(call.id)).errors).toContain('was not charged, so there is nothing to refund');
    expect(await granted(call.account)).toBeUndefined();
  });

  it('is rejected for rows without a charge, grants, unknown rows and invalid amounts', async () => {
    const free = await chargedCall('0');
    expect((await refund(free.id)).errors).toContain('was not charged, so there is nothing to refund');
    expect((await refund(idAt('2026-11-10T12:00:00Z', 'none'))).errors).toContain('see `ledger list`');
    await rig.grant('topped', '5');
    expect((await refund('grant#start-topped')).errors).toContain(
      'is a grant, not a charge: correct it with a negative `grant new`',
    );
    const { account, id } = await chargedCall('1');
    for (const amount of ['0', '-1', '1.1', 'all', '0.0000000001'])
      expect(await refund(id, '--amount', amount)).toMatchObject({ code: 2 });
    expect(await granted(account)).toBeUndefined();
  });
});
