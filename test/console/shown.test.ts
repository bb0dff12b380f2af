/** What pages show at any size of a relay: rows as text, and no forms in a read-only console. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enter, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { accountAt, buildRelay, put, readPages } from './large-relay.ts';

let rig: ConsoleRig;
let visitor: Visitor;
let reader: Visitor;
beforeAll(async () => {
  const size = { accounts: 5, models: 20, channels: 4, rows: 20, minutes: 90 };
  rig = await startConsoleRig(buildRelay({ nowMs: Date.now(), ...size }));
  visitor = await enter(await rig.serve());
  reader = await enter(await rig.serve({ readOnly: true }));
});
afterAll(async () => rig.stop());

describe('a read-only console', () => {
  it('shows no form that writes', async () => {
    for (const path of readPages) {
      const page = await reader.page(path);
      expect(page).toContain('read-only');
      const writing = [...page.matchAll(/<form method="post" action="([^"]*)"/g)].map(([, action]) => action);
      const reading = new Set([
        'audit',
        'audit-all',
        'export',
        'margins-csv',
        'statement-html',
        'statements-csv',
        'statements-html',
      ]);
      expect([path, writing.filter((action = '') => !reading.has(action))]).toEqual([path, []]);
      expect(page).not.toMatch(/href="[^"]*\/(edit|grant|rotate|disable|refund)"/);
    }
  });

  it('downloads everything as one file, only by a form of its own session', async () => {
    const form_token = tokenIn(await reader.page('audit'));
    expect((await reader.get('export')).status).toBe(404);
    expect((await reader.post('export', { form_token: 'of another' })).status).toBe(403);
    const reply = await reader.post('export', { form_token });
    expect(reply.headers.get('content-disposition')).toContain('attachment; filename="everything.jsonl"');
    const tables = (await reply.text())
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { table: string }).table);
    expect([...new Set(tables)]).toEqual(expect.arrayContaining(['channels', 'accounts', 'keys', 'ledger']));
  });

  it('downloads statements and the audit, and shows a page for an invalid month', async () => {
    const page = await reader.page('statements?month=2026-11');
    const [, account = ''] = /statements\?account=([^&"]+)/.exec(page) ?? [];
    const form_token = tokenIn(page);
    const month = new Date().toISOString().slice(0, 7);
    const html = await reader.post('statement-html', { form_token, account, month });
    expect(html.headers.get('content-disposition')).toContain(`filename="${account}-${month}.html"`);
    expect(await html.text()).toMatch(/<h1>Statement of[^]*Closing balance/);
    const csv = await (await reader.post('statements-csv', { form_token, account: '', month })).text();
    expect(csv).toMatch(/^account,kind,day,[^]*\n\S+,("?DOES NOT ADD UP|closing)/);
    const names = new Set(csv.split('\n').flatMap((line) => /^[\w-]+(?=,)/.exec(line) ?? []));
    const [, from = '', , before = ''] = [...names].filter((name) => name !== 'account');
    const pages = await reader.post('statements-html', { form_token, account: '', month, from, before });
    expect(pages.headers.get('content-disposition')).toContain(
      `filename="statements-${month}-from-${from}.html"`,
    );
    const [file, count] = [
      await pages.text(),
      (text: string) => text.split('<section class="statement">').length - 1,
    ];
    expect([file.match(/<html/g)?.length, count(file), file.trimEnd().endsWith('</html>')]).toEqual([
      1,
      2,
      true,
    ]);
    const first = file.split('<section class="statement">')[1];
    expect(first).toContain(from);
    expect(file).not.toContain('<script');
    for (const [query, field] of [
      ['account=acme&month=november', 'month'],
      ['month=2099-01', 'month'],
      ['account=nobody&month=2026-11', 'account'],
    ]) {
      const refused = await reader.get(`statements?${query}`);
      expect([query, refused.status, await refused.text()]).toEqual([
        query,
        422,
        expect.stringMatching(new RegExp(`id="field-account" name="account"[^]*id="${field}-mark"`)),
      ]);
    }
    const later = await reader.post('statements-html', { form_token, month: '2099-01' });
    expect([later.headers.get('content-disposition'), await later.text()]).toEqual([
      null,
      expect.stringContaining('in the future'),
    ]);
    const audit = await (await reader.post('audit-all', { form_token })).text();
    expect(audit).toMatch(/^Audited customers:\n[^]*\d+ rows?, \d+ problems?\.\n$/);
    const bad = await reader.post('statement-html', { form_token, account, month: '../x' });
    expect(bad.headers.get('content-disposition')).toBeNull();
    expect(await bad.text()).toContain('role="alert"');
    const named = await reader.post('statement-html', { form_token, account: 'a"\r\nx: y', month });
    expect(named.headers.get('x')).toBeNull();
  });

  it('streams a download, and a failed one closes only its own connection', async () => {
    const { promise: seen, resolve: goOn } = Promise.withResolvers<void>();
    const next = async (): Promise<never> => {
      await seen;
      throw new Error('the store is gone');
    };
    const ledger = { ...rig.ports.ledger, grants: () => ({ [Symbol.asyncIterator]: () => ({ next }) }) };
    const own = await enter(await rig.serve({ ports: { ...rig.ports, ledger } }));
    const reply = await own.post('export', { form_token: tokenIn(await own.page('audit')) });
    const stream = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await stream?.read())?.value).toContain('"table":"channels"');
    goOn();
    const rest = async (): Promise<void> => {
      while (!(await stream?.read())?.done);
    };
    await expect(rest()).rejects.toThrow('terminated');
    expect((await own.get('audit')).status).toBe(200);
    expect(rig.faults.splice(0)).toHaveLength(1);
  });

  it('shows the next step if there is no data yet', async () => {
    const nobody = ['customers?name=nobody', 'keys?text=nobody', 'ledger?account=nobody'];
    for (const path of ['statements?month=2025-01', ...nobody])
      expect([path, (await reader.page(path)).split('class="empty-title"').length]).toEqual([path, 2]);
  });

  it('shows a request from the ledger, and explains why the log has no data', async () => {
    const list = await reader.page(`ledger?account=${accountAt(0)}`);
    const [, path = ''] = /href="(requests\/\w+\?at=\d+)"/.exec(list) ?? [];
    expect(await reader.page(path)).toMatch(/What it cost[^]*charged/);
    expect(await reader.page('requests')).toMatch(/log/);
    expect(rig.faults).toEqual([]);
  });

  it('rejects a form that somebody sends anyway, and writes nothing', async () => {
    const form_token = tokenIn(await reader.page('audit'));
    const tries: [string, Record<string, string>][] = [
      [`customers/${accountAt(0)}/grant`, { amount: '5', id: 'never' }],
      ['channels/upstream-0/switch', {}],
      ['charges/17', { type: 'non-billing', models: 'x' }],
    ];
    for (const [path, fields] of tries)
      expect((await reader.post(path, { ...fields, form_token })).status).toBe(403);
    expect((await rig.ports.tables.get('channels', 'upstream-0'))?.['state']).toBe(true);
  });

  it('audits the balance of a customer without writing', async () => {
    const page = await reader.follow(await reader.send('audit', { account: accountAt(3) }));
    expect(page).toMatch(/problems in 0 rows|All 0 rows/);
  });
});

it('shows the last checked balance of an upstream on its page, a warning if it is low, and a note of any form', async () => {
  const found = { at: Date.now() - 3_600_000, low: true, text: '2.50 CNY (env:KEY)' };
  const row = { endpoint: 'https://api.deepseek.com', models: ['m'], balance_below: 5, state: true };
  await put(rig.client, 'channels', [
    { ...row, id: 'poor', _balance: found },
    { ...row, id: 'odd', _balance: ['<b>'] },
    { ...row, id: 'late', _balance: found, balance_below: undefined },
  ]);
  const shown = async (path: string): Promise<string> => (await visitor.page(path)).replaceAll(/\s+/g, ' ');
  expect(await shown('channels/poor')).toMatch(/2\.50 CNY \(env:KEY\), .*?ago.*?low/);
  for (const path of ['', 'channels'])
    expect((await shown(path)).match(/upstream balance low/g)).toHaveLength(1);
  for (const id of ['odd', 'late']) expect(await shown(`channels/${id}`)).toContain('not watched');
  expect(rig.faults).toEqual([]);
});

describe('requests of a relay on AWS, where reading the log is charged', () => {
  const nowMs = Date.now();
  let searches = 0;
  const found = async (): Promise<never> => {
    searches += 1;
    return { lines: [], counts: [], scannedBytes: 800e6 } as never;
  };
  const kept = [{ bytes: 100e9, sinceMs: nowMs - 10 * 86_400_000 }];
  const aws = async (): Promise<Visitor> => {
    const target = { stack: 'relay', local: false };
    const log = { source: async () => ({ groups: ['relay-chat'], kept }), search: found, counts: found };
    return enter(await rig.serve({ readOnly: true, ports: { ...rig.ports, target, log } }));
  };

  it('are read at once for an hour, with the cost; live reading starts after a click, with the cost of an hour', async () => {
    const page = (await (await aws()).page('requests')).replaceAll(/\s+/g, ' ');
    expect(page).toContain('read 1.6 GB ($0.008) of the log');
    expect(page).toMatch(/reads about 1\d\.\d GB \(\$0\.0\d+\) per hour/);
    expect(page).toMatch(/data-live="requests\/live\?live=on&(amp;)?watch=\w{64}" [^>]*data-hours="12"/);
    expect(page).not.toMatch(/data-on\b/);
  });

  it('come with commands for their stack', async () => {
    const visit = await aws();
    for (const [path, words] of [
      ['statements?month=2026-11', 'statement --stack relay --all'],
      ['audit', 'audit --stack relay<'],
    ] as const)
      expect(await visit.page(path)).toContain(`npx --no relay-ops ${words}`);
    expect(await reader.page('audit')).toContain('npx --no relay-ops audit<');
  });

  it('are not read for a day before its price was shown', async () => {
    const visit = await aws();
    searches = 0;
    const asked = await visit.page('requests?from=24h&status=failed');
    expect(asked).toContain('20.0 GB ($0.1)');
    expect(searches).toBe(0);
    const [, path = ''] = /href="(requests\?[^"]*read=yes)"/.exec(asked) ?? [];
    expect(await visit.page(path.replaceAll('&amp;', '&'))).toContain('No matching requests');
    expect(searches).toBe(2);
  });

  it('are not read, counted or followed by a link on another site', async () => {
    const visit = await aws();
    searches = 0;
    const link = async (path: string) => (await visit.get(path, { 'sec-fetch-site': 'cross-site' })).text();
    expect(await link('requests?from=24h&read=yes')).toContain('20.0 GB ($0.1)');
    expect(await link('?refused=yes')).toContain('Count refused calls');
    expect(searches).toBe(0);
    expect(await link('requests?live=on')).not.toMatch(/data-on\b/);
  });

  it('show the error of a filter, and keep the input', async () => {
    const page = await (await aws()).page('requests?from=soon&model=gpt-4o');
    expect(page).toMatch(/from: enter a time such as 2h/);
    expect(page).toContain('value="gpt-4o"');
    expect(rig.faults).toEqual([]);
  });
});

const hostile = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\u2028';

describe('data in rows', () => {
  it('is shown as text on every page, and never as markup', async () => {
    const day = new Date().toISOString().slice(0, 10);
    const marks = { _problem: hostile, _warning: hostile, _by: hostile, _at: hostile };
    const channel = { name: hostile, state: true, ...marks };
    const hash = 'f'.repeat(64);
    await put(rig.client, 'accounts', [{ account: hostile, note: hostile, contact: { email: hostile } }]);
    await put(rig.client, 'keys', [
      { hash, account: hostile, hint: hostile, models: [hostile], _created: hostile, _by: hostile },
    ]);
    await put(rig.client, 'channels', [
      { ...channel, id: hostile, endpoint: hostile, models: [hostile] },
      {
        ...channel,
        id: 'sound',
        endpoint: 'https://a.example/v1',
        models: ['m'],
        mapper: { m: hostile },
        _can: { model: hostile },
      },
    ]);
    await put(rig.client, 'charges', [{ id: 9999, type: hostile, models: [hostile], _problem: hostile }]);
    await put(rig.client, 'grants', [
      { account: hostile, grant_id: hostile, amount: hostile, _problem: hostile },
    ]);
    await put(rig.client, 'daily', [
      { id: 'served', period: `day#${day}#${hostile}#${hostile}`, day, calls: 1 },
      { id: `account#${hostile}`, period: `day#${day}#${hostile}`, day, calls: 1 },
      { id: `month#${day.slice(0, 7)}`, period: `account#${hostile}`, calls: 9_999_999, charged: 99_999 },
    ]);
    const name = encodeURIComponent(hostile);
    const shown = [
      '',
      'channels',
      'channels/sound',
      'channels/sound/edit',
      'charges',
      'charges/9999',
      'audit',
      'customers?order=spent',
      `keys/${hash}/disable`,
      'customers?name=onerror',
      'keys?text=onerror',
      ...['customers?name=', 'keys?text='].map((at) => at + name),
      ...[
        'customers/',
        'channels/',
        'requests/',
        'audit?account=',
        'requests?account=',
        'ledger?account=',
      ].map((at) => at + name),
      ...['requests/find?id=', 'versions/diff?from='].map((at) => at + name),
      ...['customers', 'channels'].map((at) => `${at}/${name}/edit`),
      `customers/${name}/grant`,
      `statements?account=${name}&month=${name}`,
    ];
    let seen = 0;
    for (const path of shown) {
      const page = await visitor.page(path);
      expect([path, /<img|<script>alert|onerror=alert\(1\)>/.exec(page)?.[0]]).toEqual([path, undefined]);
      if (page.includes('&lt;img src=x')) seen += 1;
    }
    // The text was on the page.
    expect(seen).toBeGreaterThan(15);
    expect(rig.faults.splice(0)).toEqual([]);
  });

  it('is hidden if its row is invalid, because it may be a secret in a wrong attribute', async () => {
    const secret = 'sk-live-51Habcdefghijklmnop';
    await put(rig.client, 'accounts', [{ account: 'odd', note: 'kept', stripe: 'whsec_abcdefghijkl' }]);
    const odd = await visitor.page('customers/odd');
    expect(odd).toContain('kept');
    expect(odd).not.toContain('whsec_');
    await put(rig.client, 'channels', [
      { id: 'wrong', endpoint: secret, secret, name: secret, models: ['m'], state: true, note: secret },
    ]);
    for (const path of ['', 'channels', 'channels/wrong', 'channels/wrong/edit', 'audit', 'versions/diff'])
      expect([path, (await visitor.page(path)).includes(secret)]).toEqual([path, false]);
    // Its last valid version is served, so it can be disabled without correcting the row.
    const wrong = await visitor.page('channels/wrong');
    expect(wrong).toContain('action="channels/wrong/switch"');
    expect((await visitor.post('channels/wrong/switch', { form_token: tokenIn(wrong) })).status).toBe(303);
    const reply = await visitor.send('channels/sound/edit', { models: 'm', state: 'on', secret });
    expect(reply.status).toBe(422);
    const refused = await reply.text();
    expect(refused).not.toContain(secret);
    expect(refused).toMatch(/id="secret-error">enter a reference, ssm:/);
  });
});
