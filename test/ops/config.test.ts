import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConfigRig } from './config-rig.ts';

const pasted = 'sk-canary0123456789canary0123456789';
const main = {
  id: 'main',
  endpoint: 'https://api.example.com/v1',
  models: ['gpt-4o', 'gpt-4o-mini'],
  state: true,
};
const price = { id: 1, type: 'token-billing', models: ['gpt-4o', 'gpt-4o-mini'], input: 0.01, output: 0.02 };
const bad = { id: 'bad', endpoint: 'https://api.example.com/v1', models: ['x'], secret: pasted, state: true };

let rig: ConfigRig;
beforeAll(async () => {
  rig = await ConfigRig.start();
});
afterAll(async () => rig.stop());

/** The tables at the start of each test. */
beforeEach(async () => {
  for (const id of ['bad', 'second', 'third']) await rig.remove('channels', { id });
  await rig.remove('charges', { id: 2 });
  await rig.remove('settings', { name: 'contact' });
  await rig.put('channels', { ...main, _note: 'renewed in May' });
  await rig.put('charges', price);
});

const main1 = async () => rig.row('channels', { id: 'main' });

describe('check', () => {
  it('reports keys and grants whose account does not exist', async () => {
    const hash = 'b'.repeat(64);
    await rig.put('keys', { hash, account: 'nobody', models: ['gone'] });
    await rig.put('accounts', { account: 'idle' });
    await rig.put('grants', { account: 'idle', grant_id: 'first', amount: '1', applied: '2026-11-01' });
    const run = await rig.ops('check --json');
    const { warnings } = JSON.parse(run.output) as {
      warnings: { table: string; key: string; warning: string }[];
    };
    const said = warnings.map(({ table, key, warning }) => `${table} ${key}: ${warning}`);
    expect(said).toContain(
      `keys ${hash}: account: had no row at the last check, so the key has no plan and no account limits; ` +
        'models: no enabled channel served gone at the last check',
    );
    expect(said).toContain('grants idle: this account has grants but no key to spend them');
    await rig.remove('keys', { hash });
    await rig.remove('accounts', { account: 'idle' });
    await rig.remove('grants', { account: 'idle', grant_id: 'first' });
  });

  it('lists each row with an error or warning in all tables that people edit, without any secret', async () => {
    await rig.put('channels', bad, { ...main, id: 'second', models: ['unpriced'] });
    await rig.put('keys', { hash: 'f'.repeat(64), account: 'acme', rpm: 'many' });
    await rig.put('accounts', { account: 'acme', plan: 1 });
    await rig.put('grants', { account: 'acme', grant_id: 'one', amount: 1, _problem: 'it was changed' });
    const run = await rig.ops('check');
    expect(run.code).toBe(1);
    for (const words of [
      'error    channels bad: secret: found a value that is not a reference',
      'warning  channels second: models: no price for unpriced, so calls are free',
      `error    keys ${'f'.repeat(64)}: rpm: found "many"`,
      'error    accounts acme: plan: found 1, expected a map {level, since, until}',
      'error    grants acme one: it was changed',
    ])
      expect(run.output).toContain(words);
    expect(run.errors).toContain('7 rows checked: 4 errors, 1 warning');
    const json = await rig.ops('check --json');
    expect(JSON.parse(json.output)).toMatchObject({ rows: 7, problems: { length: 4 } });
    expect(run.output + json.output).not.toContain(pasted);
    await rig.remove('keys', { hash: 'f'.repeat(64) });
    await rig.remove('accounts', { account: 'acme' });
    await rig.remove('grants', { account: 'acme', grant_id: 'one' });
  });

  it('validates the rows of a file as if they were in the tables, or by themselves', async () => {
    const file = rig.file('edit.json', { charges: [{ ...price, id: 2, models: ['gpt-4o', 'new'] }] });
    const over = await rig.ops(`check --file ${file}`);
    expect(over.code).toBe(0);
    expect(over.output).toContain('rule 1 has a lower id and takes precedence for gpt-4o');
    expect(over.output).toContain('3 rows');
    const alone = await rig.ops(`check --file ${file} --alone`, '', {
      AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1',
    });
    expect(alone.output).toContain('1 row checked: 0 errors');
    expect(alone.output).not.toContain('lower id');
    expect(await rig.row('charges', { id: 2 })).toBeUndefined();
  });

  it.each([
    ['no JSON', `{"channels": [${pasted}`, 'is not valid JSON'],
    ['another table', { quotas: [] }, 'unknown table quotas, expected only'],
    ['another shape', [main], 'expected lists of rows by table: {"channels": [{"id": ...}], ...}'],
    ['a key of the wrong type', { charges: [{ ...price, id: '1' }] }, 'charges[0].id: missing key'],
    ['a row twice', { channels: [main, main] }, 'duplicate key'],
  ])('rejects a file with %s', async (_case, content, message) => {
    const run = await rig.ops(`check --file ${rig.file('odd.json', content)}`);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
    expect(run.errors).not.toContain(pasted);
  });
});

describe('version list, show and diff', () => {
  it('show the served rows, their version, and unpublished rows in the tables', async () => {
    expect((await rig.ops('version list')).output).toContain('No version has been published yet');
    await rig.compile();
    await rig.put('channels', { ...main, models: ['gpt-4o'], priority: 5 });
    await rig.compile();
    await rig.put('settings', { name: 'contact', value: 'ops@example.com' });

    const shown = await rig.ops('version list');
    expect(shown.output).toMatch(
      /2 +\S+Z +1 +1 +0 +0 +- +channel main: models, priority\n1 +\S+Z +1 +1 +0 +0 +- +-\nCurrent version: 2/,
    );
    expect(shown.errors).toContain('The tables have unpublished edits: see `version diff`');
    const listed = JSON.parse((await rig.ops('version list --json')).output) as object[];
    expect(listed).toMatchObject([{ version: 2, rows: { channels: 1 } }, { version: 1 }]);

    const second = await rig.ops('version show 2');
    expect(second.output).toContain('Models: gpt-4o\n');
    expect(second.output).toMatch(/main +openai +5 +1 +https:\/\/api.example.com\/v1/);
    expect((await rig.ops('version show 9')).errors).toContain('no version 9: see `version list`');

    const versions = await rig.ops('version diff 1 2');
    expect(versions.output).toContain(
      'from version 1 to version 2:\nChannel main\n    models: gpt-4o, gpt-4o-mini -> gpt-4o\n    priority: 5\n',
    );
    const edits = await rig.ops('version diff');
    expect(edits.output).toContain('Setting contact (new)\n    value: ops@example.com');
    const json = await rig.ops('version diff 1 --json');
    expect(JSON.parse(json.output)).toMatchObject([{ table: 'channels', key: 'main', change: 'changed' }]);
  });

  it('show an invalid row without its secret, wherever it was pasted', async () => {
    await rig.put('channels', {
      ...bad,
      priority: 'high',
      endpoint: `https://x?${pasted}`,
      api_key: 'short',
    });
    const runs = [await rig.ops('version diff'), await rig.ops('version diff --json')];
    for (const name of ['secret', 'endpoint', 'api_key'])
      expect(runs[0]?.output).toContain(`${name}: hidden`);
    expect(runs[0]?.output).toContain('priority: high\n');
    expect(runs.map((run) => run.output).join('')).not.toContain(pasted);
  });
});

describe('config export and apply', () => {
  it('move a configuration through a file, without marks and always in the same order', async () => {
    await rig.put('channels', { ...main, id: 'a-second', models: new Set(['z', 'y']), _warning: 'unpriced' });
    expect(await rig.ops(`config export ${rig.file('whole.json')}`)).toMatchObject({ code: 0 });
    const text = rig.readFile('whole.json');
    expect(JSON.parse(text)).toEqual({
      channels: [{ ...main, id: 'a-second', models: ['y', 'z'] }, main],
      charges: [price],
      plans: [],
      settings: [],
    });
    expect(text).toMatch(/^\{\n {2}"channels": \[\n {4}\{\n {6}"id": "a-second",\n {6}"endpoint"/);
    const same = await rig.ops(`config apply ${rig.file('whole.json')} --prune`);
    expect(same.output).toContain('Nothing to change');
    await rig.remove('channels', { id: 'a-second' });
  });

  it('an export refuses rows that may contain a secret in the wrong place', async () => {
    await rig.put('channels', bad);
    const refused = await rig.ops(`config export ${rig.file('refused.json')}`);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.errors).toContain('nothing was exported');
    expect(await rig.ops(`config export ${rig.file('kept.json')} --skip-bad`)).toMatchObject({
      code: 0,
    });
    expect(JSON.parse(rig.readFile('kept.json'))).toMatchObject({ channels: [{ id: 'main' }] });
    expect(rig.readFile('kept.json')).not.toContain(pasted);
  });

  const edit = {
    channels: [
      { ...main, priority: 7 },
      { ...main, id: 'third' },
    ],
    settings: [{ name: 'contact', value: 'ops@example.com' }],
  };

  it('an apply shows the difference, writes only that with --yes, and prints the version that serves it', async () => {
    await rig.put('channels', { ...main, id: 'second' });
    await rig.compile();
    const file = rig.file('edit.json', edit);
    const dry = await rig.ops(`config apply ${file} --dry-run`);
    expect(dry.output).toContain('Channel main\n    priority: 7\nChannel third (new)\n');
    expect(dry.output).toContain('Save 3 rows\nDry run: nothing was written.');
    expect((await rig.ops(`config apply ${file}`)).errors).toContain(
      'Re-run with --yes: there is no terminal to confirm',
    );
    expect(await rig.row('channels', { id: 'third' })).toBeUndefined();

    const run = await rig.opsWithCompiler(`config apply ${file} --yes`);
    expect(run).toMatchObject({ code: 0, errors: '' });
    expect(run.output).toMatch(/Saved 3 rows.\nPublished version \d+/);
    expect(await main1()).toMatchObject({ ...main, priority: 7, _note: 'renewed in May' });
    expect(await rig.row('channels', { id: 'second' })).toBeDefined();

    const pruned = await rig.ops(`config apply ${file} --prune --yes --wait 0`);
    expect(pruned.output).not.toContain('-> enabled');
    expect(pruned.output).toContain('Channel second (deleted)\n');
    expect(await rig.row('channels', { id: 'second' })).toBeUndefined();
    expect(await rig.row('charges', { id: 1 })).toBeDefined();
  });

  it('an apply writes nothing if one of its rows is invalid, whatever the tables contain', async () => {
    await rig.put('channels', bad);
    const file = rig.file('wrong.json', { channels: [{ ...main, id: 'third', priority: 'high' }] });
    const run = await rig.ops(`config apply ${file} --yes`);
    expect(run.code).toBe(1);
    expect(run.errors).toContain('error: channels third: priority: found "high", expected a whole number');
    expect(run.errors).toContain('channels bad: secret: found a value that is not a reference');
    expect(run.errors).toContain('nothing was written: 1 row is invalid');
    expect(await rig.row('channels', { id: 'third' })).toBeUndefined();
    const well = rig.file('well.json', { channels: [{ ...main, id: 'third' }] });
    expect(await rig.ops(`config apply ${well} --yes --wait 0`)).toMatchObject({ code: 0 });
  });

  it('an apply fails if nothing publishes the written rows', async () => {
    await rig.compile();
    const run = await rig.ops(`config apply ${rig.file('edit.json', edit)} --yes --wait 0.5`);
    expect(run.code).toBe(1);
    expect(run.errors).toContain('the rows are saved but were not published within');
  });
});

describe('version rollback', () => {
  it('restores the rows of an earlier version, deletes later ones, and waits until the result is served', async () => {
    await rig.compile();
    const listed = JSON.parse((await rig.ops('version list --json')).output) as { version: number }[];
    const version = String(listed[0]?.version);
    await rig.put('channels', { ...main, state: false }, { ...main, id: 'second' });
    await rig.put('charges', { ...price, input: 99 });
    await rig.compile();
    await rig.put('channels', bad);

    const dry = await rig.ops(`version rollback ${version} --dry-run`);
    expect(dry.output).toContain('Channel main\n    state: disabled -> enabled\nChannel second (deleted)\n');
    const run = await rig.opsWithCompiler(`version rollback ${version} --yes`);
    expect(run.code).toBe(0);
    expect(run.output).toMatch(/Published version \d+/);
    expect(await main1()).toMatchObject(main);
    expect(await rig.row('charges', { id: 1 })).toMatchObject(price);
    expect(await rig.row('channels', { id: 'second' })).toBeUndefined();
    expect(await rig.row('channels', { id: 'bad' })).toMatchObject({ secret: pasted });
    const after = await rig.ops(`version rollback ${version}`);
    expect(after.output).toContain('Nothing to change');
  });

  it('shows warnings of the rows that it writes, and warnings that it causes, and counts all others, also for prices', async () => {
    const idle = { ...main, models: ['unpriced'] };
    await rig.put('channels', { ...idle, id: 'second' }, { ...idle, id: 'third' });
    await rig.compile();
    const listed = JSON.parse((await rig.ops('version list --json')).output) as { version: number }[];
    await rig.put('channels', { ...idle, id: 'second', priority: 5 });
    const back = await rig.ops(`version rollback ${String(listed[0]?.version)} --dry-run`);
    expect(back.errors).toBe(
      'warning: channels second: models: no price for unpriced, so calls are free\n' +
        'warning: 1 other row has warnings, as before: see `check`\n',
    );
    const priced = await rig.ops('charge price gpt-4o 40/80 --dry-run');
    expect(priced.errors).toMatch(/^warning: charges 2: .* rises[^\n]*\n$/);
  });
});

describe('version list', () => {
  it('names the authors of a version, and a change of author marks alone creates no new version', async () => {
    await rig.compile();
    const file = rig.file('by.json', { settings: [{ name: 'contact', value: 'jane@example.com' }] });
    expect(await rig.opsWithCompiler(`config apply ${file} --yes`)).toMatchObject({ code: 0 });
    expect((await rig.ops('version list --limit 1')).output).toMatch(
      /\d+ +\S+Z( +\d+){4} +local +setting contact is new\n/,
    );
    const newest = async () => JSON.parse((await rig.ops('version list --limit 1 --json')).output);
    const before: unknown = await newest();
    expect(before).toMatchObject([{ by: ['local'] }]);
    const row = await rig.row('settings', { name: 'contact' });
    await rig.put('settings', {
      ...row,
      _by: 'arn:aws:iam::123456789012:user/ann',
      _at: '2027-01-01T00:00:00Z',
    });
    await rig.compile();
    expect(await newest()).toEqual(before);
    await rig.remove('settings', { name: 'contact' });
    await rig.compile();
  });
});
