import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseYuan } from '../../shared/billing/money.ts';
import { buildMonthKey } from '../../shared/billing/daily-keys.ts';
import { nameValues } from '../../infra/ops/cli/terminal.ts';
import { statedColumns, viewStatements } from '../../shared/operate/statement.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-statements-'));
const file = (name: string) => join(folder, name);
const tokens = { prompt_tokens: 12, completion_tokens: 40 };
let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.grant('acme', '100');
  const call = async (iso: string, charge: string, model = 'gpt-4o', more: object = {}) =>
    rig.call('acme', idAt(iso), { charge: yuan(charge), ...tokens, ...more }, { model });
  await call('2026-10-31T23:59:59Z', '1.000000001');
  await call('2026-11-01T00:00:00Z', '2');
  await call('2026-11-03T08:00:00Z', '0.000000003', 'm<b>ini', { tags: { team: '<i>ads' } });
  await call('2026-11-03T09:00:00Z', '4', 'gpt-4o', { tags: { team: 'search' } });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await rig.stop();
});

const statement = async (words: string) => rig.ops(`statement acme --wait 0 ${words}`);

describe('statement', () => {
  it('lists exactly what leads from the opening to the closing balance, by day and model', async () => {
    const run = await statement('--month 2026-11 --json');
    expect(run.code).toBe(0);
    // The grant of the rig is applied on 11 November, so October's charges were owed at its end.
    expect(JSON.parse(run.output)).toMatchObject({
      account: 'acme',
      opening: '-1.000000001',
      granted: '100',
      charged: '6.000000003',
      closing: '92.999999996',
      problems: [],
    });
    expect(parseYuan('92.999999996')).toBe((await rig.item('acme'))?.available);
    const october = JSON.parse((await statement('--month 2026-10 --json')).output) as object;
    expect(october).toMatchObject({
      opening: '0',
      granted: '0',
      charged: '1.000000001',
      closing: '-1.000000001',
    });
  });

  it('of a metered account closes with the account’s balance', async () => {
    await rig.grant('company', '3');
    const close = { charge: yuan('1'), ...tokens };
    await rig.call('company', idAt('2026-10-05T00:00:00Z'), close, { metered: true });
    await rig.call('company', idAt('2026-11-05T00:00:00Z'), close, { metered: true });
    const { output } = await rig.ops('statement company --month 2026-11 --wait 0');
    expect(output).toMatch(/- charged +1\n[^]*\+ metered +1\n[^]*closing +3\n/);
  });

  it('of all customers writes one file each and one CSV, and one that does not add up does not stop the others', async () => {
    await rig.grant('all/of it', '7');
    await rig.put('quotas', { account: 'broken', available: 'much' });
    const all = 'statement --all --month 2026-11 --wait 0';
    const run = await rig.ops([...all.split(' '), '--html', file('all'), '--csv']);
    expect(run).toMatchObject({
      code: 1,
      errors: expect.stringContaining('1 statement does not add up') as string,
    });
    const lines = parse<Record<string, string>>(run.output, { columns: true });
    const closings = lines.flatMap(({ account, kind, amount }) =>
      kind === 'closing' ? [[account, amount]] : [],
    );
    expect(closings).toEqual(
      expect.arrayContaining([
        ['acme', '92.999999996'],
        ['all/of it', '7'],
      ]),
    );
    const names = readdirSync(file('all')).toSorted();
    expect(names).toHaveLength(closings.length);
    expect(readFileSync(join(file('all'), 'all%2Fof%20it-2026-11.html'), 'utf8')).toContain(
      'Statement of all/of it, 2026-11',
    );
    await rig.remove('quotas', { account: 'broken' });
    const listed = JSON.parse((await rig.ops(`${all} --json`)).output) as object[];
    expect(listed).toContainEqual(expect.objectContaining({ account: 'acme', closing: '92.999999996' }));
    // The console's page, which reads no days.
    await rig.put('accounts', ...listed.map((each) => ({ account: (each as { account: string }).account })));
    const { statements } = await viewStatements(await rig.ports(), '2026-11', '');
    expect(statements.map((each) => nameValues(statedColumns, each))).toEqual(listed);
    const invalid = await rig.ops('statement --all --month 2026-13');
    expect(invalid).toMatchObject({ code: 2, errors: expect.stringMatching(/^--month/) as string });
    expect(invalid.output).not.toContain('No customer');
    expect((await rig.ops(`statement acme --all --month 2026-11`)).errors).toContain(
      'specify either a customer or --all',
    );
  });

  it('export writes all rows of people and money to one file, without secrets, and renames it once it is complete', async () => {
    await rig.put('keys', { hash: 'a'.repeat(64), account: 'acme', hint: 'sk-Good...wXyZ' });
    await rig.put('keys', { hash: `sk-${'x'.repeat(48)}`, account: 'acme', note: 'sesame' });
    await rig.put('accounts', { account: 'acme', note: 'VIP' }, { account: 'odd', rpm: 0, pin: 'sesame' });
    await rig.put('channels', { id: 'leaky', endpoint: 'https://a.example.com/v1', secret: 'sesame' });
    const to = file('all.jsonl');
    const run = await rig.ops(['export', to, '--from', '2026-11-01', '--to', '2026-12-01', '--json']);
    const { rows } = JSON.parse(run.output) as { rows: Record<string, number> };
    const text = readFileSync(to, 'utf8');
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { table: string; row: Record<string, unknown> });
    expect(lines).toHaveLength(Object.values(rows).reduce((sum, count) => sum + count, 0));
    const of = (table: string) => lines.filter((line) => line.table === table).map(({ row }) => row);
    expect(of('accounts')).toEqual(
      expect.arrayContaining([
        { account: 'acme', note: 'VIP' },
        { account: 'odd', problem: expect.stringContaining('rpm') as string },
      ]),
    );
    expect(of('keys').map(({ hash }) => hash)).toEqual(
      expect.arrayContaining(['a'.repeat(64), 'sk-xxxx...']),
    );
    expect(of('ledger').filter(({ account }) => account === 'acme')).toHaveLength(4);
    expect(text).not.toContain('sesame');
    expect(text).not.toContain('x'.repeat(30));
    const nowhere = await rig.ops(['export', join(to, 'below', 'a.jsonl')]);
    expect(nowhere).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/cannot write the file .*a\.jsonl\n$/) as string,
    });
    for (const unfit of [folder, ''])
      expect((await rig.ops(['export', unfit])).errors).toBe(`cannot write the file ${unfit}\n`);
    // Only Linux has a file that is always full.
    if (existsSync('/dev/full')) {
      symlinkSync('/dev/full', `${file('no-room.jsonl')}.part`);
      const { errors } = await rig.ops(['export', file('no-room.jsonl')]);
      expect(errors).toMatch(/cannot write to the file .*no-room\.jsonl\.part: ENOSPC\n/);
      rmSync(`${file('no-room.jsonl')}.part`);
    }
    expect(existsSync(`${folder}.part`)).toBe(false);
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('as CSV has lines whose amounts add up to the last one', async () => {
    const { output } = await statement('--month 2026-11 --csv');
    const lines = parse<Record<string, string>>(output, { columns: true });
    expect(lines.map(({ kind, day, model }) => [kind, day, model])).toEqual([
      ['opening', '2026-11-01', ''],
      ['grant', '2026-11-11', ''],
      ['calls', '2026-11-01', 'gpt-4o'],
      ['calls', '2026-11-03', 'gpt-4o'],
      ['calls', '2026-11-03', 'm<b>ini'],
      ['closing', '', ''],
    ]);
    const amounts = lines.map(({ amount = '' }) => parseYuan(amount) ?? 0n);
    expect(amounts.slice(0, -1).reduce((sum, amount) => sum + amount, 0n)).toBe(amounts.at(-1));
  });

  it('groups calls by tag instead of day and model on request', async () => {
    const run = await statement(`--month 2026-11 --by tag:team --html ${file('teams.html')}`);
    expect(run.output).toMatch(
      /FOR +CALLS .*\n +search +1 .* 4\n +\(none\) +1 .* 2\n +<i>ads +1 .* 0\.000000003\n/,
    );
    const { output } = await statement('--month 2026-11 --by tag:team --csv');
    const lines = parse<Record<string, string>>(output, { columns: true });
    expect(lines.map(({ kind, group }) => [kind, group])).toEqual([
      ['opening', ''],
      ['grant', ''],
      ['calls', 'search'],
      ['calls', '(none)'],
      ['calls', '<i>ads'],
      ['closing', ''],
    ]);
    const amounts = lines.map(({ amount = '' }) => parseYuan(amount) ?? 0n);
    expect(amounts.slice(0, -1).reduce((sum, amount) => sum + amount, 0n)).toBe(amounts.at(-1));
    const html = readFileSync(file('teams.html'), 'utf8');
    expect(html).toContain('&lt;i&gt;ads');
    expect(html).not.toContain('<i>');
    expect((await statement('--month 2026-11 --by model')).code).toBe(2);
  });

  it('as HTML is one page without script, with the same figures and with escaped names', async () => {
    await statement(`--month 2026-11 --html ${file('acme.html')}`);
    const html = readFileSync(file('acme.html'), 'utf8');
    for (const text of ['>¥92.999999996</td>', '>start-acme</td>', '>paid</', 'm&lt;b&gt;ini'])
      expect(html).toContain(text);
    expect(html).not.toMatch(/<b>|<script|https?:/);
    expect(html).not.toContain('does not add up');
  });

  it('lists the customer’s current prices on request, as text, JSON and HTML', async () => {
    await rig.put('channels', {
      id: 'c',
      endpoint: 'https://api.example.com/v1',
      models: ['x', 'y'],
      state: true,
    });
    await rig.put('charges', { id: 1, type: 'token-billing', models: ['x', 'y'], input: 0.01, output: 0.02 });
    await rig.put('settings', { name: 'price_groups', value: { some: [{ models: ['y'], factor: 0.5 }] } });
    await rig.put('accounts', {
      account: 'acme',
      prices: [{ models: ['x'], factor: 0.8 }],
      price_group: 'some',
      contact: { name: 'Ann Lee', email: 'ann@acme.example' },
    });
    const asked = `--month 2026-11 --prices`;
    const { output } = await statement(asked);
    expect(output).toContain('price of x: ¥8 input, ¥16 output per million tokens');
    expect(output).toContain('price of y: ¥5 input, ¥10 output per million tokens');
    const json = JSON.parse((await statement(`${asked} --json`)).output) as { prices: object[] };
    expect(json.prices).toMatchObject([
      { models: ['x'], input: 0.008 },
      { models: ['y'], input: 0.005 },
    ]);
    await statement(`${asked} --html ${file('priced.html')}`);
    const page = readFileSync(file('priced.html'), 'utf8');
    expect(page).toContain('¥8 input, ¥16 output per million tokens');
    expect(page).toMatch(/<h1>Statement of acme[^]*Ann Lee, ann@acme\.example[^]*<h2>/);
    expect((await statement('--month 2026-11')).output).not.toContain('price of');
  });

  it('shows failed calls in a separate column, in text, CSV and HTML', async () => {
    await rig.grant('mixed', '10');
    const pasted = `sk-${'x'.repeat(48)}`;
    await rig.put('grants', { account: 'mixed', grant_id: 'pasted', amount: 1, reason: pasted });
    await rig.applyGrants();
    const call = async (tail: string, close: object, changes: object = {}) =>
      rig.call('mixed', idAt('2026-11-05T00:00:00Z', tail), { charge: 0n, ...tokens, ...close }, changes);
    await call('a', { charge: yuan('3') });
    await call('b', { kind: 'released' });
    await call('c', { kind: 'expired', charge: yuan('1') });
    await call('d', {}, { slot: 'chat@2026-11-01' });
    const words = 'statement mixed --month 2026-11 --wait 0';
    const { output } = await rig.ops(`${words} --csv --html ${file('mixed.html')}`);
    const day = parse<Record<string, string>>(output, { columns: true }).find(({ kind }) => kind === 'calls');
    const figures = { calls: '4', failed_calls: '2', plan_calls: '1', prompt_tokens: '48' };
    expect(day).toMatchObject({ ...figures, completion_tokens: '160', amount: '-4' });
    // The day and the sum.
    const row = ['4', '2', '1', '48', '0', '160', '¥4.00'].join(' ');
    const texts = readFileSync(file('mixed.html'), 'utf8')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ');
    expect(texts.split(` ${row} `)).toHaveLength(3);
    expect(readFileSync(file('mixed.html'), 'utf8')).not.toContain(pasted);
    const text = await rig.ops(words);
    expect(text.output).toMatch(/2026-11-05 +gpt-4o +4 +2 +1 +48 +160 +4\n/);
    expect(text.output).toMatch(/closing +7\n/);
    expect(text.output).toContain('Calls include failed ones');
  });

  it('that does not add up is refused with the difference, or marked on request', async () => {
    await rig.grant('off', '10');
    await rig.call('off', idAt('2026-11-05T00:00:00Z'), { charge: yuan('1'), ...tokens });
    await rig.damage('daily', { id: 'account#off', period: 'day#2026-11-05#gpt-4o' }, 'charged', 2);
    const words = `statement off --month 2026-11 --wait 0 --html ${file('off.html')}`;
    const refused = await rig.ops(words);
    expect(refused.code).toBe(1);
    expect(refused.errors).toContain('charged in 2026-11, by day: ¥2.00, but the month has ¥1.00');
    expect(() => readFileSync(file('off.html'))).toThrow('ENOENT');
    expect((await rig.ops(`${words} --marked`)).errors).toContain('warning: does not add up');
    expect(readFileSync(file('off.html'), 'utf8')).toContain('This does not add up. Do not send it.');
  });

  it('compares all months with the balance', async () => {
    await rig.grant('lost', '10');
    await rig.call('lost', idAt('2026-09-05T00:00:00Z'), { charge: yuan('1'), ...tokens });
    const { id, period } = buildMonthKey('2026-09', 'lost');
    await rig.removeDaily(id, period);
    const run = await rig.ops('statement lost --month 2026-11 --wait 0');
    expect(run.errors).toContain('charged, all months: ¥0.00, but the account has ¥1.00');
    expect(run.errors).toContain('audit --rebuild-daily');
  });

  it('of a past month waits for the calls that started in it, because they are charged in it', async () => {
    await rig.grant('late', '10');
    await rig.call('late', idAt('2026-10-05T00:00:00Z'), { charge: yuan('1'), ...tokens });
    const id = idAt('2026-10-31T23:58:00Z', 'p');
    await rig.reserve('late', id, {});
    const words = 'statement late --wait 0 --month';
    const refused = await rig.ops(`${words} 2026-10`);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.errors).toContain('1 call of 2026-10 still in flight');
    expect((await rig.ops(`${words} 2026-09`)).errors).not.toContain('in flight');
  });

  it.each([
    ['2026-13', 'use a month such as 2026-10'],
    ['2999-01', 'is in the future'],
  ])('of %s is rejected', async (month, message) => {
    const run = await statement(`--month ${month}`);
    expect(run).toMatchObject({ code: 2, errors: expect.stringContaining(message) as string });
  });
});

describe('reconcile', () => {
  const buy = async (tail: string, upstream_model: string, bought: string | undefined) =>
    rig.call('acme', idAt('2026-11-06T08:00:00Z', tail), {
      charge: yuan('0.1'),
      ...tokens,
      channel: 'openai',
      upstream_model,
      ...(bought !== undefined && { bought: yuan(bought) }),
    });
  const reconcile = async (text: string, ...words: string[]) => {
    writeFileSync(file('invoice.csv'), text);
    return rig.ops(['reconcile', 'openai', file('invoice.csv'), '--month', '2026-11', ...words]);
  };

  it('shows both sides, the difference in yuan and percent, and lines that only one side has', async () => {
    await buy('1', 'gpt-4o-2024', '7.2');
    await buy('2', 'gpt-4o-2024', '7.2');
    await buy('3', 'only-here', '1');
    await buy('4', 'only-here', undefined);
    const text = [
      'Invoice 4711,,',
      'Line item,Quantity,"Cost (USD)"',
      'GPT-4o-2024,10,"$1.10"',
      'gpt-4o-2024,10,1.00',
      'only-there,1,"1,000.5"',
      'Total,,1002.6',
    ].join('\r\n');
    const run = await reconcile(
      text,
      '--rate',
      '7.2',
      '--json',
      '--model-column',
      'Line item',
      '--amount-column',
      'Cost (USD)',
    );
    expect(run.code).toBe(0);
    expect(JSON.parse(run.output)).toEqual([
      expect.objectContaining({ model: 'only-there', bought: null, invoiced: '7203.6', only: 'invoice' }),
      expect.objectContaining({
        model: 'only-here',
        bought: '1',
        invoiced: null,
        difference: '-1',
        only: 'relay',
      }),
      {
        model: 'gpt-4o-2024',
        calls: 2,
        bought: '14.4',
        invoiced: '15.12',
        difference: '0.72',
        percent: 5,
        only: null,
      },
      expect.objectContaining({ model: 'all', bought: '15.4', invoiced: '7218.72' }),
    ]);
    expect(run.errors).toContain('Skipped totals of the invoice in line 6.');
    expect(run.errors).not.toContain('add up');
    expect(run.errors).toContain(
      'the cost of 1 of 4 calls is unknown: set `cost` on the channel (failed calls usually cost nothing',
    );
  });

  it('reads the files of spreadsheets and vendors, and reports each unreadable line', async () => {
    const text = [
      'Rechnung 4711;;',
      'Modell;Model;Betrag, Amount',
      '"";gpt-4o-2024;"1.234,56 €"',
      ';a"b;0,5-',
      ';odd;about 3',
      ';none;',
      'Support;;10',
      'Summe;;1.300,00',
    ].join('\r\n');
    const run = await reconcile(
      `\uFEFF${text}`,
      '--json',
      '--decimal',
      'comma',
      '--amount-column',
      'betrag, amount',
    );
    const rows = JSON.parse(run.output) as { model: string; invoiced: string }[];
    const invoiced = (model: string) => rows.find((row) => row.model === model)?.invoiced;
    expect([invoiced('gpt-4o-2024'), invoiced('a"b'), invoiced('(no model)'), invoiced('all')]).toEqual([
      '1234.56',
      '-0.5',
      '10',
      '1244.06',
    ]);
    for (const words of [
      'line 5 is skipped: "odd" has the invalid amount "about 3"',
      'line 6 is skipped: "none" has no amount',
      'line 8 has the total 1300, but the lines before it add up to 1244.06',
    ])
      expect(run.errors).toContain(words);
  });

  it.each([
    ['model\tcost\na\t1 234.5\nb\t7', '1234.5'],
    ['model;cost\na;1,234.5\n', '1234.5', '--decimal', 'dot'],
    ['model;cost\na;1.234.567\n', '1234567', '--decimal', 'comma'],
    ['model,cost\na,"1,234"\n', '1234'],
    ['model;cost\na;0,123\nb;1,234\n', '0.123', '--decimal', 'comma'],
    ['model,cost\r"a",.5\r', '0.5'],
    ['model,cost\na,1.2e-7\n', '0.00000012'],
    ['model,cost\na,US$ 3.20\n', '3.2'],
    ['model,cost\na,￥3.20\n合计,3.20', '3.2'],
  ])('reads the amount of %j', async (text, amount, ...words) => {
    const run = await reconcile(text, '--amount-column', 'cost', ...words);
    expect(run.output).toMatch(new RegExp(`^a +0 +- +${amount.replace('.', '\\.')} `, 'm'));
    expect(run.errors).not.toContain('is skipped: " has');
  });

  it('asks about an ambiguous amount, and reads the files of other systems', async () => {
    const text = 'model;cost\na;1,234\n';
    const cost = ['--amount-column', 'cost'];
    const refused = await reconcile(text, ...cost);
    expect(refused).toMatchObject({ code: 2, errors: expect.stringContaining('--decimal') as string });
    expect((await reconcile(text, ...cost, '--decimal', 'comma')).output).toMatch(/^a +0 +- +1\.234 /m);
    const words = ['reconcile', 'openai', file('utf16.csv'), '--month', '2026-11', ...cost];
    writeFileSync(file('utf16.csv'), '\uFEFFmodel\tcost\r\na\t3\r\n', 'utf16le');
    expect((await rig.ops(words)).output).toMatch(/^a +0 +- +3 /m);
    // 模型,金额 in GB 18030.
    const gb = [0xc4, 0xa3, 0xd0, 0xcd, 0x2c, 0xbd, 0xf0, 0xb6, 0xee, 0x0a, 0x61, 0x2c, 0x33, 0x0a];
    writeFileSync(file('utf16.csv'), Buffer.from(gb));
    const named = [...words, '--model-column', '模型', '--amount-column', '金额'];
    expect((await rig.ops(named)).output).toMatch(/^a +0 +- +3 /m);
  });

  it('rejects an unknown channel, and warns about one without calls', async () => {
    writeFileSync(file('invoice.csv'), 'model,amount\na,3\n');
    await rig.put('channels', {
      id: 'idle',
      endpoint: 'https://a.example/v1',
      models: ['m'],
      state: false,
    });
    const of = async (channel: string) =>
      rig.ops(`reconcile ${channel} ${file('invoice.csv')} --month 2026-11 --json`);
    const mistyped = await of('opanai');
    expect(mistyped.code).toBe(2);
    const message = 'no channel opanai, and no calls of one in 2026-11: see `channel list`';
    expect(JSON.parse(mistyped.output)).toEqual({ error: { message, exit_code: 2 } });
    const idle = await of('idle');
    expect(idle).toMatchObject({ code: 0 });
    expect(idle.errors).toContain('channel idle had no calls in 2026-11');
    // No row, because the channel was deleted after its calls.
    expect(await of('openai')).toMatchObject({ code: 0 });
  });
});
