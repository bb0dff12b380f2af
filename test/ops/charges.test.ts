import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LedgerRig } from './ledger-rig.ts';

const prices = {
  sample_spec: { input_cost_per_token: 0, output_cost_per_token: 0, mode: 'one of: chat, embedding, ...' },
  'gpt-4o': {
    input_cost_per_token: 2.5e-6,
    output_cost_per_token: 1e-5,
    mode: 'chat',
    litellm_provider: 'openai',
    max_input_tokens: 128_000,
    supports_vision: true,
  },
  'gpt-4o-2024-08-06': { input_cost_per_token: 2.5e-6, output_cost_per_token: 1e-5, mode: 'chat' },
  'deepseek-chat': { input_cost_per_token: 2.8e-7, output_cost_per_token: 4.2e-7, mode: 'chat' },
  'local-model': { input_cost_per_token: 0, output_cost_per_token: 0, mode: 'chat' },
  'text-embedding-3-small': { input_cost_per_token: 2e-8, output_cost_per_token: 0, mode: 'embedding' },
  'dall-e-3': { mode: 'image_generation', input_cost_per_pixel: 1 },
  'priced-already': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, mode: 'chat' },
  'a name with blanks': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, mode: 'chat' },
};

let rig: LedgerRig;
let folder: string;
const file = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-prices-'));
  writeFileSync(file('prices.json'), JSON.stringify(prices));
  writeFileSync(
    file('prices.csv'),
    'model,provider,input_cost_per_token,output_cost_per_token\r\n"csv-model","a, b",0.000001,2e-6\r\n',
  );
  writeFileSync(file('million.csv'), 'model,input_cost_per_token,output_cost_per_token\nm,2.5,10\n');
  rig = await LedgerRig.start();
  await rig.put('charges', { id: 7, type: 'times-billing', models: ['priced-already'], output: 0.01 });
  await rig.put('channels', {
    id: 'main',
    endpoint: 'https://api.example.com/v1',
    models: ['smart', 'gpt-4o', 'unlisted'],
    mapper: { smart: 'deepseek-chat' },
    state: true,
  });
});
afterAll(async () => {
  await rig.stop();
  rmSync(folder, { recursive: true });
});

const charge = async (words: string) => rig.ops(`charge ${words}`);
const rowOf = async (id: number) => rig.row('charges', { id });

describe('charge import', () => {
  it('shows the rules of a dry run and writes nothing', async () => {
    const run = await charge(
      `import ${file('prices.json')} --rate 7.2 --markup 25% --dry-run --free local-model`,
    );
    expect(run.code).toBe(0);
    expect(run.output).toMatch(/8 +non-billing +- +- +local-model/);
    expect(run.output).toMatch(/9 +token-billing +0.18 +0 +text-embedding-3-small/);
    expect(run.output).toMatch(/10 +token-billing +2.52 +3.78 +deepseek-chat/);
    expect(run.output).toMatch(/11 +token-billing +22.5 +90 +gpt-4o gpt-4o-2024-08-06/);
    expect(run.output).toContain('Dry run: nothing was written.');
    expect(run.output).toContain('$1 = ¥7.2, plus 25 % markup. Prices are in yuan per million tokens');
    expect(run.output).toMatch(
      /Import 5 models in 4 rules\nSkip 1 model that .*: priced-already\nSkip 3 entries .*: sample_spec, dall-e-3, a name/,
    );
    expect(await rowOf(8)).toBeUndefined();
  });

  it('makes only named models free, and none because of the list alone', async () => {
    const run = await charge(`import ${file('prices.json')} --rate 7.2 --dry-run`);
    expect(run.output).not.toContain('non-billing');
    expect(run.output).toContain('Skip 1 model that is free in this list');
    expect(run.output).toContain('local-model');
  });

  it('makes nothing free by a rate that rounds prices to zero', async () => {
    const run = await charge(`import ${file('prices.json')} --rate 0.0000000001 --yes`);
    expect(run.code).toBe(2);
    expect(run.errors).toContain('is too small to charge in yuan: check --rate and the unit of the list');
    expect(await rowOf(8)).toBeUndefined();
  });

  it('writes the served models under their public names, and nothing when it is repeated', async () => {
    const words = `import ${file('prices.json')} --rate 7.2 --only-served --yes`;
    const run = await charge(words);
    expect(run).toMatchObject({ code: 0 });
    expect(run.errors).toContain('Not in the price list: unlisted');
    expect(await rowOf(8)).toMatchObject({
      id: 8,
      type: 'token-billing',
      models: ['smart'],
      input: 0.002016,
      output: 0.003024,
    });
    expect(await rowOf(9)).toMatchObject({ models: ['gpt-4o'], input: 0.018, output: 0.072 });
    expect(await rowOf(10)).toBeUndefined();
    expect((await charge(words)).output).toContain('Nothing to import');
  });

  it('reads CSV', async () => {
    const run = await charge(`import ${file('prices.csv')} --rate 7 --dry-run`);
    expect(run.output).toMatch(/token-billing +7 +14 +csv-model/);
  });

  it("reads a vendor's own list in yuan per million, and remembers its columns", async () => {
    const list = (rows: string) => writeFileSync(file('vendor.csv'), `模型名称;输入;输出;缓存命中\n${rows}`);
    list('v-large;2;8;0.5\n');
    const words = `import ${file('vendor.csv')}`;
    expect((await charge(words)).errors).toContain('unknown columns: 模型名称, 输入, 输出, 缓存命中');
    const columns = 'model=模型名称,input=输入,output=输出,cached_input=缓存命中';
    const dollars = await charge(`${words} --columns ${columns} --currency usd --dry-run`);
    expect(dollars).toMatchObject({ code: 2, errors: expect.stringContaining('--rate') as string });
    list('v-large;2.00 元/百万tokens;¥8;0.5\nv-free;免费;免费;-\n;;;\n');
    const made = await charge(`${words} --columns ${columns} --yes`);
    expect(made.output).toMatch(/token-billing +2 \(cached 0.5\) +8 +v-large/);
    expect(made.output).toMatch(/v-free[^]*Created 1 rule;/);
    expect(await charge(`${words} --rate 7`)).toMatchObject({ code: 2 });
    expect(await rig.row('settings', { name: 'price_lists' })).toMatchObject({
      value: { vendor: { per: 1_000_000, currency: 'cny' } },
    });
    await charge('off 10 --wait 0 --yes');
    list('v-next;4;16;1\n');
    const again = await charge(`${words} --dry-run`);
    expect(again.output).toMatch(/token-billing +4 \(cached 1\) +16 +v-next/);
    for (const [rows, said] of [
      ['v;1,5;2;\n', 'line 2, column 输入: "1,5" is not a price; write 1.5'],
      ['v;1;2;\nv;3;4;\n', 'line 3: v is in the list twice'],
      ['v;1;2;\nw;3\n', 'line 3: 2 cells, but the header has 4'],
      [`v;1${' '.repeat(200_000)}x;2;\n`, 'line 2, column 输入: "1'],
      ['v;0.002 元/千tokens;2;\n', 'is not cny per 1000000'],
      ['v;1;2 / 1K tokens;\n', 'is not cny per 1000000'],
      ['v;1;$2;\n', 'is not cny per 1000000'],
    ] as const) {
      list(rows);
      expect(await charge(words)).toMatchObject({ code: 2, errors: expect.stringContaining(said) as string });
    }
    const wrong = await charge(`${words} --columns model=型号,input=输入,outptu=输出`);
    expect(wrong.errors).toContain('--columns: unknown name outptu');
    writeFileSync(file('twice.csv'), 'm,in,in,out\nv,1,2,3');
    const twice = await charge(
      `import ${file('twice.csv')} --rate 1 --columns model=m,input=in,output=out --dry-run`,
    );
    expect(twice.errors).toContain('two columns are named in');
    writeFileSync(file('plain.csv'), 'm,in,out\nv,1,2');
    const plain = `import ${file('plain.csv')} --columns model=m,input=in,output=out`;
    expect((await charge(plain)).errors).toContain('--currency cny');
    expect((await charge(`${plain} --currency cny --dry-run`)).output).toMatch(/token-billing +1 +2 +v/);
  });

  it('skips a model without an output price, unless the operator marks it as free', async () => {
    const rows = 'half,0.000001,\nvec,,2e-6\nfull,1e-6,2e-6\nzero,1e-6,0\n';
    writeFileSync(file('half.csv'), `model,input_cost_per_token,output_cost_per_token\n${rows}`);
    const words = `import ${file('half.csv')} --rate 7 --dry-run`;
    const run = await charge(words);
    expect(run.output).toMatch(/token-billing +7 +14 +full/);
    expect(run.output).toMatch(/token-billing +7 +0 +zero/);
    expect(run.output).not.toContain('half');
    expect(run.errors).toMatch(/2 models .*: half, vec/);
    const freed = await charge(`${words} --free half`);
    expect(freed.output).toMatch(/token-billing +7 +0 +half zero/);
    expect(freed.errors).toMatch(/1 model .*: vec/);
  });

  it('warns about a list that is not per token', async () => {
    const run = await charge(`import ${file('million.csv')} --rate 7 --dry-run`);
    expect(run.errors).toMatch(/warning: m: above \$1 per/);
  });

  it.each([
    ['import /nowhere.json --rate 7', 'cannot read the file'],
    ['import prices.json', '--rate: use yuan per US dollar'],
    ['import prices.json --rate 0', '--rate: use yuan per dollar, for example 7.2'],
    ['import prices.json --rate -7', 'Expected a number'],
  ])('refuses %j', async (words, message) => {
    const run = await charge(words.replace('prices.json', file('prices.json')));
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
  });

  it('adds the list’s notes about models to the setting of their pages, and keeps existing ones', async () => {
    const facts = { 'gpt-4o': { vendor: 'openai', context: 128_000, takes: ['text', 'image'] } };
    const read = async () => (await rig.row('settings', { name: 'model_facts' }))?.['value'];
    const imports = () => charge(`import ${file('prices.json')} --rate 7.2 --only-served --yes`);
    await rig.put('settings', { name: 'model_facts', value: { smart: { about: 'ours' } } });
    expect((await imports()).code).toBe(0);
    expect(await read()).toEqual({ smart: { about: 'ours' }, ...facts });
    await rig.put('settings', { name: 'model_facts', value: { 'gpt-4o': { about: 'ours' } } });
    await imports();
    expect(await read()).toEqual({ 'gpt-4o': { about: 'ours' } });
  });
});

describe('charge list', () => {
  it('lists rules by id, and reports shadowed and unused ones', async () => {
    await rig.put(
      'charges',
      { id: 1, type: 'token-billing', models: ['gpt-4o'], input: 1, output: 2 },
      { id: 50, type: 'per-token', models: ['x'] },
      { id: 60, type: 'token-billing', models: ['c'], input: 1, cached_input: 0.1, cache_write_1h: 2 },
      {
        id: 61,
        type: 'token-billing',
        models: ['d'],
        input: 0.001,
        output: 0.002,
        service_tiers: { flex: 0.5 },
      },
    );
    const run = await charge('list');
    expect(run.code).toBe(0);
    expect(run.output).toMatch(/61 +token-billing +1, flex: x 0.5 +2 +d/);
    expect((await charge('explain d --input 1')).output).toContain(
      '2 per million output tokens, x 0.5 in flex',
    );
    expect(run.output).toMatch(/60 +token-billing +1000 \(cached 100, write for 1 h 2000\) +0 +c/);
    expect(run.output).toMatch(
      /1 +token-billing +1000 +2000 +gpt-4o[^]*7 +times-billing +- +0.01 per call +priced-already/,
    );
    expect(run.errors).toContain('9: a rule with a lower id overrides gpt-4o');
    expect(run.errors).toContain('50 is invalid: type: found "per-token"');
    const json = JSON.parse((await charge('list --json')).output) as { id: number }[];
    expect(json.map((row) => row.id)).toEqual([1, 7, 8, 9, 60, 61]);
    expect(json[5]).toMatchObject({ service_tiers: { flex: 0.5 } });
  });
});

describe('charge explain', () => {
  const rule = {
    id: 70,
    type: 'token-billing',
    models: ['long'],
    input: 0.02,
    output: 0.1,
    cached_input: 0.002,
    cache_write: 0.025,
    tiers: [{ above: 200_000, input: 0.04, output: 0.15 }],
  };
  const explain = async (words: string) => charge(`explain long ${words}`);

  it('prints the computation line by line, with the rule and the ledger entry', async () => {
    await rig.put('charges', rule, { ...rule, id: 71, from: '2099-01-01', input: 1, tiers: undefined });
    const words = '--input 5300 --cached 4000 --cache-write 300 --output 100';
    const run = await explain(`${words} --at 2026-11-22`);
    expect(run).toMatchObject({ code: 0 });
    expect(run.output.split('\n').slice(1)).toEqual([
      'long at 2026-11-22T00:00:00Z',
      expect.stringMatching(/^ {2}price +rule 70: ¥20 per million input tokens, ¥2 cached, .*; above 200000/),
      '  input        1000 x 20 / 1,000,000 = 0.02',
      '  cached       4000 x 2 / 1,000,000 = 0.008',
      '  cache write  300 x 25 / 1,000,000 = 0.0075',
      '  output       100 x 100 / 1,000,000 = 0.01',
      '  total        ¥0.0455 (rounded half up to 9 decimals)',
      '  ledger       70:tokens:0.02:0.1:0.002:0.025:0.02',
      '',
    ]);
  });

  it('shows the tier, and the rule in force at another time', async () => {
    const run = await explain('--input 200001 --cached 200000 --at 2026-11-22 --json');
    expect(JSON.parse(run.output)).toMatchObject({
      rule: { id: 70 },
      above: 200_000,
      total: '8.00004',
      price: '70:tokens:0.04:0.15:above=200000',
    });
    const later = await explain('--input 1000 --at 2099-01-01');
    expect(later.output).toContain('long at 2099-01-01T00:00:00Z, price since 2099-01-01T00:00:00Z');
    expect(later.output).toMatch(/total +¥1/);
  });

  it('shows whose price applies, and why the rule differs for a customer', async () => {
    await rig.put('settings', { name: 'price_groups', value: { big: [{ models: ['lo*'], factor: 0.75 }] } });
    await rig.put('accounts', { account: 'grouped', price_group: 'big' });
    const own = [{ models: ['long'], input: 0.01, output: 0.02 }];
    await rig.put('accounts', { account: 'special', price_group: 'big', prices: own });
    const words = '--input 1000 --output 1000 --at 2026-11-22 --account';
    const grouped = await explain(`${words} grouped`);
    expect(grouped.output).toMatch(/rule +rule 70: ¥20 per million/);
    expect(grouped.output).toMatch(/price group big +x 0.75\n +price +rule 70: ¥20 .*, x 0.75/);
    expect(grouped.output).toMatch(/total +¥0.09 /);
    const special = await explain(`${words} special`);
    expect(special.output).toMatch(/customer +prices of its own: rule 70: ¥10 per million/);
    expect(special.output).toMatch(/ledger +70:tokens:0.01:0.02\n/);
    const json = JSON.parse((await explain(`${words} grouped --json`)).output) as object;
    expect(json).toMatchObject({ terms: [{ source: 'price group big', changes: 'x 0.75' }], total: '0.09' });
    expect((await explain(`${words} nobody`)).errors).toContain('no customer nobody');
  });

  it('sets a group price from a date, listed above the price that it replaces, and deletes it again', async () => {
    const base = { models: ['*'], factor: 0.75 };
    const old = { models: ['long'], factor: 1, from: '2020-01-01' };
    await rig.put('settings', { name: 'price_groups', value: { big: [old, base], small: [base] } });
    const group = async (words: string) => {
      const run = await charge(`group ${words} --yes --wait 0`);
      return { ...run, groups: (await rig.row('settings', { name: 'price_groups' }))?.['value'] as object };
    };
    const [monday, tuesday] = ['2098-12-01T00:00:00+08:00', '2098-12-02'];
    const first = await group(`big models=long factor=1.2 from=${monday}`);
    const dated = { models: ['long'], factor: 1.2, from: monday };
    expect(first).toMatchObject({ code: 0, groups: { big: [dated, old, base], small: [base] } });
    expect(first.output).toContain(`Set the price of long for group big, from ${monday}`);
    const at = (time: string) => explain(`--input 1000 --at ${time} --account grouped`);
    expect((await at('2098-11-30T15:59:59Z')).output).toMatch(/price group big +x 1\n/);
    expect((await at('2098-11-30T16:00:00Z')).output).toMatch(/price group big +x 1\.2\n/);
    const later = { ...dated, factor: 1.3, from: tuesday, until: '2098-12-03' };
    expect(await group(`big models=long factor=1.3 from=${tuesday} until=2098-12-03`)).toMatchObject({
      groups: { big: [later, dated, old, base] },
    });
    // A price with the same start replaces the old one, and so does one of the same models that starts now.
    expect(await group(`big models=long factor=1.4 from=${monday}`)).toMatchObject({
      groups: { big: [later, { ...dated, factor: 1.4 }, old, base] },
    });
    const now = { models: ['long'], factor: 1.1 };
    expect(await group('big models=long factor=1.1')).toMatchObject({
      groups: { big: [later, { ...dated, factor: 1.4 }, now, base] },
    });
    expect(await group(`big models=long from=${monday} --off`)).toMatchObject({
      groups: { big: [later, now, base] },
    });
    expect(await group(`big models=long from=${monday} --off`)).toMatchObject({ code: 2 });
    expect((await group('big models=long factor=1.1')).errors).not.toContain('warning');
    expect(await group('new models=a,b factor=0.5')).toMatchObject({
      errors: expect.stringMatching(
        /value\.new\[0\]\.models: no rule or channel has a, b[^]*no customer has new/,
      ) as string,
      output: expect.stringContaining('for the new group new, now') as string,
      groups: { new: [{ models: ['a', 'b'], factor: 0.5 }] },
    });
    await rig.put('settings', { name: 'price_groups', value: { big: [{ models: ['lo*'], factor: 0.75 }] } });
  });

  it.each([
    ['models=long factor=2 from=2020-01-01', 'from: 2020-01-01 is in the past'],
    ['models=long factor=2 from=soon', 'from: invalid time "soon"'],
    ['models=long factor=2 from=2099-01-02 until=2099-01-01', 'value.odd[0].until: found "2099-01-01"'],
    ['models=long', 'value.odd[0]: '],
    ['factor=2', 'value.odd[0].models: missing'],
  ])('rejects a group price: %s', async (words, problem) => {
    const run = await charge(`group odd ${words} --yes`);
    expect([run.code, run.errors]).toEqual([2, expect.stringContaining(problem)]);
  });

  it('lists the customers who lose the prices of a deleted or emptied group, and their new prices', async () => {
    await rig.put('channels', {
      id: 'long',
      endpoint: 'https://api.example.com/v1',
      models: ['long'],
      state: true,
    });
    const group = (value: object) => rig.ops(`setting set price_groups ${JSON.stringify(value)} --dry-run`);
    for (let at = 0; at < 6; at += 1) await rig.put('accounts', { account: `many${at}`, price_group: 'big' });
    const said =
      /price_groups: big has no prices any more, but 8 customers will still name it: .*and 3 more\. Without own prices they pay the standard prices \(long: ¥20 input, ¥100 output per million tokens.*, instead of ¥15 input, ¥75 output/;
    for (const run of [
      await rig.ops('setting off price_groups --dry-run'),
      await group({ other: [{ models: ['*'], factor: 0.5 }] }),
    ])
      expect(run.output + run.errors).toMatch(said);
    const kept = await group({ big: [{ models: ['*'], factor: 0.5 }] });
    expect(kept.output + kept.errors).not.toContain('has no prices any more');
  });

  it('reports no charge without a rule, and rejects parts that exceed the whole', async () => {
    expect((await charge('explain nobody --input 9')).output).toMatch(/no rule: free/);
    const run = await explain('--input 10 --cached 9 --cache-write-1h 2');
    expect(run).toMatchObject({ code: 2 });
    expect(run.errors).toContain('--input: must include the cached and cache-write tokens');
    expect((await explain('--input 1.5')).errors).toContain('Expected a number of tokens');
  });
});

describe('charge list with dates', () => {
  it('shows when rules take effect', async () => {
    await rig.put('charges', { id: 80, type: 'times-billing', models: ['d'], output: 1, from: '2099-01-01' });
    const run = await charge('list');
    expect(run.output).toMatch(/80 +times-billing +2099-01-01T00:00:00Z +- +1 per call +d/);
    expect(JSON.parse((await charge('list --json')).output)).toContainEqual(
      expect.objectContaining({ id: 80, from: '2099-01-01T00:00:00Z' }),
    );
    await rig.put('charges', { id: 80, type: 'times-billing', models: ['d'], output: 1, from: '2020-01-01' });
    await rig.put('charges', { id: 79, type: 'times-billing', models: ['d'], output: 2 });
    expect((await charge('list')).errors).toContain('Rule 79: rule 80, with a later date, overrides d');
  });
});
