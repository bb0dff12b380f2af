import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { keyHash } from '../../../../shared/wire/ids.ts';
import { lostReply, ManagedRig, type Json, type ManagedAnswer } from './managed-rig.ts';

let rig: ManagedRig;
beforeAll(async () => {
  rig = await ManagedRig.start();
});
afterAll(async () => rig.stop());
beforeEach(() => {
  rig.beforeWrite = async () => {};
  rig.afterWrite = () => {};
  rig.nowMs = Date.now();
});

const said = ({ status, body: { error } }: ManagedAnswer): unknown[] => [
  status,
  ...(error ? [error['code'], error['param']] : []),
];
const secondsAhead = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;
const madeOf = async (account: string): Promise<Json[]> =>
  (await rig.rows()).filter((row) => row['account'] === account && row['made_by'] !== undefined);

describe('a key with the right to manage', () => {
  it('creates a working key, shows its secret once, and lists it beside itself', async () => {
    const { key, account } = await rig.maker({ rpm: 60, models: ['a', 'b'] });
    const expires_at = secondsAhead(3600);
    const made = await rig.create(key, {
      name: ' shop ',
      models: ['a'],
      budget: { amount: 2.5, period: 'day' },
      rpm: 5,
      max_concurrency: 2,
      expires_at,
      store: false,
    });
    expect([made.status, made.headers['cache-control']]).toEqual([201, 'no-store']);
    const { key: secretKey, ...shown } = made.body;
    expect(String(secretKey)).toMatch(/^sk-[\w-]{48}$/);
    const hash = keyHash(String(secretKey));
    expect(shown).toEqual({
      id: hash.slice(0, 16),
      hint: expect.stringMatching(/^sk-.{4}\.\.\..{4}$/) as string,
      name: 'shop',
      models: ['a'],
      budget: { amount: 2.5, period: 'day' },
      rpm: 5,
      max_concurrency: 2,
      expires_at,
      store: false,
      state: 'usable',
      made_by: 'customer',
      created_at: expect.any(Number) as number,
      self: false,
    });
    const row = await rig.row(hash);
    expect(row).toMatchObject({ account, made_by: keyHash(key), enabled: true, _by: 'key sk-ma...er' });
    for (const right of ['manage', 'official']) expect(row).not.toHaveProperty(right);
    const { body } = await rig.list(key);
    expect(body).toMatchObject({
      object: 'list',
      can_manage: true,
      limit: 20,
      top_up: null,
      data: [
        { id: keyHash(key).slice(0, 16), self: true, made_by: 'operator', models: ['a', 'b'], rpm: 60 },
        shown,
      ],
    });
    expect(JSON.stringify([body, rig.events, rig.logged])).not.toContain(String(secretKey));
  });

  it('edits, clears limits and revokes; the row stays, disabled', async () => {
    const { key } = await rig.maker();
    const { id, key: secretKey } = (await rig.create(key)).body;
    const changed = await rig.edit(key, id, { name: 'till', rpm: 3, store: false });
    expect(changed.body).toMatchObject({ name: 'till', rpm: 3, store: false });
    expect((await rig.edit(key, id, { rpm: null })).body).toMatchObject({ name: 'till', rpm: null });
    expect(await rig.rowOf(String(secretKey))).not.toHaveProperty('rpm');
    expect((await rig.remove(key, id)).body).toEqual({ id, deleted: true });
    expect((await rig.list(key)).body.data).toHaveLength(1);
    expect(await rig.rowOf(String(secretKey))).toMatchObject({ enabled: false, name: 'till' });
    for (const answer of [
      await rig.remove(key, id),
      await rig.edit(key, id, { rpm: 1 }),
      await rig.rotate(key, id),
    ])
      expect(said(answer)).toEqual([404, 'key_not_found', null]);
  });

  it('rotates: creates a key with the same limits and sets when the old key expires', async () => {
    const { key } = await rig.maker();
    const old = (await rig.create(key, { name: 'shop', rpm: 7, models: ['a'] })).body;
    const next = await rig.rotate(key, old['id'], { grace_hours: 2 });
    expect(next.status).toBe(201);
    expect(next.body).toMatchObject({
      name: 'shop',
      rpm: 7,
      models: ['a'],
      expires_at: null,
      replaces: old['id'],
    });
    const end = Date.parse(String((await rig.rowOf(String(old['key'])))['expires_at']));
    expect(Math.abs(end - rig.nowMs - 7_200_000)).toBeLessThan(2_000);
    const now = await rig.rotate(key, next.body['id'], { grace_hours: 0 });
    expect(now.status).toBe(201);
    const ids = (await rig.list(key)).body.data.map(({ id }) => id);
    expect(ids).toEqual([keyHash(key).slice(0, 16), expect.anything(), expect.anything()]);
    expect(ids).not.toContain(next.body['id']);
    for (const body of [{ grace_hours: 169 }, { grace_hours: -1 }, { grace_hours: '1' }, { hours: 1 }])
      expect((await rig.rotate(key, now.body['id'], body)).status).toBe(400);
  });
});

describe('a replaced key', () => {
  it('cannot be replaced again, because a second successor would expire with it', async () => {
    const { key } = await rig.maker();
    const old = (await rig.create(key)).body['id'];
    const next = (await rig.rotate(key, old)).body['id'];
    expect(said(await rig.rotate(key, old))).toEqual([400, 'key_not_usable', null]);
    expect((await rig.rotate(key, next)).body).toMatchObject({ expires_at: null, replaces: next });
  });

  it('gets one successor from any number of simultaneous requests', async () => {
    const { key, account } = await rig.maker();
    const { id } = (await rig.create(key)).body;
    const answers = await Promise.all(Array.from({ length: 20 }, async () => rig.rotate(key, id)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 400]));
    expect(await madeOf(account)).toHaveLength(2);
  });
});

describe('a created key never exceeds the key that creates it', () => {
  const own = {
    models: ['a', 'b'],
    budget: { amount: 31, period: 'month' },
    rpm: 10,
    max_concurrency: 4,
    expires_at: '2030-01-01T00:00:00Z',
    store: false,
  };
  const raised: [string, unknown][] = [
    ['models', ['a', 'c']],
    ['budget', { amount: 31.01, period: 'month' }],
    ['budget', { amount: 1.01, period: 'day' }],
    ['rpm', 11],
    ['max_concurrency', 5],
    ['expires_at', Date.parse('2030-01-01T00:00:01Z') / 1000],
    ['store', true],
  ];

  it.each(raised)('rejects %s %j both on creation and on edit', async (field, value) => {
    const { key } = await rig.maker(own);
    expect(said(await rig.create(key, { name: 'x', [field]: value }))).toEqual([
      403,
      'key_exceeds_own',
      field,
    ]);
    const { id } = (await rig.create(key)).body;
    expect(said(await rig.edit(key, id, { [field]: value }))).toEqual([403, 'key_exceeds_own', field]);
  });

  it('inherits a missing or null limit from the creating key', async () => {
    const { key } = await rig.maker(own);
    const as = { models: ['a', 'b'], budget: own.budget, rpm: 10, max_concurrency: 4, store: false };
    const { body } = await rig.create(key, { name: 'x', models: null, expires_at: null });
    expect(body).toMatchObject({ ...as, expires_at: Date.parse(own.expires_at) / 1000 });
    await rig.edit(key, body['id'], { rpm: 1, models: [], budget: { amount: 1, period: 'day' } });
    const back = await rig.edit(key, body['id'], { rpm: null, models: null, budget: null });
    expect(back.body).toMatchObject(as);
  });

  it('compares the amount of a daily budget with that of a monthly one', async () => {
    const { key } = await rig.maker({ budget: { amount: 2, period: 'day' } });
    const make = (amount: number) => rig.create(key, { name: 'x', budget: { amount, period: 'month' } });
    expect([(await make(2)).status, (await make(2.1)).status]).toEqual([201, 403]);
  });

  it('rejects an edit and a rotation after its creator lost a right', async () => {
    const { key } = await rig.maker();
    const { id } = (await rig.create(key, { name: 'x', rpm: 50 })).body;
    await rig.change(key, { rpm: 10 });
    expect(said(await rig.edit(key, id, { name: 'y' }))).toEqual([403, 'key_exceeds_own', 'rpm']);
    expect(said(await rig.rotate(key, id))).toEqual([403, 'key_exceeds_own', 'rpm']);
    expect((await rig.edit(key, id, { rpm: 10 })).status).toBe(200);
  });

  it('rejects changes to a key that an operator gave official billing or the right to manage', async () => {
    const { key } = await rig.maker();
    const { id, key: made } = (await rig.create(key)).body;
    await rig.change(String(made), { official: true });
    expect(said(await rig.edit(key, id, { name: 'y' }))).toEqual([403, 'key_exceeds_own', 'official']);
    expect(said(await rig.rotate(key, id))).toEqual([403, 'key_exceeds_own', 'official']);
    await rig.change(String(made), { official: false, manage: true });
    for (const answer of [
      await rig.edit(key, id, { name: 'y' }),
      await rig.rotate(key, id),
      await rig.remove(key, id),
    ])
      expect(said(answer)).toEqual([403, 'key_not_yours_to_change', null]);
    expect((await rig.list(key)).body.data.map(({ made_by }) => made_by)).toEqual(['operator', 'operator']);
  });
});

describe('a request to manage keys', () => {
  it('is rejected with the missing right when the key may not manage', async () => {
    const { key } = await rig.maker({ manage: false });
    const all = [
      rig.list(key),
      rig.create(key),
      rig.edit(key, 'a'.repeat(16), {}),
      rig.rotate(key, 'a'.repeat(16)),
    ];
    const others = [rig.remove(key, 'a'.repeat(16)), rig.topUp(key, { amount: 10 })];
    for (const answer of await Promise.all([...all, ...others]))
      expect(said(answer)).toEqual([403, 'key_may_not_manage', null]);
  });

  it('is rejected with one message when the key is not usable, even if it was seconds ago', async () => {
    const off = [{ enabled: false }, { expires_at: '2020-01-01' }, { agent: 'other' }, { rpm: 'many' }];
    const makers = await Promise.all(off.map(async (row) => rig.maker(row)));
    const { key: blocked, account } = await rig.maker();
    await rig.put('accounts', { account, enabled: false });
    const answers = await Promise.all(
      [...makers.map(({ key }) => key), blocked, 'sk-nobody'].map(async (key) => rig.create(key)),
    );
    const texts = answers.map(({ status, body }) => [status, body.error['message']]);
    expect(new Set(texts.map((text) => JSON.stringify(text))).size).toBe(1);
    expect(texts[0]).toEqual([401, 'The API key is not valid. Check that it is complete and active.']);
  });

  it('creates nothing if an operator disables or narrows the calling key at the same moment', async () => {
    const { key, account } = await rig.maker();
    rig.beforeWrite = async () => rig.change(key, { enabled: false });
    expect(said(await rig.create(key))).toEqual([401, 'invalid_api_key', null]);
    const other = await rig.maker();
    rig.beforeWrite = async () => rig.change(other.key, { models: ['a'] });
    expect(said(await rig.create(other.key, { name: 'x', models: ['b'] }))).toEqual([
      403,
      'key_exceeds_own',
      'models',
    ]);
    expect([...(await madeOf(account)), ...(await madeOf(other.account))]).toEqual([]);
  });

  it('cannot change the calling key, an operator’s key, or a key of another account', async () => {
    const { key, account } = await rig.maker();
    const other = await rig.maker();
    const foreign = (await rig.create(other.key)).body['id'];
    const ofOperator = keyHash(`sk-operator-${account}`);
    await rig.put('keys', { hash: ofOperator, account, hint: 'op' });
    const before = await rig.rows();
    for (const [id, status] of [
      [keyHash(key).slice(0, 16), 403],
      [ofOperator.slice(0, 16), 404],
      [ofOperator, 404],
      [foreign, 404],
      ['', 404],
      ['..', 404],
      ['%2e%2e', 404],
      ['a'.repeat(5_000), 404],
    ] as const)
      for (const answer of [
        await rig.edit(key, id, { rpm: 1 }),
        await rig.rotate(key, id),
        await rig.remove(key, id),
      ])
        expect([id, id === '' && answer.status === 404 ? status : answer.status]).toEqual([id, status]);
    expect(await rig.rows()).toEqual(before);
    expect((await rig.list(key)).body.data).toHaveLength(1);
  });

  it('cannot change a key that the operator took over or moved', async () => {
    const { key } = await rig.maker();
    const [moved, taken] = [(await rig.create(key)).body, (await rig.create(key)).body];
    await rig.change(String(moved['key']), { account: 'elsewhere' });
    await rig.change(String(taken['key']), { made_by: null });
    for (const { id } of [moved, taken]) expect((await rig.remove(key, id)).status).toBe(404);
    expect((await rig.list(key)).body.data).toHaveLength(1);
  });

  it('is limited to 60 writes a minute', async () => {
    const { key } = await rig.maker();
    for (let i = 0; i < 60; i += 1) await rig.create(key, {});
    const answer = await rig.create(key, {});
    expect(said(answer)).toEqual([429, 'rate_limit_exceeded', null]);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect((await rig.list(key)).status).toBe(200);
  });
});

describe('an invalid request', () => {
  let maker: Awaited<ReturnType<typeof rig.maker>>;
  beforeAll(async () => {
    maker = await rig.maker();
  });

  it.each<[unknown, string, string | null]>([
    ['', 'missing_required_parameter', 'name'],
    ['{', 'invalid_json', null],
    ['[]', 'invalid_json', null],
    ['null', 'invalid_json', null],
    ['['.repeat(8_000), 'invalid_json', null],
    [`{"models":${'['.repeat(7_000)}`, 'invalid_json', null],
    [{ name: 'x', manage: true }, 'unknown_parameter', 'manage'],
    [{ name: 'x', official: true }, 'unknown_parameter', 'official'],
    [{ name: 'x', account: 'other' }, 'unknown_parameter', 'account'],
    [{ name: 'x', enabled: true }, 'unknown_parameter', 'enabled'],
    ['{"name":"x","__proto__":{"manage":true}}', 'unknown_parameter', '__proto__'],
    [{ name: 'x', constructor: 1 }, 'unknown_parameter', 'constructor'],
    [{ name: '' }, 'invalid_value', 'name'],
    [{ name: 'a\u202eb' }, 'invalid_value', 'name'],
    [{ name: 'x'.repeat(101) }, 'invalid_value', 'name'],
    [{ name: 5 }, 'invalid_value', 'name'],
    [{ name: null }, 'missing_required_parameter', 'name'],
    [{ name: 'x', models: 'a' }, 'invalid_value', 'models'],
    [{ name: 'x', models: [''] }, 'invalid_value', 'models'],
    [{ name: 'x', rpm: 0 }, 'invalid_value', 'rpm'],
    [{ name: 'x', rpm: 1e300 }, 'invalid_value', 'rpm'],
    [{ name: 'x', max_concurrency: 1.5 }, 'invalid_value', 'max_concurrency'],
    [{ name: 'x', budget: 5 }, 'invalid_value', 'budget'],
    [{ name: 'x', budget: { amount: 5 } }, 'invalid_value', 'budget'],
    [{ name: 'x', budget: { amount: -1, period: 'day' } }, 'invalid_value', 'budget'],
    [{ name: 'x', budget: { amount: 1e300, period: 'day' } }, 'invalid_value', 'budget'],
    [{ name: 'x', budget: { amount: 1e-12, period: 'day' } }, 'invalid_value', 'budget'],
    ['{"name":"x","budget":{"amount":1e999,"period":"day"}}', 'invalid_value', 'budget'],
    [{ name: 'x', expires_at: '2030-01-01' }, 'invalid_value', 'expires_at'],
    [{ name: 'x', expires_at: 1 }, 'invalid_value', 'expires_at'],
    [{ name: 'x', expires_at: 1e15 }, 'invalid_value', 'expires_at'],
    [{ name: 'x', store: 'perhaps' }, 'invalid_value', 'store'],
  ])('%.80s is rejected with 400, names the field, and creates nothing', async (body, code, param) => {
    expect(said(await rig.create(maker.key, body))).toEqual([400, code, param]);
    expect(await madeOf(maker.account)).toEqual([]);
  });

  it('of more than 16 KB is rejected unread', async () => {
    const { key } = await rig.maker();
    const answer = await rig.create(key, {
      name: 'x',
      models: Array.from({ length: 4_000 }, (_, i) => `model-${i}`),
    });
    expect(said(answer)).toEqual([413, 'request_too_large', null]);
  });
});

describe('simultaneous requests', () => {
  it('create twenty keys when two keys of an account send forty', async () => {
    const { key, account } = await rig.maker();
    const second = `${key}-2`;
    await rig.put('keys', { hash: keyHash(second), hint: 'sk-se...nd', account, manage: true });
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => rig.create(at % 2 === 0 ? key : second)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(await madeOf(account)).toHaveLength(20);
    expect(made).toHaveLength(20);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 409]));
    expect((await rig.list(key)).body.data).toHaveLength(21);
    const [{ body: { id } } = { body: {} as Json }] = made;
    // A rotation with a grace period needs another place; one without takes the place of the old key.
    expect(said(await rig.rotate(second, id))).toEqual([409, 'too_many_keys', null]);
    expect((await rig.rotate(second, id, { grace_hours: 0 })).status).toBe(201);
    expect((await rig.list(key)).body.data).toHaveLength(21);
  });

  it('free the places of deleted, moved and expired keys for new ones', async () => {
    const { key } = await rig.maker();
    const made = [];
    for (let i = 0; i < 20; i += 1) made.push((await rig.create(key)).body);
    expect((await rig.create(key)).status).toBe(409);
    await rig.change(String(made[0]?.['key']), { expires_at: '2026-01-01' });
    await rig.change(String(made[1]?.['key']), { account: 'elsewhere' });
    await rig.change(String(made[2]?.['key']), { enabled: false });
    for (const status of [201, 201, 409]) expect((await rig.create(key)).status).toBe(status);
    // An operator may enable a disabled key again, so it keeps its place until it is deleted.
    expect((await rig.remove(key, made[2]?.['id'])).status).toBe(200);
    expect((await rig.create(key)).status).toBe(201);
  });

  it('an edit is rejected if an operator’s edit comes first, and overwrites nothing', async () => {
    const { key, account } = await rig.maker();
    const { id, key: made } = (await rig.create(key)).body;
    rig.beforeWrite = async () => rig.change(String(made), { models: ['a'] });
    expect(said(await rig.edit(key, id, { rpm: 5 }))).toEqual([409, 'key_changed', null]);
    rig.beforeWrite = async () => rig.change(String(made), { models: ['a', 'b'] });
    expect(said(await rig.rotate(key, id))).toEqual([409, 'key_changed', null]);
    expect(await madeOf(account)).toHaveLength(1);
    rig.beforeWrite = async () => rig.change(String(made), { models: ['a'] });
    expect((await rig.edit(key, id, { rpm: 5 })).status).toBe(409);
    expect(await rig.rowOf(String(made))).toMatchObject({ models: ['a'] });
    expect(await rig.rowOf(String(made))).not.toHaveProperty('rpm');
    // A key can be revoked whatever else was changed.
    let isFirst = true;
    rig.beforeWrite = async () => {
      if (isFirst) await rig.change(String(made), { models: ['b'] });
      isFirst = false;
    };
    expect((await rig.remove(key, id)).status).toBe(200);
    expect(await rig.rowOf(String(made))).toMatchObject({ enabled: false, models: ['b'] });
  });
});

describe('a lost reply of the store', () => {
  const once = (): void => {
    rig.afterWrite = () => {};
    lostReply();
  };

  it('creates no second key: the answer shows the key that was created', async () => {
    const { key, account } = await rig.maker();
    rig.afterWrite = once;
    const made = await rig.create(key);
    expect(made.status).toBe(201);
    expect(await madeOf(account)).toEqual([await rig.rowOf(String(made.body['key']))]);
    rig.afterWrite = once;
    const next = await rig.rotate(key, made.body['id'], { grace_hours: 0 });
    expect(next.body).toMatchObject({ expires_at: null, state: 'usable' });
    expect(await madeOf(account)).toHaveLength(2);
    rig.afterWrite = once;
    expect((await rig.remove(key, next.body['id'])).status).toBe(200);
    expect((await rig.list(key)).body.data).toHaveLength(1);
  });

  it('on every try answers 503 and points to the key list, which holds any key that was created', async () => {
    const { key } = await rig.maker();
    rig.afterWrite = () => {
      rig.nowMs += 10_000;
      lostReply();
    };
    const answer = await rig.create(key);
    expect(said(answer)).toEqual([503, 'unavailable', null]);
    expect(answer.body.error['message']).toContain('List the keys');
    expect((await rig.list(key)).body.data).toHaveLength(2);
  });
});
