import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { viewCustomer } from '../../shared/operate/customers/customer-view.ts';
import { physicalTableName } from '../../shared/tables/table-names.ts';
import { runOps } from '../ops/run-ops.ts';
import { costOf, enter, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { accountAt, modelAt, put, seedRelay } from './large-relay.ts';

const nowMs = Date.now();
let rig: ConsoleRig;
let visitor: Visitor;
let reader: Visitor;
beforeAll(async () => {
  rig = await startConsoleRig();
  await seedRelay(rig.client, { nowMs, accounts: 5000, models: 300, channels: 8, rows: 1500 });
  visitor = await enter(await rig.serve());
  reader = await enter(await rig.serve({ readOnly: true }));
  // 25,000 items; on a busy machine that takes its time.
}, 180_000);
afterAll(async () => rig.stop());

const first = accountAt(0);
const dayBack = (days: number): string => new Date(nowMs - days * 86_400_000).toISOString().slice(0, 10);
const pages = [
  '',
  '?hours=24',
  'customers',
  'customers?name=customer-049',
  'customers?after=%2B4950',
  'customers?order=spent',
  'customers?order=dry',
  `customers/${first}`,
  `customers/${accountAt(1)}`,
  `customers/${accountAt(4999)}`,
  `customers/${first}/edit`,
  `customers/${first}/plan`,
  'keys',
  `keys?text=${first}`,
  'channels',
  'channels/upstream-0',
  'channels/upstream-0/edit',
  'channels-new',
  'charges',
  'charges/17',
  'charges-new',
  `requests?account=${first}`,
  'versions',
  'versions/diff',
  'audit',
  `statements?account=${first}`,
];

describe('with 300 models, 5,000 customers and a long ledger', () => {
  it.each(pages)('the page /%s needs at most 10 requests and 2 MB, and says how many', async (path) => {
    const reply = await visitor.get(path);
    const page = await reply.text();
    expect(reply.status).toBe(200);
    const { requests, bytes } = costOf(page);
    expect(requests).toBeLessThanOrEqual(10);
    expect(bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    expect(page).toContain(`DynamoDB: ${requests} request`);
    expect(rig.faults).toEqual([]);
  });

  it.each([0, 1])('shows customer %d as `customer show` does, with as few requests', async (at) => {
    const account = accountAt(at);
    const page = (await (await visitor.get(`customers/${account}`)).text()).replaceAll(/\s+/g, ' ');
    const endpoint = { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint };
    const { output } = await runOps(['customer', 'show', account, '--json'], endpoint);
    const shown = JSON.parse(output) as {
      [figure in 'available' | 'granted' | 'spent']: string;
    } & {
      use: { from: string; calls: number; charged: string; models: { model: string }[]; days: object[] };
      grants: { grantId: string }[];
      all_grants: boolean;
    };
    const { use } = shown;
    for (const amount of [shown.available, shown.granted, shown.spent, use.charged])
      expect(page).toContain(`<data value="${amount}"`);
    expect(page).toContain(`${use.calls.toLocaleString('en')} calls, `);
    const rows = /Use by model[^]*?<tbody>([^]*?)<\/tbody>/.exec(page)?.[1] ?? '';
    expect([...rows.matchAll(/<th scope="row"[^>]*> ?([\w/ -]+?) ?</g)].map(([, name]) => name)).toEqual(
      use.models.map(({ model }) => model),
    );
    for (const { grantId } of shown.grants) expect(page).toContain(`<code>${grantId}</code>`);
    expect(page.includes('The newest 20')).toBe(!shown.all_grants);

    const before = rig.ports.traffic();
    const view = await viewCustomer(rig.ports, account);
    const after = rig.ports.traffic();
    expect(after.requests - before.requests).toBeLessThanOrEqual(10);
    expect(after.bytes - before.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    // So many models that 30 days of them are not read: whole days are shown, and which.
    const dayCount = at === 0 ? 30 : 6;
    expect(view.use).toMatchObject({ isWhole: at === 0, from: dayBack(dayCount - 1), to: dayBack(0) });
    expect(use.days).toHaveLength(dayCount);
    expect(page).toContain(at === 0 ? 'Last 30 days' : `Since ${dayBack(dayCount - 1)}`);
  });

  it('lists all customers by name in pages, and counts them', async () => {
    const seen: string[] = [];
    let path: string | undefined = 'customers?name=customer-01';
    while (path !== undefined) {
      const page = await (await visitor.get(path)).text();
      seen.push(
        ...[...page.matchAll(/<a href="customers\/(customer-\d+)"/g)].map(([, name]) => String(name)),
      );
      expect(page).toContain('of 1,000 customers');
      path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toEqual(Array.from({ length: 1000 }, (_, at) => accountAt(1000 + at)));
  });

  it('goes through the requests of a customer page by page, newest first', async () => {
    const idsOf = (page: string) => [...page.matchAll(/href="requests\/(\w+)"/g)].map(([, id]) => String(id));
    const one = await (await visitor.get(`requests?account=${first}`)).text();
    const next = /<a href="([^"]+)" rel="next"/.exec(one)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const two = await (await visitor.get(next)).text();
    const ids = [...idsOf(one), ...idsOf(two)];
    expect(ids).toHaveLength(100);
    expect(new Set(ids).size).toBe(100);
    expect(ids.toSorted().toReversed()).toEqual(ids);
  });

  it('audits the balances of all customers page by page', async () => {
    const [wrong] = (await rig.ports.pages.rows({ table: 'accounts', limit: 1 })).rows;
    const account = String(wrong?.['account']);
    await rig.client.send(
      new UpdateItemCommand({
        TableName: physicalTableName('relay', 'quotas'),
        Key: { account: { S: account } },
        UpdateExpression: 'ADD granted :one',
        ExpressionAttributeValues: { ':one': { N: '1' } },
      }),
    );
    const page = await (await visitor.get('audit')).text();
    expect(page).toMatch(new RegExp(`${account}</a>[^]*differs by`));
    const [, next = ''] = /<a href="(audit\?[^"]+)" rel="next"/.exec(page) ?? [];
    const after = await (await visitor.get(next)).text();
    expect(after).toContain('Looked at 300 customers');
    expect(after).not.toContain('differs by');
    expect(costOf(after).requests).toBeLessThanOrEqual(10);
  });

  it('compares an edit with the last days before it is written, and keeps what was typed', async () => {
    const confirmOf = async (path: string, fields: Record<string, string>) => {
      const form = await (await visitor.get(path)).text();
      const [, seen = ''] = /name="seen" value="(\w+)"/.exec(form) ?? [];
      const sent = await visitor.post(path, { ...fields, seen, form_token: tokenIn(form) });
      expect(sent.status).toBe(303);
      const address = new URL(sent.headers.get('location') ?? '', visitor.base).href;
      return (await visitor.get(address.slice(visitor.base.length))).text();
    };
    const price = await confirmOf('charges/17', {
      type: 'token-billing',
      models: modelAt(16),
      input: '20',
      output: '19',
      cached_input: '1',
    });
    expect(price).toMatch(/price of vendor-4\/model-16 rises by 300 %/);
    // Of 300 models the edited one alone, beside the sum; also of those whose channel has long been off.
    const body = /Revenue and margin by model[^]*?<tbody>([^]*?)<\/tbody>/.exec(price)?.[1] ?? '';
    expect([...body.matchAll(/<th scope="row"[^>]*>\s*([\w/ -]+?)\s*</g)].map(([, name]) => name)).toEqual([
      'All models',
      modelAt(16),
    ]);
    expect(body).toMatch(/exact|within [\d.]+ %/);
    const [, again = ''] = /href="(charges\/17\?again=\w+)"/.exec(price) ?? [];
    expect(await (await visitor.get(again)).text()).toContain(`value="20"`);
    expect(await (await visitor.get('charges/17')).text()).not.toContain('value="20"');

    // A later price is a rule of its own, as `charge set --from` makes it.
    const rule = { type: 'token-billing', models: modelAt(16), input: '6', output: '19' };
    const later = await confirmOf('charges/17', { ...rule, from: '2099-01-01T00:00:00Z' });
    expect(later).toContain(
      'rule 301 prices these models from 2099-01-01T00:00:00Z on; rule 17 stays until then',
    );

    const off = await confirmOf('channels/upstream-3/switch', {});
    expect(off).toMatch(/Nobody serves any more:<\/strong>\s*vendor-/);
  });

  it('says when each channel was called last, as far back as a page may read', async () => {
    const endpoint = 'https://unused.example/v1';
    await put(rig.client, 'channels', [{ id: 'unused', endpoint, models: ['m'], state: true }]);
    const page = await (await visitor.get('channels')).text();
    const [, since = ''] = /last calls and failures are known\s+since (\d{4}-\d\d-\d\d)/.exec(page) ?? [];
    expect(nowMs - Date.parse(since)).toBeGreaterThan(3 * 86_400_000);
    expect(page).toContain('>today</time>');
    // Ten days are not known, so it is not called idle.
    expect(page).toMatch(new RegExp(`>unused</a>[^]*none since ${since}`));
  });

  it('lists every key once over the pages of the table', async () => {
    const seen = new Set<string>();
    let path: string | undefined = 'keys';
    while (path !== undefined) {
      const page = await (await visitor.get(path)).text();
      for (const [, account] of page.matchAll(/href="customers\/(customer-\d+)"/g)) seen.add(String(account));
      path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen.size).toBe(5000);
  });
});

describe('a console that only reads', () => {
  it.each(pages.filter((path) => !/edit|plan$|-new|charges\/17/.test(path)))(
    'shows no form that writes on /%s',
    async (path) => {
      const page = await (await reader.get(path)).text();
      expect(page).toContain('read only');
      const writing = [...page.matchAll(/<form method="post" action="([^"]*)"/g)].map(([, action]) => action);
      expect(writing.filter((action) => action !== 'audit')).toEqual([]);
      expect(page).not.toMatch(/href="[^"]*\/(edit|grant|rotate|disable|refund)"/);
    },
  );

  it('searches the log for a request, and says what came of it', async () => {
    const list = await (await reader.get(`requests?account=${first}`)).text();
    const [, id = ''] = /href="requests\/(\w+)"/.exec(list) ?? [];
    const page = await (await reader.get(`requests/${id}`)).text();
    expect(page).toContain('What the log says');
    const sent = await reader.post(`requests/${id}/log`, { form_token: tokenIn(page) });
    const done = new URL(sent.headers.get('location') ?? '', reader.base).href.slice(reader.base.length);
    const words = await (await reader.get(done)).text();
    expect(words).toContain(`What the log says of ${id}`);
    expect(words).toMatch(/log|Under way/);
    expect(rig.faults).toEqual([]);
  });

  it('refuses a form that somebody sends all the same, and writes nothing', async () => {
    const form_token = tokenIn(await (await reader.get('audit')).text());
    expect(form_token).not.toBe('');
    const tries: [string, Record<string, string>][] = [
      [`customers/${first}/grant`, { amount: '5', id: 'never' }],
      ['channels/upstream-0/switch', {}],
      ['charges/17', { type: 'non-billing', models: 'x' }],
    ];
    for (const [path, fields] of tries)
      expect((await reader.post(path, { ...fields, form_token })).status).toBe(403);
    expect((await rig.ports.tables.get('channels', 'upstream-0'))?.['state']).toBe(true);
  });

  it('audits the money of a customer, which writes nothing, and says first what it reads', async () => {
    const form_token = tokenIn(await (await reader.get('audit')).text());
    const sent = await reader.post('audit', { account: accountAt(3), form_token });
    expect(sent.status).toBe(303);
    const done = await reader.get(
      new URL(sent.headers.get('location') ?? '', reader.base).href.slice(reader.base.length),
    );
    expect(await done.text()).toMatch(/findings in 0 rows|All 0 rows/);
  });
});

const hostile = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\u2028';

describe('what is stored in rows', () => {
  it('is text on every page that shows it, and never markup', async () => {
    await put(rig.client, 'accounts', [{ account: hostile, note: hostile, contact: { email: hostile } }]);
    await put(rig.client, 'keys', [
      {
        hash: 'f'.repeat(64),
        account: hostile,
        hint: hostile,
        models: [hostile],
        _created: hostile,
        _by: hostile,
      },
    ]);
    await put(rig.client, 'channels', [
      {
        id: hostile,
        name: hostile,
        endpoint: hostile,
        models: [hostile],
        state: true,
        _problem: hostile,
        _warning: hostile,
        _by: hostile,
        _at: hostile,
      },
      {
        id: 'sound',
        name: hostile,
        endpoint: 'https://a.example/v1',
        models: ['m'],
        mapper: { m: hostile },
        state: true,
        _warning: hostile,
        _can: { model: hostile },
      },
    ]);
    await put(rig.client, 'charges', [{ id: 9999, type: hostile, models: [hostile], _problem: hostile }]);
    await put(rig.client, 'grants', [
      { account: hostile, grant_id: hostile, amount: hostile, _problem: hostile },
    ]);
    const day = new Date(nowMs).toISOString().slice(0, 10);
    await put(rig.client, 'daily', [
      { id: 'served', period: `day#${day}#${hostile}#${hostile}`, day, calls: 1 },
      { id: `account#${hostile}`, period: `day#${day}#${hostile}`, day, calls: 1 },
      { id: `month#${day.slice(0, 7)}`, period: `account#${hostile}`, calls: 9_999_999, charged: 99_999 },
    ]);
    const name = encodeURIComponent(hostile);
    const shown = [
      '',
      'customers?name=onerror',
      'customers?order=spent',
      `customers/${name}`,
      `customers/${name}/edit`,
      `customers/${name}/grant`,
      'keys?text=onerror',
      `keys/${'f'.repeat(64)}/disable`,
      'channels',
      `channels/${name}`,
      `channels/${name}/edit`,
      'channels/sound',
      'channels/sound/edit',
      'charges',
      'charges/9999',
      'audit',
      `audit?account=${name}`,
      `requests?account=${name}`,
      `requests?id=${name}`,
      `requests/${name}`,
      `statements?account=${name}&month=${name}`,
      `versions/diff?from=${name}`,
      `keys?text=${name}`,
      `customers?name=${name}`,
    ];
    let seen = 0;
    for (const path of shown) {
      const page = await (await visitor.get(path)).text();
      expect([path, /<img|<script>alert|onerror=alert\(1\)>/.exec(page)?.[0]]).toEqual([path, undefined]);
      if (page.includes('&lt;img src=x')) seen += 1;
    }
    // It was there to be seen.
    expect(seen).toBeGreaterThan(15);
    expect(rig.faults.splice(0)).toEqual([]);
  });

  it('shows no text of a row with a problem, which may be a secret in a wrong attribute', async () => {
    const secret = 'sk-live-51Habcdefghijklmnop';
    await put(rig.client, 'accounts', [{ account: 'odd', note: 'kept', stripe: 'whsec_abcdefghijkl' }]);
    const odd = await (await visitor.get('customers/odd')).text();
    expect(odd).toContain('kept');
    expect(odd).not.toContain('whsec_');
    await put(rig.client, 'channels', [
      { id: 'wrong', endpoint: secret, secret, name: secret, models: ['m'], state: true, note: secret },
    ]);
    for (const path of ['', 'channels', 'channels/wrong', 'channels/wrong/edit', 'audit', 'versions/diff'])
      expect([path, (await (await visitor.get(path)).text()).includes(secret)]).toEqual([path, false]);
    // Its last good version serves, so it can be stopped without mending the row.
    const wrong = await (await visitor.get('channels/wrong')).text();
    expect(wrong).toContain('action="channels/wrong/switch"');
    expect((await visitor.post('channels/wrong/switch', { form_token: tokenIn(wrong) })).status).toBe(303);
    const page = await (await visitor.get('channels/sound/edit')).text();
    const seen = /name="seen" value="(\w+)"/.exec(page)?.[1] ?? '';
    const fields = { models: 'm', state: 'on', secret, seen, form_token: tokenIn(page) };
    const reply = await visitor.post('channels/sound/edit', fields);
    expect(reply.status).toBe(422);
    const refused = await reply.text();
    expect(refused).not.toContain(secret);
    expect(refused).toMatch(/id="secret-error">found no reference, wanted ssm:/);
  });
});
