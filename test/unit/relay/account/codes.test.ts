import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { generateHex } from '../../../../shared/adapters/system/node-ports.ts';
import { codeBytes, codeIdOf, formatCode, hashCode } from '../../../../shared/config/rows/code-row.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { ManagedRig, type Json } from './managed-rig.ts';

let rig: ManagedRig;
beforeAll(async () => {
  rig = await ManagedRig.start();
});
afterAll(async () => rig.stop());
beforeEach(() => {
  rig.nowMs = Date.now();
  rig.beforeWrite = async () => {};
  rig.afterWrite = () => {};
});

/** A code that an operator made, with its row. */
async function makeCode(more: Json = {}): Promise<{ code: string; hash: string; id: string }> {
  const code = formatCode(generateHex(codeBytes));
  const hash = hashCode(code) ?? '';
  await rig.put('codes', { hash, batch: 'spring', amount: 10, ...more });
  return { code, hash, id: codeIdOf(hash) };
}

const redeem = (key: string, code: unknown) => rig.send('POST', '/v1/account/codes', key, { code });
const grantsOf = async (account: string) =>
  (await rig.rows('grants')).filter((row) => row['account'] === account);
const codeRow = async (hash: string) => (await rig.rows('codes')).find((row) => row['hash'] === hash);

describe('a redeem code', () => {
  it('credits the account of any usable key once, with the batch as the reason, and repeats the same answer', async () => {
    const { key, account } = await rig.maker({ manage: false });
    const { code, hash, id } = await makeCode({ amount: 12.5 });
    const first = await redeem(key, code);
    expect([first.status, first.body]).toEqual([
      200,
      { object: 'account.code', id, amount: 12.5, redeemed_at: Math.floor(rig.nowMs / 1000) },
    ]);
    rig.nowMs += 5_000;
    expect((await redeem(key, code)).body).toEqual(first.body);
    expect(await grantsOf(account)).toEqual([
      { account, grant_id: id, amount: 12.5, reason: 'code of batch spring', _unapplied: 'yes' },
    ]);
    expect(await codeRow(hash)).toMatchObject({ redeemed_by: account });
  });

  it.each([
    ['lower case', (code: string) => code.toLowerCase()],
    ['blanks for dashes', (code: string) => ` ${code.replaceAll('-', ' ')}\t`],
    ['no dashes', (code: string) => code.replaceAll('-', '')],
    ['long dashes', (code: string) => code.replaceAll('-', '—')],
    [
      'wide characters',
      (code: string) => code.replaceAll(/[!-~]/g, (each) => String.fromCharCode(each.charCodeAt(0) + 0xfee0)),
    ],
    ['O for 0 and l for 1', (code: string) => code.replaceAll('0', 'O').replaceAll('1', 'l')],
  ])('is accepted with %s', async (_how, write) => {
    const { key } = await rig.maker();
    const { code } = await makeCode();
    expect((await redeem(key, write(code))).status).toBe(200);
  });

  it.each<[string, number, string, (code: string) => unknown, Json]>([
    ['that does not exist', 404, 'code_not_found', () => formatCode(generateHex(codeBytes)), {}],
    ['that is truncated', 404, 'code_not_found', (code) => code.slice(1), {}],
    ['that is empty', 404, 'code_not_found', () => '', {}],
    ['that is not a string', 400, 'invalid_value', () => 5, {}],
    [
      'that another account redeemed',
      409,
      'code_redeemed',
      (code) => code,
      { redeemed_by: 'other', redeemed_at: '2026-11-29T00:00:00Z' },
    ],
    ['that was revoked', 409, 'code_revoked', (code) => code, { revoked_at: '2026-11-29T00:00:00Z' }],
    ['that has expired', 409, 'code_expired', (code) => code, { expires_at: '2026-11-01' }],
    ['with an unreadable row', 404, 'code_not_found', (code) => code, { amount: 'ten' }],
    ['with a negative amount', 404, 'code_not_found', (code) => code, { amount: -10 }],
  ])('%s is rejected with %i %s and credits nothing', async (_what, status, error, write, more) => {
    const { key, account } = await rig.maker();
    const { code } = await makeCode(more);
    const answer = await redeem(key, write(code));
    expect([answer.status, answer.body.error['code']]).toEqual([status, error]);
    expect(await grantsOf(account)).toEqual([]);
  });

  it('stays valid when a metered account, a closed account or an unknown key sends it', async () => {
    const { code, hash } = await makeCode();
    const metered = await rig.maker();
    await rig.put('accounts', { account: metered.account, metered: true });
    const closed = await rig.maker();
    await rig.put('accounts', { account: closed.account, enabled: false });
    const answers = [
      await redeem(metered.key, code),
      await redeem(closed.key, code),
      await redeem(`sk-${'x'.repeat(48)}`, code),
    ];
    expect(answers.map(({ status, body }) => [status, body.error['code']])).toEqual([
      [404, 'top_up_not_offered'],
      [401, 'invalid_api_key'],
      [401, 'invalid_api_key'],
    ]);
    expect(await codeRow(hash)).not.toHaveProperty('redeemed_by');
  });

  it('credits one of 100 accounts that send it at once, and the others learn that it was redeemed', async () => {
    const { code, id } = await makeCode();
    const accounts = await Promise.all(Array.from({ length: 100 }, () => rig.maker()));
    const answers = await Promise.all(accounts.map(({ key }) => redeem(key, code)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.error?.['code'] === 'code_redeemed')).toHaveLength(99);
    expect((await rig.rows('grants')).filter((row) => row['grant_id'] === id)).toHaveLength(1);
  });

  it('credits an account once that sends it 100 times at once, with the same answer each time', async () => {
    const { key, account } = await rig.maker();
    const { code } = await makeCode();
    const answers = await Promise.all(Array.from({ length: 100 }, () => redeem(key, code)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(await grantsOf(account)).toHaveLength(1);
  });

  it('credits only its account, once, when the store’s reply is lost', async () => {
    const [first, other] = [await rig.maker(), await rig.maker()];
    const { code, id } = await makeCode();
    let lost = 0;
    rig.afterWrite = () => {
      if ((lost += 1) === 1) throw new StoreUnavailable('The reply was lost.');
    };
    expect((await redeem(first.key, code)).body).toMatchObject({ id, amount: 10 });
    expect((await redeem(other.key, code)).body.error['code']).toBe('code_redeemed');
    expect([lost, (await grantsOf(first.account)).length, await grantsOf(other.account)]).toEqual([1, 1, []]);
  });

  it('credits what its row says after an operator revokes or changes it between read and write', async () => {
    const { key, account } = await rig.maker();
    const [revoked, changed] = [await makeCode(), await makeCode()];
    rig.beforeWrite = async () => rig.put('codes', { ...(await codeRow(revoked.hash)), revoked_at: 'now' });
    expect((await redeem(key, revoked.code)).body.error['code']).toBe('code_revoked');
    rig.beforeWrite = async () => rig.put('codes', { ...(await codeRow(changed.hash)), amount: 3 });
    expect((await redeem(key, changed.code)).body).toMatchObject({ amount: 3 });
    expect((await grantsOf(account)).map((row) => row['amount'])).toEqual([3]);
  });

  it('can be tried 100 times a minute per account, with any number of keys', async () => {
    const { key, account } = await rig.maker();
    const second = await rig.maker({ account });
    rig.nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
    const guess = (by: string) => redeem(by, formatCode(generateHex(codeBytes)));
    const guesses = await Promise.all(
      Array.from({ length: 120 }, (_, at) => guess(at % 2 ? key : second.key)),
    );
    expect(guesses.filter(({ status }) => status === 404)).toHaveLength(100);
    const { code } = await makeCode();
    const late = await redeem(key, code);
    expect([late.status, late.headers['retry-after']]).toEqual([429, '60']);
    rig.nowMs += 60_000;
    expect((await redeem(key, code)).status).toBe(200);
  });
});

it('codes have 20 characters, none of them easily confused, and no duplicates among 20,000', () => {
  const codes = new Set(Array.from({ length: 20_000 }, () => formatCode(generateHex(codeBytes))));
  expect(codes.size).toBe(20_000);
  for (const code of codes) expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){3}[0-9A-HJKMNP-TV-Z]{5}$/);
  const seen = [...codes].join('').replaceAll('-', '');
  // Each of the 32 characters occurs about 12,500 times in 400,000.
  for (const each of new Set(seen)) expect(seen.split(each).length).toBeGreaterThan(11_500);
});
