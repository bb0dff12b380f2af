import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildEmptyQuota } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { noteUndo } from '../../shared/operate/undo.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import { enter, seenIn, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { put } from './large-relay.ts';

let rig: ConsoleRig;
let visitor: Visitor;
beforeAll(async () => {
  rig = await startConsoleRig();
  visitor = await enter(await rig.serve());
});
afterAll(async () => rig.stop());

const key = { hash: 'b'.repeat(64), account: 'acme', hint: 'sk-AbCd...wXyZ' };

it.each(['a\\b', 'a\tb', 'a%2Fb', 'a?b#c', '//a', '100%', 'å b'])(
  'sends a form of the customer and of the channel %j only to its own page',
  async (name) => {
    await put(rig.client, 'accounts', [{ account: name }]);
    await put(rig.client, 'channels', [
      { id: name, endpoint: 'https://a.example/v1', models: ['m'], state: true },
    ]);
    for (const folder of ['customers', 'channels']) {
      const path = `${folder}/${encodeURIComponent(name)}/edit`;
      const [, action = ''] = /<form method="post" action="([^"]*)"/.exec(await visitor.page(path)) ?? [];
      expect(new URL(action, visitor.base).href).toBe(visitor.base + path);
      expect([200, 303, 422]).toContain((await visitor.send(path, { name: 'n', note: 'n' })).status);
    }
    expect(rig.faults).toEqual([]);
  },
);

describe('a form of a row that somebody else changed in the meantime', () => {
  it('is rejected for a customer, and does not enable the customer again', async () => {
    const row = { account: 'watched', rpm: 10 };
    await put(rig.client, 'accounts', [{ ...row, note: 'old' }]);
    const path = 'customers/watched/edit';
    const form = await visitor.page(path);
    await put(rig.client, 'accounts', [{ ...row, note: 'leaked', enabled: false }]);
    const send = (seen: string) => visitor.send(path, { note: 'new', rpm: '10', enabled: 'yes', seen });

    const late = await send(seenIn(form));
    expect(late.status).toBe(422);
    const refused = await late.text();
    expect(refused).toContain('someone else changed account watched in the meantime');

    // Anyone who continues sees the effect first.
    const confirm = (await visitor.follow(await send(seenIn(refused)))).replaceAll(/\s+/g, ' ');
    expect(confirm).toContain('Accept calls of watched again');
  });

  it('is rejected for a channel, even if a typo was corrected after the other edit', async () => {
    const channel = { id: 'typed', endpoint: 'https://a.example/v1', models: ['m'], state: true };
    await put(rig.client, 'channels', [channel]);
    const path = 'channels/typed/edit';
    const fields = { endpoint: channel.endpoint, models: 'm', state: 'on', weight: '2' };
    const form = await visitor.page(path);
    await put(rig.client, 'channels', [{ ...channel, state: false }]);
    const typo = await visitor.send(path, { ...fields, mapper: 'm', seen: seenIn(form) });
    expect(typo.status).toBe(422);
    const corrected = await visitor.send(path, { ...fields, seen: seenIn(await typo.text()) });
    expect([corrected.status, await corrected.text()]).toEqual([
      422,
      expect.stringContaining('someone else changed channels typed in the meantime'),
    ]);
  });

  it('is rejected for the plan of a customer, and does not undo the other edit', async () => {
    const plan = { level: 1, since: '2026-11-01' };
    await put(rig.client, 'accounts', [{ account: 'planned', plan }]);
    const path = 'customers/planned/edit';
    const seen = seenIn(await visitor.page(path));
    const fields = { 'plan.level': '1', 'plan.since': plan.since, 'plan.until': '2099-01-01', seen };
    const asked = await visitor.send(path, { ...fields, 'plan.level': '' });
    expect(await visitor.follow(asked)).toContain('End the plan of planned?');

    await put(rig.client, 'accounts', [{ account: 'planned' }]);
    for (const sent of [fields, { 'plan.level': '', seen }]) {
      const reply = await visitor.send(path, sent);
      expect(reply.status).toBe(422);
      const refused = await reply.text();
      expect(refused).toContain('someone else changed account planned in the meantime');
      expect((await visitor.send(path, { ...fields, seen: seenIn(refused) })).status).toBe(303);
    }
  });

  it('is rejected for a price, at once or later, and completed changes are not repeated', async () => {
    const rule = { id: 7, type: 'token-billing', models: ['m'], input: 1, output: 2 };
    await put(rig.client, 'charges', [rule]);
    const seen = seenIn(await visitor.page('charges/7'));
    const fields = { type: 'token-billing', models: 'm', input: '3000', output: '2000' };
    const asked = await visitor.send('charges/7', fields);
    expect(await visitor.follow(asked)).toMatch(/rises by 200 %/);
    const path = new URL(asked.headers.get('location') ?? '', visitor.base).href.slice(visitor.base.length);
    const confirm = { form_token: tokenIn(await visitor.page('charges/7')) };
    expect(await visitor.follow(await visitor.post(path, confirm))).toContain('Saved 1 row');
    await put(rig.client, 'charges', [{ ...rule, cached_input: 0.1 }]);
    for (const reply of [await visitor.get(path), await visitor.post(path, confirm)]) {
      expect(reply.status).toBe(404);
      expect(await reply.text()).toContain('This step has expired');
    }

    for (const from of ['', '2099-01-01']) {
      const late = await visitor.send('charges/7', { ...fields, from, seen });
      expect(late.status).toBe(422);
      expect(await late.text()).toMatch(/someone else changed (rule|charges) 7 in the meantime/);
    }
  });
});

describe('after a write', () => {
  /** Submits a form and returns its result: the earlier page with the changes. */
  const save = async (path: string, fields: Record<string, string> = {}): Promise<string> => {
    const asked = await visitor.send(path, fields);
    const confirm = new URL(asked.headers.get('location') ?? '', visitor.base).href.slice(
      visitor.base.length,
    );
    const form_token = tokenIn(await visitor.page('keys/check'));
    return visitor.follow(await visitor.post(confirm, { form_token }));
  };
  const undoIn = (page: string): string => /action="(undo\/\w+)"/.exec(page)?.[1] ?? '';
  const undo = async (page: string): Promise<string> => {
    const asked = await visitor.post(undoIn(page), { form_token: tokenIn(page) });
    if (asked.status !== 303) return asked.text();
    const confirm = new URL(asked.headers.get('location') ?? '', visitor.base).href.slice(
      visitor.base.length,
    );
    return visitor.follow(await visitor.post(confirm, { form_token: tokenIn(page) }));
  };
  const row = { id: 'undo', type: 'openai', endpoint: 'http://127.0.0.1:1/v1', models: ['m'], state: true };
  const typed = { type: 'openai', endpoint: row.endpoint, models: 'm', state: 'yes' };
  const read = (table: 'channels' | 'accounts' | 'keys', id: string) => rig.ports.tables.get(table, id);

  it('the earlier page shows the change with a link; Undo reverts it, and a second Undo restores it', async () => {
    await put(rig.client, 'channels', [{ ...row, weight: 2 }]);
    const page = await save('channels/undo/edit', { ...typed, models: 'm, n', weight: '2', priority: '7' });
    expect(page).toMatch(/<h1>undo<\/h1>[^]*Saved 1 row/);
    expect(await read('channels', 'undo')).toMatchObject({ priority: 7, models: ['m', 'n'] });
    const undone = await undo(page);
    expect(undone).toContain('Saved 1 row');
    const before = await read('channels', 'undo');
    expect(before).toMatchObject({ weight: 2, models: ['m'], state: true });
    expect(before).not.toHaveProperty('priority');
    await undo(undone);
    expect(await read('channels', 'undo')).toMatchObject({ priority: 7, models: ['m', 'n'] });
  });

  it('a form that was opened over a list returns to that list, and shows it behind each step', async () => {
    await put(rig.client, 'accounts', [{ account: 'listed' }]);
    const list = 'customers?name=liste';
    const path = `customers/listed/edit?${new URLSearchParams({ list }).toString()}`;
    const fields = { note: 'from the list', list };
    const refused = await visitor.send(path, { ...fields, rpm: 'many' });
    expect(refused.status).toBe(422);
    const asked = await visitor.send(path, fields);
    const confirm = new URL(asked.headers.get('location') ?? '', visitor.base).href.slice(
      visitor.base.length,
    );
    for (const page of [await visitor.page(path), await refused.text(), await visitor.page(confirm)])
      expect(page).toMatch(/<dialog [^]*?listed[^]*<\/dialog>[^]*Part of a name/);
    const made = await visitor.post(confirm.split('?')[0] ?? '', {
      form_token: tokenIn(await visitor.page(path)),
    });
    expect(made.headers.get('location')).toContain(`/${list}&done=`);
    expect(await visitor.follow(made)).toMatch(/from the list[^]*action="undo\//);
    expect(await read('accounts', 'listed')).toMatchObject({ note: 'from the list' });
  });

  it.each([
    '//evil.example',
    'https://evil.example/',
    'undo/x',
    'customers\\..\\',
    'keys#x',
    '../keys',
    'customers/../../x',
    'keys/.%2e/\t%2e./x',
  ])('a form ignores a return address that is not a list, such as %s', async (list) => {
    await put(rig.client, 'accounts', [{ account: 'placed' }]);
    const path = `customers/placed/edit?${new URLSearchParams({ list }).toString()}`;
    expect(await visitor.page(path)).not.toContain('<dialog');
    expect(await save(path, { note: list, list })).toMatch(/<h1>placed<\/h1>/);
  });

  it.each(['customers?name=liste&done=0123', 'customers?name=li\nste'])(
    'the result is shown over the list %j, whatever else its address contains',
    async (list) => {
      await put(rig.client, 'accounts', [{ account: 'listed' }]);
      const path = `customers/listed/edit?${new URLSearchParams({ list }).toString()}`;
      expect(await save(path, { note: 'shown', list })).toMatch(/role="status"[^]*shown/);
    },
  );

  it('Undo restores a customer, and deletes a created row', async () => {
    await put(rig.client, 'accounts', [{ account: 'undone', rpm: 5, contact: { email: 'a@example.com' } }]);
    const page = await save('customers/undone/edit', { note: 'typo' });
    expect(await read('accounts', 'undone')).toMatchObject({ note: 'typo' });
    expect(await undo(page)).toContain('Change undone.');
    expect(await read('accounts', 'undone')).toMatchObject({ rpm: 5, contact: { email: 'a@example.com' } });
    expect(await read('accounts', 'undone')).not.toHaveProperty('note');
    const made = await save('channels-new?type=openai', { ...typed, id: 'made' });
    expect(made).toContain('href="channels/made"');
    await undo(made);
    expect(await read('channels', 'made')).toBeUndefined();
  });

  it('Undo is rejected once somebody changed the row, at the form and at its confirmation', async () => {
    await put(rig.client, 'accounts', [{ account: 'raced', rpm: 5 }]);
    const page = await save('customers/raced/edit', { rpm: '6' });
    const asked = await visitor.post(undoIn(page), { form_token: tokenIn(page) });
    await put(rig.client, 'accounts', [{ account: 'raced', rpm: 6, note: 'theirs' }]);
    const confirm = new URL(asked.headers.get('location') ?? '', visitor.base).href.slice(
      visitor.base.length,
    );
    for (const words of [
      await visitor.follow(await visitor.post(confirm, { form_token: tokenIn(page) })),
      await undo(page),
    ])
      expect(words).toContain('accounts raced has changed since');
    expect(await read('accounts', 'raced')).toMatchObject({ rpm: 6, note: 'theirs' });
  });

  it('no Undo is offered for a change that somebody else overwrote at once', async () => {
    const update = { kind: 'update', table: 'accounts', key: { account: 'swift' } } as const;
    const write = { ...update, attributes: { rpm: 6, note: undefined }, unchanged: { rpm: 5, note: 'old' } };
    await put(rig.client, 'accounts', [{ account: 'swift', rpm: 6, tpm: 9 }]);
    expect(await noteUndo(rig.ports, [write])).toHaveLength(1);
    await put(rig.client, 'accounts', [{ account: 'swift', rpm: 7 }]);
    expect(await noteUndo(rig.ports, [write])).toEqual([]);
  });

  it.each([
    ['leaked', { _leaked: 'now' }],
    ['was closed with its customer', { _closed: 'now' }],
  ])('no Undo of an Undo enables a key that %s in the meantime', async (_, note) => {
    await put(rig.client, 'accounts', [{ account: 'acme' }]);
    await put(rig.client, 'keys', [{ ...key, enabled: false }]);
    const undone = await undo(await save(`keys/${key.hash}/enable`));
    expect(undone).toContain('Change undone.');
    await put(rig.client, 'keys', [{ ...key, enabled: false, ...note }]);
    expect(await undo(undone)).toContain('has changed since');
    expect(await read('keys', key.hash)).toMatchObject({ enabled: false, ...note });
  });

  it.each([
    ['a disabled key', 'keys/HASH/disable', 'Disable'],
    ['a closed customer', 'customers/shut/close', 'Closed shut'],
  ])('no Undo enables %s again', async (_, path, words) => {
    await put(rig.client, 'accounts', [{ account: 'shut' }]);
    await put(rig.client, 'keys', [{ ...key, account: 'shut' }]);
    const page = await save(path.replace('HASH', key.hash));
    expect(page).toContain(words);
    expect(undoIn(page)).toBe('');
  });

  it('a row that contained a key is not stored for Undo', async () => {
    await put(rig.client, 'channels', [{ ...row, id: 'leaky', secret: 'AIza-typed-key', secrt: 'AIza' }]);
    const page = await save('channels/leaky/edit', {
      ...typed,
      secret: 'env:OPENAI_API_KEY',
      others: 'secrt =',
    });
    expect(page).toContain('Saved 1 row');
    expect(undoIn(page)).toBe('');
  });

  it('Undo of an unknown change, or of another session’s change, writes nothing', async () => {
    const page = await visitor.page('keys/check');
    for (const id of ['none', '0'.repeat(32)])
      expect(await (await visitor.post(`undo/${id}`, { form_token: tokenIn(page) })).text()).toContain(
        'can no longer be undone',
      );
  });
});

it('rotates a key, shows the new one once, and disables it', async () => {
  await put(rig.client, 'accounts', [{ account: 'acme' }]);
  await put(rig.client, 'keys', [key]);
  const done = async (path: string, fields = {}) => {
    const confirm = await visitor.follow(await visitor.send(path, fields));
    const [, at = ''] = /<form method="post" action="(confirm\/\w+)"/.exec(confirm) ?? [];
    const reply = await visitor.post(at, { form_token: tokenIn(confirm) });
    // Repeating the request does not show the key.
    expect((await visitor.post(at, { form_token: tokenIn(confirm) })).status).toBe(404);
    return reply;
  };
  const taken = await (await visitor.send('customers-new', { account: 'acme' })).text();
  expect(taken).toMatch(
    /id="account-error">[^\n]*href="customers\/acme\/keys\/new"[^\n]*"customers\/acme\/grant"/,
  );
  const rotated = await done(`keys/${key.hash}/rotate`, { grace: '24' });
  const result = await visitor.follow(rotated);
  const [, made = ''] = /data-secret>(sk-[\w-]+)</.exec(result) ?? [];
  // A link to another page would lose the key, which is shown once.
  expect(result).toMatch(/class="skip" href="\.\/confirm\/\w+#content"/);
  expect(made).not.toBe('');
  const [, message = ''] = /<pre class="command" data-copy>([^<]*)</.exec(result) ?? [];
  expect(message).toMatch(
    new RegExp(`${made}[^]*${key.hint.replaceAll('.', '\\.')}[^]*\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC`),
  );
  const list = await visitor.page(`keys?text=${made.slice(0, 7)}`);
  const [, path = ''] = /href="(keys\/\w+\/disable)"/.exec(list) ?? [];
  expect(await visitor.follow(await done(path))).toMatch(/Disable sk-[^<]* within 30 s/);
  expect(await visitor.page(`keys?text=${made.slice(0, 7)}`)).toContain('>disabled<');
});

it('the page of a closed customer lists the remaining steps until they are done: pay back the balance, erase the contact', async () => {
  const row = { account: 'leaving', enabled: false, _closed: '2026-11-01T00:00:00Z' };
  const item = (yuan: number) => ({
    ...buildEmptyQuota({ account: 'leaving' }),
    available: { N: String(yuan * 1e9) },
    granted: { N: String(yuan * 1e9) },
  });
  const putItem = (yuan: number) =>
    rig.client.send(new PutItemCommand({ TableName: physicalNameOf('relay', 'quotas'), Item: item(yuan) }));
  await put(rig.client, 'accounts', [{ ...row, contact: { name: 'Eve', email: 'eve@example.com' } }]);
  await putItem(12.5);
  const path = 'customers/leaving/payback';
  const todo = await visitor.page('customers/leaving');
  expect(todo).toMatch(/Eve [^]*mailto:/);
  expect(todo).not.toMatch(/class="button main"/);
  expect(todo).toMatch(new RegExp(`To do[^]*${path}"[^>]*>Pay back ¥12\\.50<[^]*leaving/erase`));
  const form = await visitor.page(path);
  expect(form).toMatch(/value="12\.5"\s+id="field-amount"/);
  for (const amount of ['-5', '12.500000001', '999']) {
    const reply = await visitor.send(path, { amount });
    expect([amount, reply.status]).toEqual([amount, 422]);
    expect(await reply.text()).toContain('id="amount-error"');
  }
  const correction = await visitor.send('customers/leaving/grant', { amount: '-20', id: 'y' });
  expect(await visitor.follow(correction)).toContain('Balance after: −¥7.50');
  expect(
    await visitor.follow(await visitor.send(path, { amount: '12.5', reason: 'paid back', id: 'x' })),
  ).toMatch(/Take ¥12\.50 from leaving[^]*Balance after: ¥0\.00/);
  await put(rig.client, 'accounts', [row]);
  await putItem(0);
  expect(await visitor.page('customers/leaving')).not.toContain('To do');
});

it('offers Undo for a credit: a second grant that names the first, refused if the balance no longer covers it', async () => {
  await put(rig.client, 'accounts', [{ account: 'mistaken' }]);
  const setBalance = (yuan: number) =>
    rig.client.send(
      new PutItemCommand({
        TableName: physicalNameOf('relay', 'quotas'),
        Item: {
          ...buildEmptyQuota({ account: 'mistaken' }),
          available: { N: String(yuan * 1e9) },
          granted: { N: String(yuan * 1e9) },
        },
      }),
    );
  await setBalance(500);
  // The function that applies grants does not run in this test.
  await put(rig.client, 'grants', [
    { account: 'mistaken', grant_id: 'g-1', amount: 500, _applied: '2026-11-01T00:00:00Z' },
  ]);
  const credit = await visitor.follow(
    await visitor.send('customers/mistaken/grant', { amount: '500', id: 'g-1' }),
  );
  const [, confirm = ''] = /action="(confirm\/\w+)"/.exec(credit) ?? [];
  const done = await visitor.follow(await visitor.post(confirm, { form_token: tokenIn(credit) }));
  const [, undo = ''] = /href="(customers\/mistaken\/payback\?[^"]*)"/.exec(done) ?? [];
  const path = undo.replaceAll('&amp;', '&');
  const form = await visitor.page(path);
  const valueOf = (place: string): string =>
    new RegExp(`${place}[^>]*?value="([^"]*)"|value="([^"]*)"[^>]*${place}`).exec(form)?.slice(1).join('') ??
    '';
  const fields = {
    amount: valueOf('id="field-amount"'),
    id: valueOf('name="id"'),
    reason: valueOf('id="field-reason"'),
  };
  expect(fields).toEqual({ amount: '500', id: 'undo-g-1', reason: 'correction of g-1' });
  const shown = await visitor.follow(await visitor.send('customers/mistaken/payback', fields));
  expect(shown).toMatch(/Take ¥500\.00 from mistaken[^]*undo-g-1[^]*Balance after: ¥0\.00/);
  await setBalance(499);
  const refused = await visitor.send('customers/mistaken/payback', fields);
  expect([refused.status, (await refused.text()).includes('amount-error')]).toEqual([422, true]);
  // A second tab: the amount is right, but the credit is already undone.
  await put(rig.client, 'grants', [{ account: 'mistaken', grant_id: 'undo-g-1', amount: -500 }]);
  const repeated = await visitor.send('customers/mistaken/payback', fields);
  expect([repeated.status, (await repeated.text()).includes('amount-error')]).toEqual([422, false]);
});

it('rejects an invalid time of a leak before the key is replaced, so that no new key is lost', async () => {
  await put(rig.client, 'keys', [key]);
  for (const since of ['1e400', '99999w', 'tomorrow', '25:00', '']) {
    const reply = await visitor.send(`keys/${key.hash}/leaked`, { since, successor: 'yes' });
    expect([since, reply.status]).toEqual([since, 422]);
    expect(await reply.text()).toMatch(/id="since-error">enter a time such as/);
  }
});

it.each(['1e400', 'Infinity', '0x1F', '1,5', '１'])(
  'rejects %j in a number field of an account and of a price',
  async (text) => {
    await put(rig.client, 'accounts', [{ account: 'numbers' }]);
    const rule = { id: '9', type: 'token-billing', models: 'm', input: text, output: '1' };
    const replies = [
      [await visitor.send('customers/numbers/edit', { enabled: 'yes', rpm: text }), 'id="rpm-error"'],
      [await visitor.send('charges-new', rule), 'id="input-error"'],
    ] as const;
    for (const [reply, error] of replies)
      expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining(error)]);
  },
);

it.each([
  ['acme', 'acme'],
  ['Acme Inc', "'Acme Inc'"],
  ["O'Hara; $(id)", String.raw`'O'\''Hara; $(id)'`],
])('shows commands to copy for the customer %j that run nothing else', async (name, word) => {
  const Item = buildEmptyQuota({ account: name });
  await rig.client.send(new PutItemCommand({ TableName: physicalNameOf('relay', 'quotas'), Item }));
  await put(rig.client, 'accounts', [{ account: name }]);
  const page = await visitor.page(`statements?${new URLSearchParams({ account: name }).toString()}`);
  const [, shown = ''] = /<code data-command>([^<]*)/.exec(page) ?? [];
  const text = shown.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  expect(text).toContain(`npx --no relay-ops statement ${word} --month `);
});
