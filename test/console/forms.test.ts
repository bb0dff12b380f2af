import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeIdOf, hashCode } from '../../shared/config/rows/code-row.ts';
import { enter, seenIn, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { put } from './large-relay.ts';

let rig: ConsoleRig;
let visitor: Visitor;
beforeAll(async () => {
  rig = await startConsoleRig();
  visitor = await enter(await rig.serve());
});
afterAll(async () => rig.stop());

/** Submits a form, confirms it, and returns the page with the result. */
async function done(path: string, fields: Record<string, string> = {}): Promise<string> {
  const reply = await visitor.send(path, fields);
  expect([path, reply.status, reply.status === 303 ? '' : await reply.text()]).toEqual([path, 303, '']);
  return confirmShown(await visitor.follow(reply));
}

async function confirmShown(confirm: string): Promise<string> {
  const [, at = ''] = /<form method="post" action="(confirm\/\w+)"/.exec(confirm) ?? [];
  return visitor.follow(await visitor.post(at, { form_token: tokenIn(confirm) }));
}

/** The fields of a form as a browser would send them without input. */
function fieldsIn(page: string): Record<string, string> {
  const form = /<form method="post"[^]*<\/form>/.exec(page)?.[0] ?? '';
  const text = (escaped: string) =>
    escaped.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');
  const areas = [...form.matchAll(/<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)<\/textarea>/g)];
  const inputs = [...form.matchAll(/<input\s[^>]*>/g)].flatMap(([input]) => {
    const [, name] = /name="([^"]+)"/.exec(input) ?? [];
    if (name === undefined || /type="checkbox"(?![^>]*checked)/.test(input)) return [];
    return [['', name, /value="([^"]*)"/.exec(input)?.[1] ?? '']];
  });
  const choices = [...form.matchAll(/<select[^>]*name="([^"]+)"[^>]*>([^]*?)<\/select>/g)].map(
    ([, name = '', options = '']) => {
      const values = [...options.matchAll(/<option value="([^"]*)"\s*(selected)?/g)];
      return ['', name, (values.find(([, , selected]) => selected) ?? values[0])?.[1] ?? ''];
    },
  );
  return Object.fromEntries(
    [...areas, ...inputs, ...choices].map(([, name = '', value = '']) => [name, text(value)]),
  );
}

/** Presses a button that changes entries, and returns the fields of the resulting form. */
async function pressed(path: string, fields: Record<string, string>, rows: string) {
  const reply = await visitor.send(path, { ...fields, rows });
  expect([path, rows, reply.status]).toEqual([path, rows, 200]);
  return fieldsIn(await reply.text());
}

const wrongIn = (page: string): Set<string | undefined> =>
  new Set([...page.matchAll(/id="([^"]+)-error"/g)].map(([, name]) => name));

const windowOf = (at: number, fields: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ zone: 'UTC', factor: '2', ...fields }).map(([name, value]) => [
      `windows.${at}.${name}`,
      value,
    ]),
  );

/** The table of changes: the row, the field, its value before and after. */
const changesIn = (page: string): string[][] =>
  [...(/<caption>\s*Changes\b[^]*?<\/table>/.exec(page)?.[0] ?? '').matchAll(/<tr[^>]*>([^]*?)<\/tr>/g)].map(
    ([, cells = '']) =>
      [...cells.matchAll(/<t[hd]\b[^>]*>([^]*?)<\/t[hd]>/g)].map(
        ([, cell = '']) => /<span title="([^"]*)"/.exec(cell)?.[1] ?? cell.replaceAll(/<[^>]*>/g, '').trim(),
      ),
  );

const row = async (table: 'keys' | 'settings' | 'plans' | 'channels', key: string) =>
  (await rig.ports.tables.scan(table)).find((each) =>
    [each['hash'], each['name'], String(each['level']), each['id']].includes(key),
  );

/** Otherwise each page of later tests would compile hundreds of entries. */
const removePlan = (level: number) =>
  rig.client.send(new DeleteItemCommand({ TableName: 'relay-plans', Key: { level: { N: String(level) } } }));

describe('a key', () => {
  const hash = 'c'.repeat(64);
  const base = { hash, account: 'acme', hint: 'sk-AbCd...wXyZ', enabled: true };

  it('can be given a name, models, limits, a budget, an expiry and the right to store, and loses them again', async () => {
    await put(rig.client, 'accounts', [{ account: 'acme' }]);
    await put(rig.client, 'keys', [base]);
    const fields = {
      account: 'acme',
      name: 'the batch job',
      models: 'a\nb',
      rpm: '60',
      'budget.amount': '12.5',
      'budget.period': 'day',
      expires_at: '2099-01-01',
      store: 'no',
    };
    expect(await done(`keys/${hash}/edit`, fields)).toContain('budget ¥12.50 a day');
    const { budget, ...edited } = (await row('keys', hash)) ?? {};
    expect(budget).toEqual({ amount: 12.5, period: 'day' });
    expect(edited).toMatchObject({ name: 'the batch job', rpm: 60, expires_at: '2099-01-01', store: false });
    const nothing = Object.fromEntries(Object.keys(fields).map((name) => [name, '']));
    await done(`keys/${hash}/edit`, { ...nothing, account: 'acme' });
    const kept = Object.keys((await row('keys', hash)) ?? {}).filter((name) => !name.startsWith('_'));
    expect(kept.toSorted()).toEqual(['account', 'enabled', 'hash', 'hint']);
  });

  it('without any allowed model is not opened to every model by an unchanged form', async () => {
    await put(rig.client, 'keys', [{ ...base, models: [] }]);
    const path = `keys/${hash}/edit`;
    await done(path, { ...fieldsIn(await visitor.page(path)), name: 'x' });
    expect((await row('keys', hash))?.['models']).toEqual([]);
  });

  it('is rejected if somebody else changed it, and an invalid field is named', async () => {
    await put(rig.client, 'keys', [base]);
    const path = `keys/${hash}/edit`;
    const seen = seenIn(await visitor.page(path));
    const wrong = await visitor.send(path, { 'budget.amount': 'much', 'budget.period': 'day' });
    expect([wrong.status, await wrong.text()]).toEqual([
      422,
      expect.stringContaining('id="budget.amount-error"'),
    ]);
    await put(rig.client, 'keys', [{ ...base, enabled: false }]);
    expect((await visitor.send(path, { rpm: '1', seen })).status).toBe(422);
    expect(await done(`keys/${hash}/enable`)).toContain('(live within 30 s): every model');
    expect((await row('keys', hash))?.['enabled']).toBe(true);
  });
});

describe('a customer', () => {
  const row = {
    account: 'shown',
    contact: { name: 'Ann', email: 'ann@example.com' },
    prices: [
      { models: ['m'], input: 0.001, output: 0.002, tiers: [{ above: 1000, input: 0.002, output: 0.004 }] },
    ],
  };
  const path = 'customers/shown/edit';

  it('shows each change in the form’s words and units, before and after saving', async () => {
    await put(rig.client, 'accounts', [row]);
    const typed = {
      'contact.name': 'Bob',
      alert_below: '5',
      enabled: 'no',
      'plan.level': '2',
      'plan.until': '2099-01-01',
      'prices.0.input': '3',
    };
    const reply = await visitor.send(path, { ...fieldsIn(await visitor.page(path)), ...typed });
    const confirm = await visitor.follow(reply);
    const changes = [
      ['enabled', 'allowed', 'refused, for all keys'],
      ['alert_below', '–', '¥5.00'],
      [
        'prices',
        'Models: m, Input: ¥1.00 per 1M tokens, Output: ¥2.00 per 1M tokens, Tiers: above 1000, input ¥2.00 per 1M tokens, output ¥4.00 per 1M tokens',
        'Models: m, Input: ¥3.00 per 1M tokens, Output: ¥2.00 per 1M tokens, Tiers: above 1000, input ¥2.00 per 1M tokens, output ¥4.00 per 1M tokens',
      ],
      ['contact.name', 'Ann', 'Bob'],
      ['plan.level', 'no plan', 'level 2'],
      ['plan.until', '–', '2099-01-01 00:00 UTC'],
    ];
    for (const page of [confirm, await confirmShown(confirm)])
      expect(changesIn(page)).toEqual(
        expect.arrayContaining(changes.map((change) => ['Customer shown'].concat(change))),
      );
    expect(confirm).toContain('<time datetime="2099-01-01T00:00:00Z">');
    expect(confirm).not.toContain('{');
  });

  it('reports all invalid fields at once, including those of later checks', async () => {
    await put(rig.client, 'accounts', [row]);
    const typed = {
      rpm: '-1',
      'contact.email': 'none',
      'contact.webhook': 'ftp://x',
      'plan.level': '1',
      'plan.until': 'whenever',
      'prices.0.from': 'whenever',
      'prices.0.input': 'x',
    };
    const reply = await visitor.send(path, { ...fieldsIn(await visitor.page(path)), ...typed });
    const page = await reply.text();
    const { 'plan.level': _, ...all } = typed;
    expect([reply.status, wrongIn(page)]).toEqual([422, new Set(Object.keys(all))]);
    expect(fieldsIn(page)).toMatchObject(typed);
  });

  it('masks a pasted key in a long note, even where the note is cut', async () => {
    await put(rig.client, 'accounts', [row]);
    const note = `${'x'.repeat(384)} sk-${'a'.repeat(40)}`;
    const reply = await visitor.send(path, { ...fieldsIn(await visitor.page(path)), note });
    const confirm = await visitor.follow(reply);
    expect(confirm).toContain('x'.repeat(384));
    expect(confirm).not.toContain('sk-aaaaa');
  });

  it.each([
    ['a later time', path, 'prices.0.from', { 'prices.0.from': 'x', 'prices.0.until': '1h' }],
    [
      'the hours of another window',
      'charges-new',
      'windows.0.from',
      {
        id: '77',
        models: 'm',
        input: '1',
        output: '1',
        ...windowOf(0, { name: 'a', from: '22:xx', to: '23:00' }),
        ...windowOf(1, { name: 'b', from: '10:00', to: '12:00' }),
      },
    ],
  ])('marks no valid field because of an example: %s', async (_, form, wrong, typed) => {
    await put(rig.client, 'accounts', [{ ...row, prices: [{ models: ['m'], factor: 2 }] }]);
    const reply = await visitor.send(form, { ...fieldsIn(await visitor.page(form)), ...typed });
    expect([reply.status, wrongIn(await reply.text())]).toEqual([422, new Set([wrong])]);
  });
});

describe('settings', () => {
  it('are entered field by field, and return to their default if left empty', async () => {
    await done('settings/limits', { 'value.account_rpm': '600', 'value.count_free': 'no' });
    expect((await row('settings', 'limits'))?.['value']).toEqual({ account_rpm: 600, count_free: false });
    const page = await visitor.page('settings/limits');
    expect(fieldsIn(page)).toMatchObject({ 'value.account_rpm': '600', 'value.count_free': 'no' });
    await done('settings/limits', { ...fieldsIn(page), 'value.account_rpm': '', 'value.count_free': '' });
    expect(await row('settings', 'limits')).toBeUndefined();
    const wrong = await visitor.send('settings/limits', { 'value.request_seconds': '5000' });
    expect(await wrong.text()).toContain('id="value.request_seconds-error"');
  });

  it('never show a key that was entered in place of its reference', async () => {
    const secret = 'vendor-key-0123456789';
    const reply = await visitor.send('settings/alerts', {
      'value.webhook': 'https://a.example/x',
      'value.secret': secret,
    });
    expect(reply.status).toBe(422);
    expect(await reply.text()).not.toContain(secret);
  });

  it('publish a notice, and remove one of two', async () => {
    await done('settings/notices', {
      'value.0.text': 'Maintenance on Sunday',
      'value.0.until': '2099-01-01',
    });
    const page = fieldsIn(await visitor.page('settings/notices'));
    await done('settings/notices', { ...page, 'value.1.text': 'A new model', 'value.1.models': 'glm-5' });
    const both = fieldsIn(await visitor.page('settings/notices'));
    expect(both['value.1.models']).toBe('glm-5');
    const unfinished = await visitor.send('settings/notices', { ...both, 'value.0.text': '' });
    expect(await unfinished.text()).toContain('id="value.0.text-error"');
    await done('settings/notices', await pressed('settings/notices', both, 'remove value.0'));
    expect((await row('settings', 'notices'))?.['value']).toEqual([
      { text: 'A new model', models: ['glm-5'] },
    ]);
  });

  it.each([
    ['store', true],
    ['store', { all_keys: true, days: 7 }],
    ['relay_closed', false],
    ['aliases', { smart: ['a', 'b'], fast: { models: ['c'], on_context_length: true } }],
    ['content_urls', ['https:', 'data:image/']],
    ['time_zone', 'Asia/Shanghai'],
    ['unpriced_models', 'refuse'],
    ['search', { type: 'searxng', endpoint: 'http://127.0.0.1:1', results: 3 }],
    ['end_users', { hash_accounts: false }],
    ['notices', [{ text: 'a', from: '2026-01-01', models: ['m'] }]],
    [
      'price_lists',
      { 'v.1': { columns: { model: 'm', input: 'i', output: 'o' }, per: 1000, currency: 'usd' } },
    ],
    ['top_up_bonus', [{ pay: 100, get: 110 }]],
    [
      'model_facts',
      { 'gpt-4.1': { vendor: 'openai', context: 128_000, takes: ['text', 'image'], about: 'x' } },
    ],
    [
      'payments',
      {
        stripe: {
          live: false,
          webhook_secret: ['env:OLD', 'env:NEW'],
          link_secret: 'env:LINK',
          rates: { usd: 7.1, eur: '7.8' },
          checkout: { secret_key: 'env:CHECKOUT', currency: 'usd', plans: [1, 2] },
        },
      },
    ],
  ])('with the name %s keep their value %j in an unchanged form', async (name, value) => {
    await put(rig.client, 'settings', [{ name, value }]);
    const path = `settings/${name}`;
    const confirm = await visitor.follow(await visitor.send(path, fieldsIn(await visitor.page(path))));
    if (typeof value === 'object' || name !== 'store') expect(confirm).toContain('Nothing to change');
    else expect(confirm).toContain('class="buttons"');
  });
});

describe('rows of fields', () => {
  const path = 'settings/plans/1';
  const [a, b] = ['a', 'b'].map((id) => ({ id, icon: `${id}.svg`, value: 1, models: [id] }));

  it('are added, moved and removed by buttons without script, and keep attributes without a field', async () => {
    await put(rig.client, 'plans', [{ level: 1, items: [a, b] }]);
    const added = await pressed(path, fieldsIn(await visitor.page(path)), 'add items');
    const named = { ...added, 'items.2.id': 'c', 'items.2.value': '3', 'items.2.models': 'c' };
    const moved = await pressed(path, named, 'up items.1');
    const rest = await pressed(path, moved, 'remove items.0');
    expect(rest).not.toHaveProperty('items.0.id');
    await done(path, await pressed(path, rest, 'up items.2'));
    expect((await row('plans', '1'))?.['items']).toEqual([{ id: 'c', value: 3, models: ['c'] }, b]);
  });

  it('show an error at its entry, even after entries above it were removed', async () => {
    await put(rig.client, 'plans', [{ level: 1, items: [a, b] }]);
    const fields = await pressed(path, fieldsIn(await visitor.page(path)), 'remove items.0');
    const wrong = await visitor.send(path, { ...fields, 'items.1.value': 'many' });
    expect(await wrong.text()).toContain('id="items.1.value-error"');
    await put(rig.client, 'accounts', [{ account: 'rows' }]);
    const twice = { 'budgets.3.by': 'tag:a', 'budgets.3.amount': '1', 'budgets.3.period': 'day' };
    const budgets = { ...twice, 'budgets.5.by': 'tag:b', 'budgets.5.amount': 'x', 'budgets.5.period': 'day' };
    const refused = await visitor.send('customers/rows/edit', budgets);
    expect(await refused.text()).toContain('id="budgets.5.amount-error"');
    await done('customers/rows/edit', { ...budgets, 'budgets.5.amount': '2' });
    const alias = {
      'value.0.name': 'smart',
      'value.0.models': 'a',
      'value.1.name': 'smart',
      'value.1.models': 'b',
    };
    const same = await visitor.send('settings/aliases', alias);
    expect(await same.text()).toMatch(/id="value.0.name-error">smart is listed twice/);
    const inner = await visitor.send('settings/aliases', {
      ...alias,
      'value.1.name': 'fast-1',
      'value.1.models': 'smart',
    });
    expect(await inner.text()).toContain('id="value.1.name-error"');
  });

  it('keep an entry that somebody else added in the meantime', async () => {
    await put(rig.client, 'plans', [{ level: 1, items: [a] }]);
    const fields = fieldsIn(await visitor.page(path));
    await put(rig.client, 'plans', [{ level: 1, items: [a, b] }]);
    const reply = await visitor.send(path, { ...fields, 'items.0.value': '5' });
    const again = fieldsIn(await reply.text());
    expect([reply.status, again['items.0.value'], again['items.1.id']]).toEqual([422, '5', 'b']);
    await done(path, again);
    expect((await row('plans', '1'))?.['items']).toEqual([{ ...a, value: 5 }, b]);
  });

  it('become one JSON field if they are too many for a page', async () => {
    const items = Array.from({ length: 400 }, (_, at) => ({ id: `e${at}`, value: 5, models: ['a'] }));
    await put(rig.client, 'plans', [{ level: 1, items }]);
    const fields = fieldsIn(await visitor.page(path));
    await done(path, { ...fields, items: JSON.stringify(items.slice(1)) });
    expect((await row('plans', '1'))?.['items']).toEqual(items.slice(1));
    await removePlan(1);
  });
});

describe('attributes of maps that the store returns in another order at each step', () => {
  const reverse = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reverse);
    if (typeof value !== 'object' || value === null || value instanceof Set) return value;
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, each]) => [name, reverse(each)]),
    );
  };
  let isReversed = false;
  const order = async <Value>(found: Promise<Value>): Promise<Value> =>
    isReversed ? (reverse(await found) as Value) : found;
  const serveReordered = async (): Promise<Visitor> => {
    const { tables, config } = rig.ports;
    return enter(
      await rig.serve({
        ports: {
          ...rig.ports,
          tables: {
            ...tables,
            get: (table, key) => order(tables.get(table, key)),
            scan: (table) => order(tables.scan(table)),
          },
          config: { ...config, tables: () => order(config.tables()) },
        },
      }),
    );
  };

  const rates = { input: 0.001, output: 0.002 };
  const window = {
    name: 'peak',
    from: '09:00',
    to: '10:00',
    zone: 'UTC',
    tiers: [{ above: 9, ...rates }],
    ...rates,
  };
  const base = { endpoint: 'https://a.example/v1', models: ['m', 'n'], state: true };
  it.each([
    [
      'accounts',
      {
        account: 'order',
        contact: { webhook: 'https://a.example/hook', email: 'a@a.example' },
        plan: { level: 1, since: '2026-11-01', until: '2099-01-01' },
        prices: [
          { models: ['m'], tiers: [{ above: 9, ...rates }], service_tiers: { flex: 0.5, fast: 2 }, ...rates },
        ],
        budgets: [{ by: 'tag:a', name: 'x', amount: 1, period: 'day' }],
      },
      ['customers/order/edit', { note: 'new', 'budgets.0.amount': '2' }],
      { note: 'new', budgets: [{ by: 'tag:a', name: 'x', amount: 2, period: 'day' }] },
    ],
    [
      'channels',
      {
        id: 'order',
        ...base,
        mapper: { n: 'b', m: 'a' },
        cost: { b: { ...rates, windows: [window] }, a: { ...rates, service_tiers: { flex: 0.5, fast: 2 } } },
        params: {
          set: { top: { b: 1, a: 2 }, n: 1 },
          model_rules: { m: { sampling: 'none', efforts: ['low'] } },
        },
      },
      ['channels/order/edit', { weight: '3', 'cost.1.output': '9' }],
      {
        weight: 3,
        cost: {
          b: { ...rates, output: 0.009, windows: [window] },
          a: { ...rates, service_tiers: { flex: 0.5, fast: 2 } },
        },
      },
    ],
    [
      'charges',
      {
        id: 78,
        type: 'token-billing',
        models: ['order'],
        ...rates,
        windows: [window],
        service_tiers: { flex: 0.5, fast: 2 },
      },
      ['charges/78', { output: '4', 'windows.0.output': '5' }],
      { output: 0.004, windows: [{ ...window, output: 0.005 }] },
    ],
    [
      'settings',
      // No channel serves their models, so each row has a warning.
      { name: 'aliases', value: { fast: { on_context_length: true, models: ['a'] }, able: ['b'] } },
      ['settings/aliases', { 'value.0.models': 'c' }],
      { value: { fast: { on_context_length: true, models: ['a'] }, able: ['c'] } },
    ],
    [
      'plans',
      { level: 3, price: 1, items: [{ value: 1, id: 'a', icon: 'a.svg', models: ['m'] }] },
      ['settings/plans/3', { price: '2' }],
      { price: 2 },
    ],
    [
      'keys',
      {
        hash: 'd'.repeat(64),
        account: 'order',
        hint: 'sk-Orde...wXyZ',
        budget: { period: 'day', amount: 1 },
      },
      [`keys/${'d'.repeat(64)}/edit`, { name: 'new' }],
      { name: 'new' },
    ],
  ] as const)(
    'neither prevent a confirmation of %s nor get lost',
    async (table, written, [path, typed], after) => {
      await put(rig.client, 'accounts', [{ account: 'order' }]);
      await put(rig.client, 'settings', [{ name: 'unpriced_models', value: 'refuse' }]);
      await put(rig.client, table, [written]);
      const own = await serveReordered();
      isReversed = false;
      const fields = fieldsIn(await own.page(path));
      isReversed = true;
      const confirm = await own.follow(await own.post(path, { ...fields, ...typed }));
      isReversed = false;
      const [, at = ''] = /<form method="post" action="(confirm\/\w+)"/.exec(confirm) ?? [];
      const reply = await own.post(at, { form_token: tokenIn(confirm) });
      expect([path, reply.status, /role="alert">([^<]*)/.exec(confirm)?.[1]]).toEqual([path, 303, undefined]);
      const [key = ''] = Object.keys(written);
      const made = (await rig.ports.tables.scan(table)).find(
        (each) => each[key] === Object.values(written)[0],
      );
      expect(made).toMatchObject({ ...written, ...after });
    },
  );
});

it('creates a plan with two entries, removes one, keeps attributes without a field, and deletes the plan', async () => {
  const entry = (index: number, id: string, value: string) => ({
    [`items.${index}.id`]: id,
    [`items.${index}.value`]: value,
    [`items.${index}.models`]: id === '' ? '' : 'a, b',
  });
  await done('settings/plans/2', { price: '30', ...entry(0, 'chat', '100') });
  await put(rig.client, 'plans', [
    { level: 2, price: 30, items: [{ id: 'chat', icon: 'c.svg', value: 100, models: ['a', 'b'] }] },
  ]);
  const page = fieldsIn(await visitor.page('settings/plans/2'));
  await done('settings/plans/2', { ...page, ...entry(1, 'more', '-1') });
  expect((await row('plans', '2'))?.['items']).toEqual([
    { id: 'chat', icon: 'c.svg', value: 100, models: ['a', 'b'] },
    { id: 'more', value: -1, models: ['a', 'b'] },
  ]);
  const both = fieldsIn(await visitor.page('settings/plans/2'));
  const wrong = await visitor.send('settings/plans/2', { ...both, ...entry(1, 'more', 'many') });
  expect(await wrong.text()).toContain('id="items.1.value-error"');
  await done('settings/plans/2', { ...both, ...entry(0, '', '') });
  expect((await row('plans', '2'))?.['items']).toEqual([{ id: 'more', value: -1, models: ['a', 'b'] }]);
  await done('settings/plans/2', { price: '', ...entry(0, '', '') });
  expect(await row('plans', '2')).toBeUndefined();
  const form_token = tokenIn(await visitor.page('settings/plans/2'));
  for (const unknown of ['settings/plans/4', 'settings/constructor'])
    expect((await visitor.post(unknown, { form_token, value: 'x', price: '1' })).status).toBe(404);
});

it('edits a plan with many entries, and refers to the command line if there are too many', async () => {
  const items = Array.from({ length: 120 }, (_, at) => ({ id: `e${at}`, value: 5, models: ['a'] }));
  await put(rig.client, 'plans', [{ level: 3, price: 30, items }]);
  const page = fieldsIn(await visitor.page('settings/plans/3'));
  await done('settings/plans/3', { ...page, 'items.119.value': '7' });
  expect((await row('plans', '3'))?.['items']).toEqual(items.with(119, { ...items[119]!, value: 7 }));
  const more = Object.fromEntries(Array.from({ length: 2_100 }, (_, at) => [`x${at}`, '']));
  const reply = await visitor.send('settings/plans/3', more);
  expect([reply.status, await reply.text()]).toEqual([413, expect.stringContaining('too many fields')]);
  const rows = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`items.${at}.value`, 'x']));
  const bounded = await visitor.send('settings/plans/3', rows);
  const text = await bounded.text();
  expect([bounded.status, text.length < 3_000_000]).toEqual([422, true]);
  expect(text).toContain('id="items.0.id-error"');
  expect((await row('plans', '3'))?.['items']).toHaveLength(120);
  await removePlan(3);
});

it('edits the hours, long inputs and service tiers of a rule without JSON', async () => {
  const rule = {
    id: 77,
    type: 'token-billing',
    models: ['m'],
    input: 0.002,
    output: 0.008,
    cache_write: 0.003,
  };
  await put(rig.client, 'charges', [rule]);
  const hours = {
    name: 'peak',
    from: '09:00',
    to: '12:00',
    zone: 'Asia/Shanghai',
    days: 'mon, tue',
    factor: '2',
  };
  const tier = { above: '32000', input: '4', output: '16' };
  const named = (list: string, fields: Record<string, string>) =>
    Object.fromEntries(Object.entries(fields).map(([name, text]) => [`${list}.0.${name}`, text]));
  const shown = fieldsIn(await visitor.page('charges/77'));
  expect(shown['cache_write']).toBe('3');
  await done('charges/77', {
    ...shown,
    ...named('windows', hours),
    ...named('tiers', tier),
    service_tiers: 'priority = 2',
  });
  const written = {
    ...rule,
    windows: [{ ...hours, days: ['mon', 'tue'], factor: 2 }],
    tiers: [{ above: 32_000, input: 0.004, output: 0.016 }],
    service_tiers: { priority: 2 },
  };
  const found = (await rig.ports.tables.scan('charges')).find(({ id }) => id === 77) ?? {};
  expect(found).toMatchObject(written);
  const path = 'charges/77';
  expect(await visitor.follow(await visitor.send(path, fieldsIn(await visitor.page(path))))).toContain(
    'Nothing to change',
  );
  await done(path, await pressed(path, fieldsIn(await visitor.page(path)), 'remove windows.0'));
  expect((await rig.ports.tables.scan('charges')).find(({ id }) => id === 77)).not.toHaveProperty('windows');
});

describe('prices of customers', () => {
  const path = 'settings/price_groups';
  const tiers = [{ above: 1_000, input: 0.004, output: 0.016 }];
  const gold = [
    { models: ['m'], input: 0.002, output: 0.008, tiers },
    { models: ['*'], factor: 0.8 },
  ];

  it('rise for a group from a date: a new price goes above the old one, which keeps attributes without a field', async () => {
    await put(rig.client, 'settings', [{ name: 'price_groups', value: { gold, iron: [gold[1]] } }]);
    const prices = (await visitor.page('charges')).replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
    expect(prices).toMatch(/gold m ¥2 input, ¥8 output .*gold \* standard price × 0\.8 .*iron/);
    expect(await visitor.page(path)).toMatch(/href="charges"[^>]*>Cancel/);
    await put(rig.client, 'accounts', [{ account: 'grouped', price_group: 'gold' }]);
    expect(await visitor.page('customers/grouped')).toContain('<a href="charges#groups">gold</a>');
    const added = await pressed(path, fieldsIn(await visitor.page(path)), 'add value');
    const raised = {
      'value.3.group': 'gold',
      'value.3.models': 'm',
      'value.3.input': '3',
      'value.3.output': '12',
      'value.3.from': '2098-12-01T00:00:00+08:00',
    };
    await done(path, { ...added, ...raised });
    expect((await row('settings', 'price_groups'))?.['value']).toEqual({
      gold: [{ models: ['m'], input: 0.003, output: 0.012, from: '2098-12-01T00:00:00+08:00' }, ...gold],
      iron: [gold[1]],
    });
    expect(fieldsIn(await visitor.page(path))).toMatchObject({
      'value.0.group': 'gold',
      'value.0.input': '3',
      'value.3.group': 'iron',
    });
  });

  it.each([
    [{ 'value.2.from': 'soon' }, 'value.2.from', 'invalid time'],
    [{ 'value.2.from': '2098-12-02', 'value.2.until': '2098-12-01' }, 'value.2.until', 'later than from'],
    [{ 'value.2.input': '1' }, 'value.2.group', 'either a factor or prices'],
    [{ 'value.2.models': '' }, 'value.2.models', '1 to 100 model names'],
  ])('show an error at the invalid field: %j', async (wrong, field, words) => {
    await put(rig.client, 'settings', [{ name: 'price_groups', value: { gold, iron: [gold[1]] } }]);
    const reply = await visitor.send(path, { ...fieldsIn(await visitor.page(path)), ...wrong });
    const [, error = ''] = new RegExp(`id="${field}-error">([^<]*)`).exec(await reply.text()) ?? [];
    expect([reply.status, error]).toEqual([422, expect.stringContaining(words)]);
  });

  it('are shown for confirmation in the units of the form, as are prices of rules', async () => {
    await put(rig.client, 'settings', [{ name: 'price_groups', value: { iron: [gold[1]] } }]);
    await put(rig.client, 'charges', [{ id: 78, type: 'times-billing', models: ['calls'], output: 1 }]);
    const confirmed = async (form: string, typed: Record<string, string>) => {
      const reply = await visitor.send(form, { ...fieldsIn(await visitor.page(form)), ...typed });
      const shown = await visitor.follow(reply);
      return shown
        .slice(shown.indexOf('Changes'))
        .replaceAll(/<[^>]*>/g, ' ')
        .replaceAll(/\s+/g, ' ');
    };
    const priced = { 'value.0.factor': '', 'value.0.input': '6', 'value.0.output': '10' };
    expect(await confirmed(path, priced)).toMatch(
      /Models: \*, Factor: 0\.8 .*Models: \*, Input: ¥6\.00 per 1M tokens, Output: ¥10\.00 per 1M tokens/,
    );
    expect(await confirmed('charges/78', { output: '2' })).toMatch(/¥1\.00 per call ¥2\.00 per call/);
  });

  it('are also fields on the form of one customer', async () => {
    await put(rig.client, 'accounts', [{ account: 'priced', prices: [gold[1]] }]);
    const form = 'customers/priced/edit';
    const added = await pressed(form, fieldsIn(await visitor.page(form)), 'add prices');
    await done(form, {
      ...added,
      'prices.1.models': 'm',
      'prices.1.factor': '2',
      'prices.1.until': '2098-12-01',
    });
    expect(await rig.ports.tables.get('accounts', 'priced')).toMatchObject({
      prices: [{ models: ['m'], factor: 2, until: '2098-12-01' }, gold[1]],
    });
  });
});

describe('a vendor’s price list', () => {
  const rows = Array.from(
    { length: 12 },
    (_, at) => `listed-${at};${at + 1}.00 元/百万tokens;¥${2 * at + 4};0.5;x`,
  );
  const csv = ['型号;输入;输出;缓存命中;备注', ...rows].join('\n');
  const path = 'charges-import';
  const read = async (text: string) =>
    fieldsIn(await (await visitor.send(path, { csv: text, rows: 'read csv' })).text());

  it('is imported with its own columns, and the form asks for them only once', async () => {
    const page = await (await visitor.send(path, { csv, rows: 'read csv' })).text();
    expect(page).toMatch(/<td[^>]*>[^]*2\.00 元\/百万tokens/);
    const fields = fieldsIn(page);
    expect(fields).toMatchObject({
      'columns.model': '型号',
      'columns.cached_input': '缓存命中',
      currency: 'cny',
    });
    const unnamed = await visitor.send(path, { ...fields, vendor: '' });
    expect(await unnamed.text()).toContain('id="vendor-error"');
    const unset = await visitor.send(path, { ...fields, vendor: 'v', 'columns.input': '' });
    expect(await unset.text()).toMatch(/role="alert">[^<]*set input/);
    const sent = { ...fields, vendor: 'volc', markup: '10' };
    const confirm = await visitor.follow(await visitor.send(path, sent));
    expect(confirm).toMatch(/Import 12 models in 12 rules[^]*Save the columns of volc[^]*listed-11/);
    const other = await visitor.send(path, sent);
    expect(await confirmShown(confirm)).toContain('Created 12 rules');
    const rules = (await rig.ports.tables.scan('charges')).filter(({ models }) =>
      String(models).startsWith('listed-'),
    );
    expect(rules.find(({ models }) => String(models) === 'listed-3')).toMatchObject({
      input: 0.0044,
      output: 0.011,
    });
    // Another tab reviewed the same list earlier.
    expect(await confirmShown(await visitor.follow(other))).toContain('role="alert"');
    expect(rules).toHaveLength(12);
    const next = await read(`${csv.split('\n')[0]}\nlisted-next;1;2;;`);
    expect(next).toMatchObject({ vendor: 'volc', 'columns.input': '输入', per: '1000000' });
  });

  it('requires a rate if it is in dollars, and rejects one if it is in yuan', async () => {
    const fields = await read('Model,Input,Output\nlisted-usd,1,2');
    const sent = { ...fields, vendor: 'other' };
    expect(fields['currency']).toBe('usd');
    expect(await (await visitor.send(path, sent)).text()).toContain('id="rate-error"');
    expect(await (await visitor.send(path, { ...sent, currency: 'cny', rate: '7' })).text()).toContain(
      'id="rate-error"',
    );
    expect(await visitor.follow(await visitor.send(path, { ...sent, rate: '7' }))).toMatch(
      /\$1 = ¥7[^]*>\s*7\s*</,
    );
    const json = JSON.stringify({ listed: { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 } });
    const known = await read(json);
    expect(known).not.toHaveProperty('vendor');
    expect(await visitor.follow(await visitor.send(path, { ...known, rate: '7' }))).toContain(
      'Import 1 model',
    );
  });

  it.each([
    ['', /id="csv-mark"/],
    ['<html>', /id="csv-mark">[^]*HTML/],
    ['a,b\n"1', /id="csv-mark"/],
    [`a,b\n${','.repeat(5)}\0`, /id="csv-mark"/],
    [`${'a,'.repeat(200)}\n1`, /id="csv-mark"/],
    ['{', /in this file|not valid|US dollars/],
  ])('is rejected at its field if it is invalid: %j', async (text, said) => {
    const reply = await visitor.send(path, { csv: text, rows: 'read csv' });
    expect(await reply.text()).toMatch(said);
  });

  it('skips a formula, rejects a truncated line, and escapes markup', async () => {
    const fields = await read(
      `Model,Input,Output,Currency\n=cmd()|x,1,2,¥\n<img src=x>,1,2,¥\nlisted-ok,1,2,¥`,
    );
    const sent = { ...fields, vendor: '<img src=x>' };
    const confirm = await visitor.follow(await visitor.send(path, sent));
    expect(confirm).toContain('Import 1 model in 1 rule');
    expect(confirm).not.toContain('<img');
    const half = await visitor.send(path, { ...sent, csv: 'Model,Input,Output,Currency\nlisted-half,1' });
    expect(await half.text()).toContain('is the line cut off?');
    const long = `Model,Input,Output\n${'m,1,2\n'.repeat(100_000)}`;
    expect((await visitor.send(path, { csv: long, rows: 'read csv' })).status).toBe(413);
  });
});

it('offers none of these forms in a read-only console', async () => {
  const reader = await enter(await rig.serve({ readOnly: true }));
  expect(await reader.page('settings')).not.toMatch(/href="settings\/|<form method="post"/);
  for (const path of [
    'settings/notices',
    'settings/plans/1',
    'charges-import',
    `keys/${'c'.repeat(64)}/edit`,
  ])
    expect((await reader.get(path)).status).toBe(403);
});

it('creates a batch of codes whose file is only in one answer, lists it, and revokes it', async () => {
  const page = await done('customers-codes-new', {
    count: '3',
    amount: '10',
    batch: 'a/b',
    expires_at: '90d',
  });
  const [, file = ''] = /base64,([A-Za-z0-9+/=]+)/.exec(page) ?? [];
  const lines = Buffer.from(file, 'base64').toString('utf8').trim().split('\n');
  expect(lines).toHaveLength(4);
  const [code = ''] = lines[1]?.split(',') ?? [];
  const rows = await rig.ports.tables.scan('codes');
  expect(rows.map((each) => each['hash'])).toContain(hashCode(code));
  const pages = await Promise.all(
    ['customers-codes', 'customers-codes/a%2Fb', 'history'].map((at) => visitor.page(at)),
  );
  expect(pages.join('')).not.toContain(code);
  expect(pages[0]).toContain('href="customers-codes/a%2Fb"');
  expect(pages[1]).toContain(codeIdOf(hashCode(code) ?? ''));
  expect(await done('customers-codes/a%2Fb/revoke')).toContain('Revoked 3 codes.');
  const wrong = await visitor.send('customers-codes-new', {
    count: 'x',
    amount: '10',
    batch: 'b',
    expires_at: '',
  });
  expect(await wrong.text()).toContain('use 1 to 10000 codes a batch');
});

describe('a channel', () => {
  it('is created with the fields of its type, the names at the upstream and the costs of calls', async () => {
    const page = await visitor.page('channels-new?type=azure');
    expect(page).toContain('name="api_version"');
    expect(await visitor.page('channels-new')).not.toContain('name="api_version"');
    const cost = { 'cost.0.model': '*', 'cost.0.input': '2', 'cost.0.output': '8' };
    const params = { 'params.set': 'temperature = 1', 'params.model_rules': 'gpt-4* efforts = ["low"]' };
    const named = { id: 'az', models: 'smart', mapper: 'smart = gpt-4o' };
    const fields = { ...fieldsIn(page), ...named, ...cost, ...params, 'params.stream': 'no' };
    const halved = await visitor.send('channels-new', { ...fields, 'cost.0.output': '' });
    expect(await halved.text()).toContain('id="cost.0.output-error"');
    const wrong = await visitor.send('channels-new', { ...fields, api_version: '?' });
    const again = await wrong.text();
    expect([wrong.status, again]).toEqual([422, expect.stringContaining('id="api_version-error"')]);
    expect(fieldsIn(again)).toMatchObject({ id: 'az', type: 'azure', mapper: 'smart = gpt-4o' });
    const endpoint = 'https://x.openai.azure.com';
    await done('channels-new', { ...fields, api_version: '2024-10-21', endpoint, weight: '2' });
    const made = { type: 'azure', models: ['smart'], mapper: { smart: 'gpt-4o' }, weight: 2, state: true };
    expect(await row('channels', 'az')).toMatchObject({
      ...made,
      cost: { '*': { input: 0.002, output: 0.008 } },
      params: { set: { temperature: 1 }, model_rules: { 'gpt-4*': { efforts: ['low'] } }, stream: false },
    });
    const seen = fieldsIn(await visitor.page('channels/az/edit'));
    const same = await visitor.follow(await visitor.send('channels/az/edit', seen));
    expect(same).toContain('Nothing to change');
    const without = { 'cost.0.model': '', 'cost.0.input': '', 'cost.0.output': '' };
    const unnamed = await visitor.send('channels/az/edit', { ...seen, 'cost.0.model': '' });
    expect(await unnamed.text()).toContain('id="cost.0.model-error"');
    await done('channels/az/edit', { ...seen, ...without, mapper: '', first_content_seconds: '30' });
    const edited = (await row('channels', 'az')) ?? {};
    expect([edited['mapper'], edited['cost'], edited['first_content_seconds']]).toEqual([
      undefined,
      undefined,
      30,
    ]);
  });

  it('refers to its secret by the stored name, on a stack with a secret store', async () => {
    const target = { ...rig.ports.target, local: false };
    const other = await enter(await rig.serve({ ports: { ...rig.ports, target } }));
    const base = { id: 'named', type: 'openai', endpoint: 'https://a.example/v1', models: 'm', state: 'on' };
    const confirm = await other.follow(await other.send('channels-new', { ...base, secret: 'vendor' }));
    expect(confirm).toContain(`ssm:/relay/${target.stack}/channels/a.example/vendor`);
    for (const secret of ['sk-abc', 'a'.repeat(32)])
      expect(await (await other.send('channels-new', { ...base, secret })).text()).toContain(
        'id="secret-error"',
      );
  });
});

describe('CSV', () => {
  const area = async (path: string) => fieldsIn(await visitor.page(path))['csv'] ?? '';
  const hashes = ['e', 'f'].map((sign) => sign.repeat(64));

  it('disables one key and limits another at once, after a preview, and leaves rows without a line unchanged', async () => {
    await put(rig.client, 'accounts', [{ account: 'bulk' }]);
    await put(
      rig.client,
      'keys',
      hashes.map((hash) => ({
        hash,
        account: 'bulk',
        hint: 'sk-Bulk...wXyZ',
        enabled: true,
        models: ['a', 'b'],
      })),
    );
    const csv = await area('keys-csv?text=bulk');
    expect(csv.split('\n').filter((line) => line !== '')).toHaveLength(3);
    const [head = '', first = '', second = ''] = csv.split('\n');
    const names = head.split(',');
    const set = (line: string, name: string, value: string) =>
      line.split(',').with(names.indexOf(name), value).join(',');
    const sent = [head, set(first, 'enabled', 'no'), set(second, 'rpm', '7')].join('\n');
    expect(await done('keys-csv', { csv: sent })).toContain('Saved 2 rows');
    expect((await row('keys', hashes[0] ?? ''))?.['enabled']).toBe(false);
    expect(await row('keys', hashes[1] ?? '')).toMatchObject({ rpm: 7, enabled: true, models: ['a', 'b'] });

    const late = await visitor.send('keys-csv', { csv: [head, set(second, 'rpm', '8')].join('\n') });
    expect([late.status, await late.text()]).toEqual([422, expect.stringContaining('in the meantime')]);
    const wrong = await visitor.send('keys-csv', { csv: `hash,rpm\n${hashes[1]},many` });
    expect(await wrong.text()).toMatch(/id="csv-error">line 2: rpm: found/);
    const none = await visitor.send('keys-csv', { csv: `hash,rpm\n${'a'.repeat(64)},1` });
    expect(await none.text()).toContain('no key with this hash');
  });

  it('does not let a leaked key work again', async () => {
    const hash = 'a1'.repeat(32);
    await put(rig.client, 'keys', [
      { hash, account: 'bulk', hint: 'sk-Leak...wXyZ', enabled: false, _leaked: 'x' },
    ]);
    const reply = await visitor.send('keys-csv', { csv: `hash,enabled\n${hash},yes` });
    expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining('because it leaked')]);
  });

  it('creates a customer and changes another, and asks before it disables one', async () => {
    const csv = 'account,note,rpm,enabled\nbulk,=SUM(1),5,\nbulk-new,made,,no';
    expect(await done('customers-csv', { csv })).toContain('Saved 2 rows');
    const rows = await rig.ports.tables.scan('accounts');
    expect(rows.find(({ account }) => account === 'bulk')).toMatchObject({ note: '=SUM(1)', rpm: 5 });
    expect(rows.find(({ account }) => account === 'bulk-new')).toMatchObject({
      note: 'made',
      enabled: false,
    });
    const off = await visitor.follow(
      await visitor.send('customers-csv', { csv: 'account,enabled\nbulk,no' }),
    );
    expect(off).toContain('Disable bulk?');
    const part = await visitor.send('customers-csv', { csv: 'account,plan.until\nbulk,2099-01-01' });
    expect(await part.text()).toContain('line 2: plan.until: set plan.level as well');
    expect(await area('customers-csv')).toContain("'=SUM(1)");
    const same = await visitor.send('customers-csv', { csv: await area('customers-csv') });
    expect(await same.text()).toContain('no row has changed');
  });

  it('creates customers with credits and keys from a sheet, once, and shows the keys only in that answer', async () => {
    const page = await visitor.page('customers-sheet');
    expect(fieldsIn(page)['csv']).toMatch(/^account,note,/);
    const csv =
      'account,note,contact.email,grant.id,grant.amount,key.id\nsheet-a,=1+1,a@example.com,g,5,main\nsheet-b,"<img src=x>",,g,2.5,main';
    const [first, second] = [
      await visitor.send('customers-sheet', { csv }),
      await visitor.send('customers-sheet', { csv }),
    ];
    const confirmation = await visitor.follow(first);
    expect(confirmation).toContain('Apply 2 lines and credit ¥7.50?');
    expect(changesIn(confirmation)).toContainEqual([
      'Customer sheet-a (new)',
      'contact.email',
      '–',
      'a@example.com',
    ]);
    expect(confirmation).not.toContain('<img');
    const result = await confirmShown(confirmation);
    const keys = [...new Set(result.match(/sk-[\w-]{48}/g))];
    expect(keys).toHaveLength(2);
    expect(result).toContain('download="customers.result.csv"');
    const [, file = ''] = /base64,([^"]+)"/.exec(result) ?? [];
    expect(Buffer.from(file, 'base64').toString('utf8')).toMatch(
      /^.account,contact\.email,[^]*\nsheet-a,a@example\.com,new/,
    );
    const rows = (await rig.ports.tables.scan('keys')).filter(({ account }) =>
      String(account).startsWith('sheet-'),
    );
    expect(rows).toHaveLength(2);
    // Another tab reviewed the same sheet earlier.
    expect(await confirmShown(await visitor.follow(second))).toContain('no row has changed');
    const again = await visitor.send('customers-sheet', { csv });
    expect(await again.text()).toContain('no row has changed');
  });

  it('reads the rows of its page once if a sheet is rejected', async () => {
    const counted = async (work: Promise<unknown>): Promise<number> => {
      const before = rig.ports.traffic().requests;
      await work;
      return rig.ports.traffic().requests - before;
    };
    const read = await counted(visitor.page('customers-csv'));
    const form_token = tokenIn(await visitor.page('customers-csv'));
    const refused = visitor.post('customers-csv', { form_token, csv: 'unknown,rpm\nx,5' });
    expect(await counted(refused)).toBe(read);
  });

  it('shows rows of a long sheet once, as changes, and folds credits after the first lines', async () => {
    const lines = Array.from({ length: 14 }, (_, at) => `long-${at},5,g${at},1`).join('\n');
    const page = await visitor.follow(
      await visitor.send('customers-sheet', { csv: `account,rpm,grant.id,grant.amount\n${lines}` }),
    );
    const unfolded = page.replaceAll(/<details>[^]*?<\/details>/g, '');
    expect([page, unfolded].map((text) => text.match(/Credit .*?long-\d+/g)?.length)).toEqual([14, 10]);
    expect(page.match(/Customer long-3 \(new\)|(Create|Update) customer long-3\b/g)).toEqual([
      'Customer long-3 (new)',
    ]);
  });

  it('shows at most as many rows as a form may send back, in any script', async () => {
    const accounts = Array.from({ length: 40 }, (_, at) => ({
      account: `wide-${at}`,
      note: '客'.repeat(1000),
    }));
    await put(rig.client, 'accounts', accounts);
    const page = await visitor.page('customers-csv?text=wide-');
    expect(page).toMatch(/first \d+ of 40 rows/);
    const csv = fieldsIn(page)['csv'] ?? '';
    const reply = await visitor.send('customers-csv', { csv: csv.replaceAll('\n', '\r\n') });
    expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining('no row has changed')]);
  });

  it('keeps multi-line text unchanged, in a sheet and in a form', async () => {
    const note = 'first\nsecond\u202e, \\u202e';
    await put(rig.client, 'accounts', [{ account: 'lines', note, rpm: 5 }]);
    const csv = await area('customers-csv?text=lines');
    const same = await visitor.send('customers-csv', { csv });
    expect(await same.text()).toContain('no row has changed');
    await done('customers-csv', { csv: csv.replace(',5,', ',6,') });
    const edit = 'customers/lines/edit';
    const fields = fieldsIn(await visitor.page(edit));
    await done(edit, { ...fields, rpm: '7', note: (fields['note'] ?? '').replaceAll('\n', '\r\n') });
    const rows = await rig.ports.tables.scan('accounts');
    expect(rows.find(({ account }) => account === 'lines')).toMatchObject({ note, rpm: 7 });
    expect(await visitor.page(edit)).toMatch(/<textarea[^>]*name="note"/);
  });

  it('changes prices per million tokens, with the effect on the last days, and rejects all if one is invalid', async () => {
    const rule = { type: 'token-billing', models: ['x'], input: 0.001, output: 0.002 };
    await put(rig.client, 'charges', [
      { ...rule, id: 41, cached_input: 0.0005 },
      { ...rule, id: 42, models: ['y', 'z'] },
      { id: 43, type: 'times-billing', models: ['t'], output: 0.5 },
    ]);
    const reply = await visitor.send('charges-csv', { csv: 'id,input\n41,3\n42,4' });
    expect(await visitor.follow(reply)).toMatch(/Impact on the last 7 days[^]*class="question"/);
    await done('charges-csv', { csv: 'id;output\n41;3\n43;0.75' });
    const rules = await rig.ports.tables.scan('charges');
    expect(rules.find(({ id }) => id === 41)).toMatchObject({
      output: 0.003,
      cached_input: 0.0005,
      input: 0.001,
    });
    expect(rules.find(({ id }) => id === 43)).toMatchObject({ output: 0.75 });
    const wrong = await visitor.send('charges-csv', { csv: 'id,input\n41,5\n42,-1' });
    expect([wrong.status, await wrong.text()]).toEqual([
      422,
      expect.stringContaining('charges 42: input: found'),
    ]);
    const many = { csv: 'id,input,from\n41,x,\n42,-1,\n43,1\n44,1,2027-99-99\n45,1,' };
    const refused = await (await visitor.send('charges-csv', many)).text();
    expect(refused.match(/line \d: (charges \d+: )?\w+/g)).toEqual([
      'line 2: charges 41: input',
      'line 3: charges 42: input',
      'line 4: 2',
      'line 5: from',
      'line 6: charges 45: type',
    ]);
    for (const [csv, words] of [
      ['id,input\n41,5\n41.0,6', 'line 3: duplicate 41'],
      ['id,input,_seen\n041,5,old', 'line 2: someone else changed 41'],
    ] as const)
      expect(await (await visitor.send('charges-csv', { csv })).text()).toContain(words);
  });
});

describe('selected rows of a list', () => {
  const ticks = (...keys: string[]) => Object.fromEntries(keys.map((key) => [`row:${key}`, 'yes']));

  it('are credited once, limited and disabled, after a preview', async () => {
    const names = ['tick <a>', 'tick-b'];
    await put(
      rig.client,
      'accounts',
      names.map((account) => ({ account })),
    );
    expect(await visitor.page('customers?name=tick')).toContain('name="row:tick &lt;a&gt;"');
    const credit = { ...ticks(...names), action: 'credit', value: '5', id: 'tick-1' };
    const preview = await visitor.follow(await visitor.send('customers-selected', credit));
    expect(preview).toContain('Apply 2 lines and credit ¥10.00?');
    await done('customers-selected', credit);
    expect(await confirmShown(preview)).toContain('already have it');
    await done('customers-selected', { ...ticks(...names), action: 'rpm', value: '7' });
    await done('customers-selected', { ...ticks('tick-b'), action: 'enabled=no', value: '' });
    const rows = (await rig.ports.tables.scan('accounts')).filter(({ account }) =>
      names.includes(String(account)),
    );
    expect(rows.map(({ account, rpm, enabled }) => [account, rpm, enabled])).toEqual(
      expect.arrayContaining([
        ['tick <a>', 7, undefined],
        ['tick-b', 7, false],
      ]),
    );
    expect(
      (await Array.fromAsync(rig.ports.ledger.grants())).flat().filter(({ grantId }) => grantId === 'tick-1'),
    ).toHaveLength(2);
  });

  it('of keys and channels are disabled and limited', async () => {
    const hashes = ['7', '8'].map((sign) => sign.repeat(64));
    await put(
      rig.client,
      'keys',
      hashes.map((hash) => ({ hash, account: 'tick-b', hint: `sk-${hash.slice(0, 4)}` })),
    );
    await done('keys-selected', { ...ticks(...hashes), action: 'enabled=no' });
    await done('keys-selected', { ...ticks(hashes[0] ?? ''), action: 'rpm', value: '3' });
    expect([await row('keys', hashes[0] ?? ''), await row('keys', hashes[1] ?? '')]).toMatchObject([
      { enabled: false, rpm: 3 },
      { enabled: false },
    ]);
    await put(rig.client, 'channels', [
      {
        id: 'ticked',
        type: 'openai',
        endpoint: 'https://a.example/v1',
        models: ['tick-m'],
        secret: 'env:OPENAI_API_KEY',
        state: true,
      },
    ]);
    await done('channels-selected', { ...ticks('ticked'), action: 'state=no' });
    expect(await row('channels', 'ticked')).toMatchObject({ state: false });
  });

  it.each([
    [{ action: 'rpm', value: '5' }, 'select at least one row'],
    [{ ...ticks('gone'), action: 'rpm', value: '5' }, 'no longer exist'],
    [{ ...ticks('tick-b'), action: 'toString', value: '5' }, 'choose what to do'],
    [{ ...ticks('tick-b'), action: 'rpm', value: 'many' }, 'rpm: found'],
    [{ ...ticks('tick-b'), action: 'credit', value: '' }, 'amount'],
  ])('%j are rejected: %s', async (fields, words) => {
    const reply = await visitor.send('customers-selected', { id: 'x', ...fields });
    expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining(words)]);
  });
});

it('changes the price of one model of a shared rule by its name, at once or later, and the others keep theirs', async () => {
  const rule = { id: 51, type: 'token-billing', models: ['big/one', 'small'], input: 0.001, output: 0.002 };
  await put(rig.client, 'charges', [rule]);
  expect(await visitor.page('charges')).toContain('href="charges/model/big%2Fone"');
  const path = 'charges/model/big%2Fone';
  const page = fieldsIn(await visitor.page(path));
  expect(page).toMatchObject({ input: '1', output: '2' });
  await done(path, { ...page, input: '3' });
  const rules = await rig.ports.tables.scan('charges');
  const modelsOf = (each: unknown) => [...(each as { models: Iterable<string> }).models];
  expect(rules.filter(({ id }) => id === 51).map(modelsOf)).toEqual([['small']]);
  const own = rules.find((each) => each['id'] !== 51 && modelsOf(each).includes('big/one'));
  expect(own).toMatchObject({ input: 0.003, output: 0.002 });
  const late = await visitor.send(path, page);
  expect([late.status, await late.text()]).toEqual([422, expect.stringContaining('in the meantime')]);
  const later = await visitor.send(path, { input: '4', output: '2', from: '2099-01-01T00:00:00Z' });
  expect(await visitor.follow(later)).toContain('at <time datetime="2099-01-01T00:00:00Z">');
});

describe('an invoice', () => {
  const path = 'channels/vendor/invoice';
  const given = { csv: 'Model,Amount\nm-1,3\nm-2,"1,000.5"\nTotal,1003.5', month: '2026-10' };
  const day = { id: 'channel#vendor', period: 'day#2026-10-07#m-1', calls: 2, bought: 2, bought_calls: 2 };
  const other = {
    id: 'channel#vendor',
    period: 'day#2026-10-08#m-3',
    calls: 1,
    bought: 0.5,
    bought_calls: 1,
  };

  it('is compared with the costs of its channel’s calls, the largest difference first, for every role', async () => {
    await put(rig.client, 'daily', [day, other]);
    const reader = await enter(await rig.serve({ readOnly: true }));
    await put(rig.client, 'channels', [{ id: 'vendor', endpoint: 'https://a.example', models: ['m-1'] }]);
    expect(await reader.page('channels/vendor')).toContain(`href="${path}"`);
    const page = (await (await reader.send(path, given)).text()).replaceAll(/<[^>]*>|\s/g, ' ');
    const text = page.replaceAll(/[\s\u2007\u2008]+/g, ' ');
    expect(text).toMatch(/columns Model and Amount/);
    expect(text).toContain('Skipped line 4');
    expect(text).toMatch(/Bought ¥2\.50 Invoiced ¥1,003\.50 Difference ¥1,001\.00 /);
    expect(text).toMatch(
      /m-2 0 − ¥1,000\.50 ¥1,000\.50 − the invoice m-1 2 ¥2\.00 ¥3\.00 ¥1\.00 50\.0 m-3 1 ¥0\.50 − −¥0\.50 −100\.0 the relay/,
    );
    // The entered text is kept for another rate.
    expect(fieldsIn(await (await reader.send(path, { ...given, rate: '7.2' })).text())).toMatchObject({
      ...given,
      rate: '7.2',
    });
  });

  const soon = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 7);
  it.each([
    ['csv', 'paste the lines', { csv: ' ' }],
    ['csv', 'HTML', { csv: '\n<!doctype html><html><body>Log in, please</body></html>' }],
    ['csv', 'Quote Not Closed', { csv: 'Model,Amount\n"a,3' }],
    ['model_column', 'no header line has this column', { csv: 'id,Amount\na,3' }],
    ['amount_column', 'no header line has this column', { amount_column: 'Cost; USD' }],
    ['amount_column', 'this column has no amounts', { csv: 'Model,Amount\na,much\nb,more' }],
    ['decimal', 'is ambiguous', { csv: 'Model;Amount\na;1,234' }],
    ['rate', 'use a number', { rate: 'seven' }],
    ['rate', 'use a number', { rate: '-1' }],
    ['month', 'use a month', { month: '2026-13' }],
    ['month', 'use a month', { month: '' }],
    ['month', 'is in the future', { month: soon }],
  ])('reports at the field %s: %s', async (field, words, changed) => {
    const reply = await visitor.send(path, { ...given, ...changed });
    const page = await reply.text();
    expect(reply.status).toBe(422);
    expect([...page.matchAll(/class="error" id="(\w+)-error"/g)].map(([, at]) => at)).toEqual([field]);
    expect(/class="error"[^>]*>([^<]*)/.exec(page)?.[1]).toContain(words);
  });

  it('of an unknown channel, and one that is too large, is rejected', async () => {
    const reply = await visitor.send('channels/nobody/invoice', given);
    expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining('no channel nobody')]);
    // Letters and digits: encoding 10 MB of other characters blocks this process for longer than an idle connection lasts.
    const large = await visitor.send(path, { ...given, csv: 'a1'.repeat(5_000_000) });
    expect([large.status, await large.text()]).toEqual([413, expect.stringContaining('256 KB')]);
    expect(rig.faults).toEqual([]);
  });
});

interface FormWalk {
  path: string;
  /** First input: an invalid value in one field, which gets the error and the focus, while the other input stays. */
  wrong: readonly [name: string, text: string];
  fields: Readonly<Record<string, string>>;
  /** Text of the confirmation page. */
  asks: RegExp;
  /** The page that then shows the row, and the expected words. */
  seen: readonly [path: string, words: RegExp];
}

/** In this order: later forms edit what earlier ones created. */
const formWalks: readonly FormWalk[] = [
  {
    path: 'customers/walker/edit',
    wrong: ['concurrency', 'few'],
    fields: { note: 'walked customer', concurrency: '40', 'contact.email': 'ops@example.com' },
    asks: /walked customer[^]*40[^]*ops@example\.com/,
    seen: ['customers/walker', /walked customer/],
  },
  {
    path: 'settings/plans/3',
    wrong: ['price', 'cheap'],
    fields: {
      price: '30',
      'items.0.id': 'chat',
      'items.0.value': '100',
      'items.0.models': 'demo-chat',
    },
    asks: /Covered calls\s+–\s+ID: chat/,
    seen: ['settings', /3\s+¥30\.00\s+ID: chat, Calls per month: 100, Models: demo-chat/],
  },
  {
    path: 'customers/walker/edit',
    wrong: ['plan.until', 'whenever'],
    fields: { 'plan.level': '3', 'plan.since': 'yesterday', 'plan.until': '365d' },
    asks: /level 3/i,
    seen: ['customers/walker', /level 3/i],
  },
  {
    path: 'settings/limits',
    wrong: ['value.account_rpm', 'lots'],
    fields: { 'value.account_rpm': '6000' },
    asks: /Calls per minute per customer\s+–\s+6000/,
    seen: ['settings', /Calls per minute per customer: 6000/],
  },
  {
    path: 'settings/time_zone',
    wrong: ['value', 'Mars/Base'],
    fields: { value: 'Asia/Tokyo' },
    asks: /After[^]*Asia\/Tokyo/,
    seen: ['settings', /Asia\/Tokyo/],
  },
  {
    path: 'charges-new',
    wrong: ['input', '0,018'],
    fields: { models: 'walked-one, walked-two', input: '18', output: '72' },
    asks: /Input\s+–\s+¥18\.00 per 1M tokens/,
    seen: ['charges', /walked-one\s+walked-two\s+18\s/],
  },
  {
    path: 'charges/model/walked-two',
    wrong: ['output', 'dear'],
    fields: { input: '9', output: '36' },
    asks: /rule \d+[^]*walked-two/i,
    seen: ['charges', /walked-two\s+9\s/],
  },
  {
    path: 'channels-new?type=openai',
    wrong: ['priority', 'first'],
    fields: {
      id: 'walked',
      endpoint: 'https://api.example.com/v1',
      models: 'walked-one',
      secret: 'env:WALKED',
      priority: '-3',
    },
    asks: /Endpoint\s+–\s+https/,
    seen: ['channels', /walked\s[^]*?-3/],
  },
  {
    path: 'channels/walked/edit',
    wrong: ['cost.0.input', '{'],
    fields: { weight: '2', 'cost.0.model': '*', 'cost.0.input': '2', 'cost.0.output': '8' },
    asks: /Weight\s+–\s+2/,
    seen: ['channels/walked', /Weight\s+2/],
  },
];

it('every form rejects an invalid value at its field, keeps the other input, shows a preview, and its row is listed once confirmed', async () => {
  await put(rig.client, 'accounts', [{ account: 'walker' }]);
  await put(rig.client, 'settings', [{ name: 'subscription.enabled', value: true }]);
  const textOf = (page: string) => /<main[^]*<\/main>/.exec(page)?.[0].replaceAll(/<[^>]*>/g, ' ');
  for (const { path, wrong, fields, asks, seen } of formWalks) {
    const typed = { ...fields, [wrong[0]]: wrong[1] };
    const form = fieldsIn(await visitor.page(path));
    const refused = await (await visitor.post(path, { ...form, ...typed })).text();
    expect([path, ...refused.matchAll(/<p class="error" id="([^"]+)-error"/g)]).toEqual([
      path,
      expect.objectContaining({ 1: wrong[0] }),
    ]);
    const focused = [...refused.matchAll(/<[^>]* autofocus\b[^>]*>/g)].map(String);
    expect(focused).toEqual([expect.stringContaining(`name="${wrong[0]}"`)]);
    expect(fieldsIn(refused)).toMatchObject(typed);
    const corrected = { ...fieldsIn(refused), [wrong[0]]: fields[wrong[0]] ?? '' };
    const confirm = await visitor.follow(await visitor.post(path, corrected));
    expect(textOf(confirm)).toMatch(asks);
    const saved = await confirmShown(confirm);
    expect([path, saved.match(/class="notice good" role="status"|role="alert"/g)]).toEqual([
      path,
      ['class="notice good" role="status"'],
    ]);
    expect(textOf(await visitor.page(seen[0]))).toMatch(seen[1]);
  }
});
