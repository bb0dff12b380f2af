import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPages } from '../../shared/operate/export.ts';
import { viewCustomer } from '../../shared/operate/customers/customer-view.ts';
import { openSession } from '../../infra/ops/session/session.ts';
import { ConfigRig } from './config-rig.ts';
import { wordsIn } from './run-ops.ts';

let rig: ConfigRig;
beforeAll(async () => {
  rig = await ConfigRig.start();
  const endpoint = 'https://api.example.com/v1';
  await rig.put('channels', { id: 'main', endpoint, models: ['gpt-4o', 'only'], state: true, _note: 'mine' });
  await rig.put('channels', { id: 'second', endpoint, models: ['gpt-4o'], state: true });
  const price = { type: 'token-billing', input: 0.01, output: 0.02 };
  await rig.put('charges', {
    id: 1,
    models: ['gpt-4o', 'only'],
    ...price,
    tiers: [{ above: 1000, input: 0.02, output: 0.04 }],
  });
});
afterAll(async () => rig.stop());

const set = async (words: string | string[]) => rig.ops([...wordsIn(words), '--wait', '0', '--yes']);

describe('charge set', () => {
  it('shows the difference, asks, and changes only the given attributes', async () => {
    const words = 'charge set 1 input=0.015';
    const asked = await rig.ops(words);
    expect(asked.code).toBe(2);
    expect(asked.output).toContain('Rule 1\n    input: ¥10.00 per 1M tokens -> ¥15.00 per 1M tokens');
    expect((await rig.row('charges', { id: 1 }))?.['input']).toBe(0.01);
    expect((await rig.ops(`${words} --dry-run`)).output).toContain('Dry run: nothing was written.');
    // The command must warn before the write; the mark comes too late.
    expect(asked.errors).toMatch(/warning: charges 1: models: .* rises by 50 %/);
    expect((await set(words)).code).toBe(0);
    expect(await rig.row('charges', { id: 1 })).toMatchObject({
      input: 0.015,
      output: 0.02,
      tiers: [{ above: 1000, input: 0.02, output: 0.04 }],
    });
  });

  it('with a time creates a rule that starts then, and keeps the current one', async () => {
    const run = await set('charge set 1 input=0.03 --from 2030-01-07T00:00:00+08:00');
    expect(run.output).toContain('for these models at 2030-01-07T00:00:00+08:00');
    expect(await rig.row('charges', { id: 2 })).toMatchObject({
      input: 0.03,
      output: 0.02,
      models: ['gpt-4o', 'only'],
    });
    expect((await rig.row('charges', { id: 1 }))?.['input']).toBe(0.015);
    const monday = await rig.ops(['charge', 'set', '1', '--from', 'next monday', 'input=0.05', '--dry-run']);
    expect(monday.output).toMatch(
      /Create rule 3, which replaces rule 1 for these models at \d{4}-\d\d-\d\dT00:00:00Z/,
    );
    const now = await rig.ops('charge explain only --input 1000 --json');
    expect(JSON.parse(now.output)).toMatchObject({ rule: { id: 1 } });
    const then = await rig.ops('charge explain only --input 1000 --at 2030-01-08 --json'.split(' '));
    expect(JSON.parse(then.output)).toMatchObject({ rule: { id: 2 }, total: '0.03' });
  });

  it('creates a rule with the next id, and a rule can be deleted', async () => {
    const free = 'charge new type=times-billing models=a,b output=0.5';
    expect((await set(free)).code).toBe(0);
    expect(await rig.row('charges', { id: 3 })).toMatchObject({ models: ['a', 'b'], output: 0.5 });
    expect((await rig.ops('charge off 3')).code).toBe(2);
    expect((await set('charge off 3')).code).toBe(0);
    expect(await rig.row('charges', { id: 3 })).toBeUndefined();
  });

  it('warns about effects on other rows', async () => {
    const run = await set('charge off 1');
    expect(run.errors).toContain('warning: channels main: models: no price for gpt-4o, only');
    await rig.put('charges', {
      id: 1,
      type: 'token-billing',
      models: ['gpt-4o', 'only'],
      input: 0.015,
      output: 0.02,
    });
  });

  it.each([
    ['1 input=much', 'input: found "much"'],
    ['1 inputs=1', 'inputs'],
    ['1 input', 'write attributes as NAME=VALUE, for example models=a,b'],
    ['one input=1', 'invalid rule id one: run `charge list` for ids'],
    ['9 --from 2030-01-01 input=1', 'no rule 9: see `charge list`'],
    [
      '1 --from soon input=1',
      "'soon' is invalid. Expected a time such as 2h, 14:05, yesterday 14:05, next monday",
    ],
    ['1 --from 2026-01-01 input=1', 'must be in the future; to change rule 1 now, leave out --from'],
    [
      '2 --from 2029-12-31 input=1',
      'rule 2 starts later, at 2030-01-07T00:00:00+08:00, and would take over then; change rule 2 itself, without --from',
    ],
  ])('%j is rejected before anything is written', async (words, message) => {
    const before = await rig.row('charges', { id: 1 });
    const run = await set(`charge set ${words}`);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
    // A mark describes the effect on calls, which an edit that was not written does not have.
    expect(run.errors).not.toContain('are rejected');
    expect(await rig.row('charges', { id: 1 })).toEqual(before);
  });
});

describe('channel', () => {
  it('off names models that no other channel serves, and on enables it again', async () => {
    const off = await set('channel off main');
    expect(off.output).toContain('No other enabled channel serves only: calls to them will fail');
    expect(await rig.row('channels', { id: 'main' })).toMatchObject({ state: false, _note: 'mine' });
    expect((await set('channel off second')).output).toContain(
      'No other enabled channel serves gpt-4o: calls to them will fail',
    );
    for (const id of ['main', 'second']) await set(`channel on ${id}`);
    expect((await set('channel on main')).output).toContain('Channel main is already enabled');
    expect((await set('channel off second')).output).toContain('Other channels serve all of its models');
  });

  it('set changes attributes, and an empty value removes one', async () => {
    await set('channel set second priority=5 name=Second');
    expect(await rig.row('channels', { id: 'second' })).toMatchObject({ priority: 5, name: 'Second' });
    await set('channel set second name=');
    expect(await rig.row('channels', { id: 'second' })).not.toHaveProperty('name');
    const shown = JSON.parse((await rig.ops('channel show second --json')).output) as object;
    expect(shown).toMatchObject({ id: 'second', priority: 5, models: ['gpt-4o'], written_by: 'local' });
    expect((await set('channel set second secret=sk-pasted')).errors).toContain(
      'secret: enter a reference, ssm:/relay/',
    );
  });

  it('off stops the last valid version of an invalid row, which stays invalid', async () => {
    await set('channel on main');
    const good = (await rig.row('channels', { id: 'main' })) ?? {};
    await rig.put('channels', { ...good, priority: 'high' });
    const run = await set('channel off main');
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain(
      'Its row is invalid, so its last valid version was in use: fix it before you enable it again',
    );
    expect(await rig.row('channels', { id: 'main' })).toMatchObject({ state: false, priority: 'high' });
    expect((await set('channel off main')).output).toContain('Channel main is already disabled');
    expect((await set('channel on main')).errors).toContain('channel main is invalid: priority');
    await rig.put('channels', good);
  });

  it('shows no values of an invalid row', async () => {
    await rig.put('channels', {
      id: 'bad',
      endpoint: 'https://a.example.com/v1',
      models: ['m'],
      secret: 'pasted-secret',
    });
    const run = await rig.ops('channel show bad');
    expect(run.code).toBe(1);
    expect(run.errors).toContain('bad is invalid: secret:');
    expect(run.output + run.errors).not.toContain('pasted-secret');
    await rig.remove('channels', { id: 'bad' });
    await rig.put('settings', { name: 'contact', value: { key: 'pasted-secret' } });
    for (const form of [[], ['--json'], ['--csv']]) {
      const list = await rig.ops(['setting', 'list', ...form]);
      expect(list.output + list.errors).not.toContain('pasted-secret');
    }
    await rig.remove('settings', { name: 'contact' });
  });
});

describe('plan and setting', () => {
  it('are created, listed, shown and deleted', async () => {
    const items = '[{"id": "chat", "value": 100, "models": ["gpt-4o"]}]';
    await set(['plan', 'new', '1', 'price=30', `items=${items}`]);
    expect(await rig.row('plans', { level: 1 })).toMatchObject({
      price: 30,
      items: [{ id: 'chat', value: 100 }],
    });
    expect(JSON.parse((await rig.ops('plan list --json')).output)).toMatchObject([{ level: 1, price: 30 }]);
    expect((await rig.ops('plan show 1')).output).toContain('price  30');
    expect((await set('plan new 4 price=1')).errors).toContain('expected a plan level');
    await set('plan off 1');
    expect(await rig.row('plans', { level: 1 })).toBeUndefined();

    await set('setting set limits {"account_rpm":600}');
    expect(await rig.row('settings', { name: 'limits' })).toMatchObject({ value: { account_rpm: 600 } });
    await set('setting set unpriced_models refuse');
    expect((await rig.ops('setting list')).output).toContain('unpriced_models  refuse');
    expect((await set('setting set limits {"account_rpm":-1}')).code).toBe(2);
    expect((await set('setting set nonsense 1')).code).toBe(2);
    await set('setting off limits');
    expect(await rig.row('settings', { name: 'limits' })).toBeUndefined();
  });
});

describe('grant', () => {
  it('list shows unapplied grants first, and no text in place of an amount', async () => {
    await rig.put('grants', {
      account: 'acme',
      grant_id: 'done',
      amount: 5,
      _applied: '2026-11-10T00:00:00Z',
    });
    await rig.put('grants', { account: 'acme', grant_id: 'odd', amount: 'sesame', _problem: 'no amount' });
    const all = JSON.parse((await rig.ops('grant list --json')).output) as object[];
    expect(all).toEqual([
      { account: 'acme', grant_id: 'odd', amount: '?', applied: null, problem: 'no amount' },
      { account: 'acme', grant_id: 'done', amount: '5', applied: '2026-11-10T00:00:00Z' },
    ]);
    const { ports } = await openSession({ stack: 'relay', endpoint: rig.endpoint, local: true }, {});
    const { grants } = await viewCustomer(ports, 'acme');
    const exported = (await Array.fromAsync(exportPages(ports, {}))).flatMap(({ rows }) => rows);
    for (const shown of [grants, exported]) {
      expect(shown).toContainEqual(expect.objectContaining({ grantId: 'odd', amount: '?' }));
      expect(JSON.stringify(shown)).not.toContain('sesame');
    }
    expect((await rig.ops('grant list --open')).output).not.toContain('done');
    expect((await rig.ops('grant show acme done')).output).toContain('amount    5');
    expect((await rig.ops('grant show acme none')).errors).toContain(
      'has no grant "none": see `grant list --account',
    );
  });
});

it.each([
  ['charge show 99', 'no charge 99: see `charge list`'],
  [
    'setting off limts',
    'setting limts has no row: it has its default, or does not exist (see docs/tables.md',
  ],
  ['charge set 99 input=1', 'no charge 99: see `charge list`'],
])('%j reports that the row does not exist', async (words, message) => {
  const run = await rig.ops(words);
  expect(run).toMatchObject({ code: 2, errors: expect.stringContaining(message) as string });
});

describe('a sheet of many rows', () => {
  const hash = 'e'.repeat(64);

  it('is exported, changed, compared and applied, and rows that changed since are rejected by name', async () => {
    await rig.put('accounts', { account: 'sheet', rpm: 5, contact: { email: 'a@example.com' } });
    await rig.put('keys', { hash, account: 'sheet', hint: 'sk-Shee...wXyZ', models: ['a', 'b'] });
    const [keys, customers] = [rig.file('keys.csv', ''), rig.file('customers.csv', '')];
    expect((await rig.ops(['key', 'export', keys])).output).toContain('Exported 1 row to');
    for (const noun of ['key ', ''])
      expect((await rig.ops(`${noun}export /dev/null/x`)).errors).toBe('cannot write the file /dev/null/x\n');
    await rig.ops(['customer', 'export', customers]);
    const sheet = readFileSync(customers, 'utf8');
    expect(sheet).toMatch(/^account,note,.*contact\.email.*,_seen\nsheet,,yes,,5,/);
    writeFileSync(customers, sheet.replace('sheet,,yes,,5,', 'sheet,VIP,yes,,9,'));
    const dry = await rig.ops(['customer', 'apply', customers, '--dry-run']);
    expect(dry.output).toMatch(/Customer sheet\n +note: VIP\n +rpm: 5 -> 9\n/);
    expect(await rig.row('accounts', { account: 'sheet' })).toMatchObject({ rpm: 5 });
    expect((await rig.ops(['customer', 'apply', customers])).code).toBe(2);
    const run = await rig.ops(['customer', 'apply', customers, '--yes', '--json']);
    expect(JSON.parse(run.output)).toMatchObject({ done: true, rows: 1 });
    expect(await rig.row('accounts', { account: 'sheet' })).toMatchObject({
      note: 'VIP',
      rpm: 9,
      contact: { email: 'a@example.com' },
    });
    const again = await rig.ops(['customer', 'apply', customers, '--yes']);
    expect(again).toMatchObject({
      code: 0,
      output: expect.stringContaining('Nothing to change.') as string,
    });

    await rig.ops(`key set ${hash} rpm=1`);
    const old = readFileSync(keys, 'utf8');
    writeFileSync(keys, old.replace(/a b|"a, b"/, 'a'));
    const late = await rig.ops(['key', 'apply', keys, '--yes']);
    expect(late.errors).toContain('in the meantime: review it and try again');
    expect(await rig.row('keys', { hash })).toMatchObject({ models: ['a', 'b'], rpm: 1 });
  });

  it('of prices lists them per million tokens, and waits until they are published', async () => {
    const file = rig.file('prices.csv', 'id;input\n1;18\n');
    const run = await rig.ops(['charge', 'apply', file, '--wait', '0', '--yes']);
    expect(run.output).toMatch(/Rule 1\n +input: ¥[\d.]+ per 1M tokens -> ¥18.00 per 1M tokens/);
    expect(await rig.row('charges', { id: 1 })).toMatchObject({ input: 0.018 });
    await rig.ops(['charge', 'export', file]);
    expect(readFileSync(file, 'utf8')).toMatch(/^1,token-billing,.*,18,/m);
  });
});

describe('version', () => {
  it('rolls back to the version that was served at a time', async () => {
    await set('setting set contact before@example.com');
    await rig.compile();
    const [newest] = JSON.parse((await rig.ops('version list --json')).output) as {
      version: number;
      published_at: number;
    }[];
    const then = new Date((newest?.published_at ?? 0) * 1000).toISOString();
    await untilLater(then);
    await set('setting set contact after@example.com');
    await rig.compile();
    const run = await rig.ops(`version rollback --to ${then} --wait 0 --yes`);
    expect(run.output).toContain(`Version ${newest?.version}, published`);
    expect(run.output).toContain('value: after@example.com -> before@example.com');
    expect((await rig.row('settings', { name: 'contact' }))?.['value']).toBe('before@example.com');
  });

  it('rolls back to the served version without writes, or by reverting unpublished edits', async () => {
    await rig.compile();
    const [{ version = 0 } = {}] = JSON.parse((await rig.ops('version list --json')).output) as {
      version?: number;
    }[];
    const words = `version rollback ${String(version)} --wait 0`;
    const same = await rig.ops(words);
    expect(same).toMatchObject({ code: 0 });
    expect(same.output).toContain(`Version ${version} is already in use: nothing to change.`);
    await rig.put('settings', { name: 'contact', value: 7 });
    const undone = await rig.ops(`${words} --yes`);
    expect(undone.output).toContain('edits that are not in use yet would be undone');
    expect(undone.output).toContain('value: 7 -> before@example.com');
    expect((await rig.row('settings', { name: 'contact' }))?.['value']).toBe('before@example.com');
  });

  it.each([
    ['', 'specify either a version or --to'],
    ['3 --to 2026-11-20', 'specify either a version or --to'],
    ['--to 2020-11-20T14:00', 'the oldest is version 1, published'],
    ['--to 2999-11-20T14:00', 'use a time in the past'],
    ['--to soon', 'Expected a time such as 2h, 14:05, yesterday 14:05, next monday'],
    ['--to 9999d', 'the oldest is version 1, published'],
    ['999', 'no version 999: see `version list`'],
  ])('rollback %j is rejected', async (words, message) => {
    const run = await set(`version rollback ${words}`.trim());
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
  });
});

/** Versions are numbered by whole seconds of their publication. */
async function untilLater(iso: string): Promise<void> {
  while (Math.floor(Date.now() / 1000) <= Date.parse(iso) / 1000)
    await new Promise((resolve) => setTimeout(resolve, 50));
}
