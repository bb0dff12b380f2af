import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCsvLines } from '../../infra/ops/csv.ts';
import { customerSheet, planSheet } from '../../infra/ops/fields/sheet.ts';
import { carryOutLines, nameSheetKey } from '../../shared/operate/apply-sheet.ts';
import type { OperatorPorts } from '../../shared/operate/operator-ports.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { LedgerRig } from './ledger-rig.ts';

let rig: LedgerRig;
const folder = mkdtempSync(path.join(tmpdir(), 'sheets-'));

beforeAll(async () => {
  rig = await LedgerRig.start();
});
afterAll(async () => {
  await rig.stop();
  rmSync(folder, { recursive: true });
});

const fileOf = (name: string, content: string | Uint8Array): string => {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
};
const apply = (noun: string, file: string, ...more: string[]) =>
  rig.ops([noun, 'apply', file, '--yes', '--wait', '0', ...more]);
const resultOf = (name: string): Record<string, string>[] => {
  const lines = parseCsvLines(readFileSync(path.join(folder, `${name}.result.csv`), 'utf8'), ',');
  const [head = [], ...rows] = lines.map(({ cells }) => cells);
  return rows.map((row) => Object.fromEntries(head.map((each, at) => [each, row[at] ?? ''])));
};
const keysOf = async (account: string) =>
  (await (await rig.ports()).tables.scan('keys')).filter((row) => row['account'] === account);

describe('a sheet of customers', () => {
  const head = 'account,note,rpm,grant.id,grant.amount,key.id,key.models\n';

  it('creates customers with credits and keys, and changes nothing when it is applied again', async () => {
    const file = fileOf('new.csv', `${head}one,VIP,5,g1,100.5,main,"a, b"\ntwo,,,g1,2,main,\nthree,,,,,,\n`);
    const dry = await rig.ops(['customer', 'apply', file, '--dry-run']);
    expect(dry.output).toContain('Customers: 3 new, 0 changed, 0 unchanged');
    expect(dry.output).toContain('Credit ¥102.50 in 2 grants; 0 credited before');
    expect(dry.output).toContain('Keys: 2 new');
    expect(await rig.row('accounts', { account: 'one' })).toBeUndefined();

    const run = await apply('customer', file);
    expect(run).toMatchObject({ code: 0, output: expect.stringContaining('Credited ¥102.50') as string });
    await rig.applyGrants();
    expect((await rig.item('one'))?.available).toBe(100_500_000_000n);
    const [one, two, three] = resultOf('new');
    expect(await rig.row('keys', { hash: keyHash(one?.['key'] ?? '') })).toMatchObject({
      account: 'one',
      models: ['a', 'b'],
      enabled: true,
    });
    expect(one?.['message']).toContain(`API key:  ${one?.['key']}`);
    expect([two?.['account'], three?.['key']]).toEqual(['two', '']);
    expect(statSync(path.join(folder, 'new.result.csv')).mode & 0o77).toBe(0);

    const again = await apply('customer', file);
    expect(again.output).toContain('Nothing to change.');
    expect(resultOf('new')).toHaveLength(3);
  });

  it('keeps values of blank cells, clears cells with -, and edits the key with the given id, also after a rotation', async () => {
    await apply('customer', fileOf('edit.csv', `${head}ed,text,5,,,main,a\n`));
    const [key] = await keysOf('ed');
    await rig.ops(['key', 'rotate', String(key?.['hash']), '--grace', '1h', '--yes']);
    await apply('customer', fileOf('edit.csv', `${head}ed,,-,,,main,b\n`));
    expect(await rig.row('accounts', { account: 'ed' })).toMatchObject({ note: 'text' });
    expect(await rig.row('accounts', { account: 'ed' })).not.toHaveProperty('rpm');
    const keys = await keysOf('ed');
    expect(keys.map((row) => [row['_replaces'] !== undefined, row['models']])).toEqual(
      expect.arrayContaining([
        [false, ['a']],
        [true, ['b']],
      ]),
    );
    expect(keys).toHaveLength(2);
    await apply('customer', fileOf('edit.csv', 'account,key.id,key.enabled\ned,main,no\n'));
    const off = (await keysOf('ed')).filter((row) => row['enabled'] === false);
    expect(off.map((row) => row['_replaces'] !== undefined)).toEqual([true]);
  });

  it('keeps the keys of an earlier sheet in the same result file', async () => {
    await apply('customer', fileOf('same.csv', `${head}first,,,,,main,\n`));
    const [before] = resultOf('same');
    await apply('customer', fileOf('same.csv', `${head}second,,,,,main,\n`));
    expect(resultOf('same').map(({ account, key }) => [account, key !== ''])).toEqual([
      ['first', true],
      ['second', true],
    ]);
    expect(resultOf('same')[0]).toEqual(before);
  });

  it.each([
    ['GBK', 'gbk', Buffer.from('6163636f756e742c6e6f74650ab0a22cbdadcdf50a', 'hex')],
    ['UTF-16', 'utf16', Buffer.from('\uFEFFaccount,note\n阿,江王\n', 'utf16le')],
    [
      'UTF-16 in the other byte order',
      'utf16be',
      Buffer.from('\uFEFFaccount,note\n阿,江王\n', 'utf16le').swap16(),
    ],
    ['UTF-8 with a byte order mark', 'utf8', Buffer.from('\uFEFFaccount,note\r\n阿,江王\r\n')],
  ])('is read in %s', async (_, name, bytes) => {
    const dry = await rig.ops(['customer', 'apply', fileOf(`${name}.csv`, bytes), '--dry-run']);
    expect(dry.output).toMatch(/Customer 阿 \(new\)\n +note: 江王\n/);
  });

  it('reports all errors with their lines, and writes nothing', async () => {
    const lines = [
      'good,,,g,1,main,',
      'bad-rpm,,many,,,,',
      'no-amount,,,g,,,',
      'no-id,,,,,,a',
      'half,,',
      'comma,,,g,1,000,main,',
      'good,,,,,,',
      ',,,,,,',
      'x,,,g,0,,',
    ];
    const run = await apply('customer', fileOf('bad.csv', `${head}${lines.join('\n')}\n`));
    expect(run.code).toBe(2);
    expect(run.errors.split('\n').map((line) => line.replace(/: .*/, ''))).toEqual(
      expect.arrayContaining(['csv', 'line 4', 'line 5', 'line 6', 'line 7', 'line 8', 'line 9', 'line 10']),
    );
    expect(run.errors).toContain('line 3: rpm: found "many"');
    expect(await rig.row('accounts', { account: 'good' })).toBeUndefined();
  });

  it.each([
    ['acount,rpm\na,1\n', 'unknown column acount: did you mean account?'],
    ['account,rpm,rpm\na,1,2\n', 'two columns are named rpm'],
    ['account,key.id,key.expires_at\na,main,30d\n', 'line 2: expires_at: use a date'],
    ['account,key.id,key.rpm\na,main,-1\n', 'line 2: key.rpm: found -1'],
    ['account\0\n', 'this is not a text file'],
  ])('%j is rejected: %s', async (csv, words) => {
    const run = await apply('customer', fileOf('refused.csv', csv));
    expect(run).toMatchObject({ code: 2, errors: expect.stringContaining(words) as string });
  });
});

it('a sheet of grants credits each id once, and rejects another amount for it', async () => {
  await rig.put('accounts', { account: 'paid' });
  const head = 'account,grant_id,amount,reason\n';
  const file = fileOf('grants.csv', `${head}paid,may,10,invoice\npaid,june,2.5,\n`);
  await apply('grant', file);
  await apply('grant', file);
  await rig.applyGrants();
  expect((await rig.item('paid'))?.available).toBe(12_500_000_000n);
  expect(resultOf('grants')[0]?.['message']).toBe('¥10.00 was credited to your account paid.');
  const other = await apply('grant', fileOf('grants.csv', `${head}paid,may,11,\n`));
  expect(other.errors).toContain('grant "may" of paid already exists with ¥10.00');
  const unknown = await apply('grant', fileOf('grants.csv', `${head}nobody,may,11,\n`));
  expect(unknown.errors).toContain('line 2: no customer nobody');
});

it('a sheet of keys creates keys without a hash for existing customers', async () => {
  await rig.put('accounts', { account: 'keyed' });
  const run = await apply('key', fileOf('keys.csv', 'account,id,rpm\nkeyed,a,5\nkeyed,b,\n'));
  expect(run.code).toBe(0);
  expect((await keysOf('keyed')).map((row) => row['_sheet_id'])).toHaveLength(2);
  const none = await apply('key', fileOf('keys.csv', 'account,id\ntypo,a\n'));
  expect(none.errors).toContain('line 2: no customer typo');
});

describe('a run that is killed', () => {
  class Killed extends Error {}
  const csv = (tag: string) =>
    `account,grant.id,grant.amount,key.id\n${[1, 2, 3].map((n) => `${tag}-${n},g,${n}.25,main`).join('\n')}\n`;
  const writesOfOneRun = 9;

  /** Ports whose process dies before a write, or after it, when its reply is lost. */
  const dieAt = (ports: OperatorPorts, at: number, isLate: boolean) => {
    let writes = 0;
    const guard =
      <Input, Reply>(write: (input: Input) => Promise<Reply>) =>
      async (input: Input): Promise<Reply> => {
        writes += 1;
        if (writes > at || (writes === at && !isLate)) throw new Killed('killed');
        const reply = await write(input);
        if (writes >= at) throw new Killed('killed');
        return reply;
      };
    const { tables } = ports;
    return {
      ...ports,
      tables: {
        get: (...input: Parameters<typeof tables.get>) => tables.get(...input),
        scan: (...input: Parameters<typeof tables.scan>) => tables.scan(...input),
        write: guard((write: Parameters<typeof tables.write>[0]) => tables.write(write)),
        writeTogether: guard((write: Parameters<typeof tables.writeTogether>[0]) =>
          tables.writeTogether(write),
        ),
      },
    };
  };
  const runOnce = async (ports: OperatorPorts, sheet: string, secrets: Map<string, string>) => {
    const plan = await planSheet(ports, customerSheet, { csv: sheet, max: 100 });
    const keep = async ({ account, id, secretKey }: { account: string; id: string; secretKey: string }) =>
      void secrets.set(nameSheetKey(account, id), secretKey);
    return carryOutLines(ports, plan, { secrets: new Map(secrets), keep, waitMs: 0 });
  };
  const points = Array.from({ length: writesOfOneRun }, (_, at) => [at + 1, false] as const);

  it.each([...points, ...points.map(([at]) => [at, true] as const)])(
    'at write %i (made: %s) ends in the same state when the sheet is applied again',
    async (at, isLate) => {
      const ports = await rig.ports();
      const tag = `kill-${at}-${isLate}`;
      const secrets = new Map<string, string>();
      await runOnce(dieAt(ports, at, isLate), csv(tag), secrets);
      const outcomes = await runOnce(ports, csv(tag), secrets);
      expect(outcomes.map(({ state }) => state)).not.toContain('failed');
      await rig.applyGrants();
      for (const n of [1, 2, 3]) {
        const account = `${tag}-${n}`;
        expect((await rig.item(account))?.available).toBe(BigInt(n) * 1_000_000_000n + 250_000_000n);
        const known = outcomes.find(({ line }) => line.account === account)?.secretKey ?? '';
        expect((await keysOf(account)).map((row) => row['hash'])).toEqual([keyHash(known)]);
      }
    },
  );

  it('whose last write lands after the next run has read the tables, keeps the key', async () => {
    const ports = await rig.ports();
    const sheet = 'account,key.id\nlanding,main\n';
    const secrets = new Map<string, string>();
    let land = async (): Promise<void> => undefined;
    const held = {
      ...ports,
      tables: Object.assign(Object.create(ports.tables) as typeof ports.tables, {
        async writeTogether(writes: Parameters<typeof ports.tables.writeTogether>[0]) {
          land = () => ports.tables.writeTogether(writes);
          throw new Killed('killed');
        },
      }),
    };
    await runOnce(held, sheet, secrets);
    const late = Object.assign(Object.create(ports.tables) as typeof ports.tables, {
      async writeTogether(writes: Parameters<typeof ports.tables.writeTogether>[0]) {
        await land();
        return ports.tables.writeTogether(writes);
      },
    });
    await runOnce({ ...ports, tables: late }, sheet, secrets);
    await runOnce(ports, sheet, secrets);
    const known = secrets.get(nameSheetKey('landing', 'main')) ?? '';
    expect((await keysOf('landing')).map((row) => row['hash'])).toEqual([keyHash(known)]);
  });

  it('applied twice at the same time, creates one key for each id and credits once', async () => {
    const ports = await rig.ports();
    // The accounts exist, so that creating one does not stop the second run.
    await rig.put('accounts', ...[1, 2, 3].map((n) => ({ account: `twice-${n}` })));
    const both = await Promise.all([1, 2].map(() => runOnce(ports, csv('twice'), new Map())));
    await runOnce(ports, csv('twice'), new Map());
    await rig.applyGrants();
    for (const n of [1, 2, 3]) {
      expect(await keysOf(`twice-${n}`)).toHaveLength(1);
      expect((await rig.item(`twice-${n}`))?.available).toBe(BigInt(n) * 1_000_000_000n + 250_000_000n);
    }
    expect(both.flat().filter(({ state }) => state === 'failed').length).toBeGreaterThan(0);
  });
});
