import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCodeStore } from '../../shared/adapters/dynamodb/code-store.ts';
import { CodeRow, hashCode } from '../../shared/config/rows/code-row.ts';
import { readRow } from '../../shared/config/rows/read-row.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { LedgerRig, yuan } from './ledger-rig.ts';

let rig: LedgerRig;
let emulator: Emulator;
beforeAll(async () => {
  emulator = await startEmulator();
  rig = await LedgerRig.start(emulator);
});
afterAll(async () => rig.stop());

type Cells = Record<string, string>;
const rows = (csv: string): Cells[] => parse(csv, { columns: true });
const make = async (words: string): Promise<Cells[]> => {
  const run = await rig.ops(`grant codes ${words} --csv`);
  expect(run).toMatchObject({ code: 0 });
  return rows(run.output);
};
const batches = async (): Promise<Cells[]> => rows((await rig.ops('grant batches --csv')).output);
const codesOf = async (batch: string): Promise<Cells[]> =>
  rows((await rig.ops(`grant batches ${batch} --csv`)).output);
/** Redeems as the function `selfservice` does. */
async function redeem(code: string, account: string): Promise<void> {
  const client = emulatorClient(emulator.endpoint);
  const store = createCodeStore(tablesOn(client), 'relay');
  const reading = readRow(CodeRow, await store.find(hashCode(code) ?? ''));
  if ('problem' in reading) throw new Error(reading.problem);
  const { row } = reading;
  const grant = { account, grant_id: `code-${row.hash.slice(0, 16)}`, amount: row.amount, reason: 'code' };
  expect(await store.redeem(row, grant, '2026-11-11T12:00:00Z')).toBe(true);
  client.destroy();
}

describe('a batch of codes', () => {
  it('is printed once as CSV, and the table stores only hashes', async () => {
    const made = await make('--count 205 --amount 12.5 --batch spring --expires 2999-01-01');
    expect(made).toHaveLength(205);
    expect(made[0]).toMatchObject({ batch: 'spring', amount: '12.5', expires_at: '2999-01-01' });
    const stored = await (await rig.ports()).tables.scan('codes');
    const text = JSON.stringify(stored);
    expect(stored).toHaveLength(205);
    for (const { code = '' } of made) {
      expect(text).toContain(hashCode(code));
      expect(text).not.toContain(code.replaceAll('-', '').toLowerCase());
    }
    expect(stored[0]).toMatchObject({ batch: 'spring', amount: 12.5, _by: 'local' });
  });

  it('shows who redeemed which code, and keeps that when the others are revoked', async () => {
    const [first, second, third] = await make('--count 3 --amount 10 --batch summer');
    await redeem(first?.['code'] ?? '', 'acme');
    await rig.applyGrants();
    expect((await rig.item('acme'))?.granted).toBe(yuan('10'));
    expect((await codesOf('summer'))[0]).toMatchObject({
      id: first?.['id'],
      state: 'redeemed',
      account: 'acme',
      redeemed_at: '2026-11-11T12:00:00Z',
    });
    // By the code itself, as a customer would read it aloud.
    const one = await rig.ops(['grant', 'revoke', (second?.['code'] ?? '').toLowerCase(), '--yes']);
    expect(one.output).toContain('Revoked 1 code.');
    await expect(redeem(second?.['code'] ?? '', 'acme')).rejects.toThrow(/expected|false/);
    expect((await rig.ops('grant revoke summer --yes')).output).toContain('Revoked 1 code.');
    expect((await rig.ops('grant revoke summer --yes --json')).output).toContain('"done": false');
    expect(await batches()).toContainEqual(
      expect.objectContaining({
        batch: 'summer',
        codes: '3',
        open: '0',
        redeemed: '1',
        credited: '10',
        revoked: '2',
      }),
    );
    await expect(redeem(third?.['code'] ?? '', 'acme')).rejects.toThrow(/expected|false/);
    await rig.put('grants', {
      account: 'acme',
      grant_id: 'pi_1-bonus',
      amount: 3,
      reason: 'bonus of the payment of 30 cny',
    });
    await rig.applyGrants();
    const list = await rig.ops('grant list --account acme --csv');
    expect(list.output).toContain(`acme,${first?.['id']},10,2026-11-11T12:00:00Z,,code`);
    expect(JSON.parse((await rig.ops('report --month 2026-11 --json')).output)).toMatchObject({
      credits: expect.arrayContaining([
        { kind: 'code', grants: 1, amount: '10' },
        { kind: 'bonus', grants: 1, amount: '3' },
      ]) as unknown[],
    });
  });

  it.each([
    ['--count 1 --amount 10 --batch spring', 'batch spring already exists'],
    ['--count 10001 --amount 10', 'use 1 to 10000 codes'],
    ['--count 0 --amount 10', 'whole number above 0'],
    ['--count 1 --amount 0', 'expected yuan from 0.01'],
    ['--count 1 --amount -5', 'Expected a number'],
    ['--count 1 --amount 0.001', 'at most 2 decimals'],
    ['--count 1 --amount 1000000.01', 'amount: found'],
    ['--count 1 --amount 10 --expires soon', 'expires_at: invalid time'],
    ['--count 1 --amount 10 --expires 2020-01-01', 'expires_at: is in the past'],
  ])('is rejected for %s', async (words, why) => {
    const run = await rig.ops(`grant codes ${words}`);
    expect(run.code).toBeGreaterThan(0);
    expect(run.errors).toContain(why);
    expect((await batches()).map(({ batch }) => batch)).toEqual(expect.arrayContaining(['spring', 'summer']));
  });

  it('is not written by a dry run, and an invalid row in the table hides no other', async () => {
    const dry = await rig.ops('grant codes --count 5 --amount 10 --dry-run');
    expect(dry.output).toContain('Create 5 codes of ¥10');
    await rig.put('codes', { hash: 'x', batch: 'odd', amount: 'ten' });
    const list = await rig.ops('grant batches');
    expect(list.errors).toContain("a code can't be read: amount: found");
    expect(list.output).toMatch(/spring .* 205 /);
    expect((await rig.ops('grant batches none')).output).toContain('No codes of batch none');
    expect((await rig.ops('grant revoke none --yes')).errors).toContain('no batch or code none');
  });
});
