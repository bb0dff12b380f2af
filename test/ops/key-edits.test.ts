import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { carryOutLeakedKey, planLeakedKey } from '../../shared/operate/keys/leaked-key.ts';
import { Failure } from '../../shared/operate/plan.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
});
afterAll(async () => rig.stop());

interface Made {
  key: string;
  hash: string;
  hint: string;
}
const made = async (account: string): Promise<Made> =>
  JSON.parse((await rig.ops(`key new ${account} --json`)).output) as Made;
const rowOf = async (hash: string) => (await rig.row('keys', { hash })) ?? {};

describe('the limits of a key', () => {
  it('are set and removed one by one, and the rest of its row stays', async () => {
    const { hash } = await made('limited');
    await rig.ops(`key set ${hash} rpm=60 max_concurrency=5`);
    await rig.ops(`key set ${hash} budget.amount=2.5 budget.period=day`);
    await rig.ops(`key set ${hash} models=gpt-4o,gpt-4o-mini`);
    expect(await rowOf(hash)).toMatchObject({
      account: 'limited',
      rpm: 60,
      max_concurrency: 5,
      budget: { amount: 2.5, period: 'day' },
      models: ['gpt-4o', 'gpt-4o-mini'],
    });
    const typed = await rig.ops(`key set ${hash} models=gpt-4o,gtp-4o-mini`);
    expect(typed.errors).toContain('no enabled channel serves gpt-4o, gtp-4o-mini');
    const run = await rig.ops(`key set ${hash} rpm=`);
    expect(run.output).toContain('5 concurrent; budget ¥2.50 a day');
    await rig.ops(`key set ${hash} budget=`);
    await rig.ops(`key set ${hash} models=`);
    const row = await rowOf(hash);
    for (const name of ['rpm', 'budget', 'models']) expect(row).not.toHaveProperty(name);
    expect(row['max_concurrency']).toBe(5);
  });

  it.each([
    [['budget.amount=many'], 'budget.amount'],
    [['budget.amount=5', 'budget.period=year'], 'expected "day" or "month"'],
    [['models'], 'write attributes as NAME=VALUE, for example models=a,b'],
    [['store=perhaps'], 'store: found "perhaps"'],
    [['hash=0'], 'hash'],
    [['rpm=0'], 'rpm: found 0'],
  ])('%j is rejected', async (attributes, message) => {
    const { hash } = await made('refused');
    const run = await rig.ops(['key', 'set', hash, ...attributes]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
  });
});

it('an attribute can change neither the row nor the owner that the command names', async () => {
  const { hash } = await made('owner');
  await made('other');
  for (const words of [
    'key new owner account=other',
    `key new owner hash=${'a'.repeat(64)}`,
    `key set ${hash} hash=${'b'.repeat(64)}`,
    'customer set owner account=other',
    'customer new fresh account=elsewhere --grant 3',
    'plan new 1 level=2',
  ]) {
    const run = await rig.ops(`${words} --yes`);
    expect([words, run.code, run.errors]).toEqual([
      words,
      2,
      expect.stringContaining("can't be changed: it identifies the row"),
    ]);
  }
  for (const account of ['fresh', 'elsewhere'])
    expect(await rig.row('accounts', { account })).toBeUndefined();
  const keys = JSON.parse((await rig.ops('key list --account other --json')).output) as unknown[];
  expect(keys).toHaveLength(1);
});

it('a key can only be moved to an existing account', async () => {
  const { hash, key } = await made('seller');
  await rig.put('accounts', { account: 'buyer' });
  expect((await rig.ops(`key set ${hash} account=nobody --yes`)).errors).toContain(
    'no customer nobody: create it with `customer new` or `key new`, or use `grant new --new`',
  );
  expect((await rig.ops(`key set ${hash} account=buyer`)).code).toBe(2);
  expect((await rig.ops(`key set ${hash} account=buyer --yes`)).code).toBe(0);
  expect((await rig.ops('key check', key)).output).toContain('of account buyer');
});

it('a disabled key works again once it is enabled, but not one that leaked', async () => {
  const { hash, key } = await made('again');
  await rig.ops(`key off ${hash} --yes`);
  await rig.ops(`key on ${hash}`);
  expect((await rig.ops('key check', key)).code).toBe(0);
  await rig.ops(`key leaked ${hash} --no-successor --yes`);
  const run = await rig.ops(`key on ${hash}`);
  expect({ code: run.code, errors: run.errors }).toMatchObject({
    code: 2,
    errors: expect.stringContaining('because it leaked') as string,
  });
});

describe('a key that can create keys', () => {
  it('has that right only while `manage` is set', async () => {
    const { hash } = await made('maker');
    expect((await rig.ops(`key set ${hash} manage=yes`)).output).toContain('every model; can create keys');
    expect(await rowOf(hash)).toMatchObject({ manage: true });
    await rig.ops(`key set ${hash} manage=`);
    expect(await rowOf(hash)).not.toHaveProperty('manage');
    const run = await rig.ops('key new maker manage=yes --json');
    expect(await rowOf((JSON.parse(run.output) as Made).hash)).toMatchObject({ manage: true });
  });

  it('is disabled or reported as leaked with a list of the keys that it created and that stay usable', async () => {
    const { hash } = await made('maker-2');
    const [one, off, others] = [await made('maker-2'), await made('maker-2'), await made('maker-2')];
    await rig.put('keys', { ...(await rowOf(one.hash)), made_by: hash });
    await rig.put('keys', { ...(await rowOf(off.hash)), made_by: hash, enabled: false });
    await rig.put('keys', { ...(await rowOf(others.hash)), made_by: 'f'.repeat(64) });
    const about = `this key created other keys, which keep working until you disable each: ${String((await rowOf(one.hash))['hint'])} (hash ${one.hash.slice(0, 12)})`;
    for (const command of ['off', 'leaked']) {
      const { errors } = await rig.ops(`key ${command} ${hash}`);
      expect(errors).toContain(about);
      expect(errors).not.toContain(off.hash.slice(0, 12));
      expect(errors).not.toContain(others.hash.slice(0, 12));
    }
  });

  it("keeps the right when an operator rotates it, and a rotated key of a customer becomes the operator's", async () => {
    const { hash } = await made('maker-3');
    await rig.put('keys', { ...(await rowOf(hash)), manage: true, made_by: 'f'.repeat(64) });
    const next = JSON.parse((await rig.ops(`key rotate ${hash} --yes --json`)).output) as Made;
    const row = await rowOf(next.hash);
    expect(row).toMatchObject({ manage: true });
    expect(row).not.toHaveProperty('made_by');
  });
});

it("a rotated key works for the given number of days, which the customer's message states", async () => {
  const { hash, hint } = await made('rotated');
  const { output } = await rig.ops(`key rotate ${hash} --grace 7d --yes`);
  expect(output).toMatch(/^ {2}.*sk-[\w-]{40,}$/m);
  expect(
    output
      .split('\n')
      .filter((line) => line.startsWith('  '))
      .join(''),
  ).toContain(hint);
  const end = Date.parse(String((await rowOf(hash))['expires_at']));
  expect(Math.round((end - Date.now()) / 86_400_000)).toBe(7);
});

const keysOf = async (account: string): Promise<unknown[]> =>
  JSON.parse((await rig.ops(`key list --account ${account} --json`)).output) as unknown[];

it.each([undefined, '2099-01-01T00:00:00Z'])(
  'the successor of a rotated key gets its original expiry %s, not the end of its grace period',
  async (expiry) => {
    const { hash } = await made('again-1');
    await rig.put('keys', { ...(await rowOf(hash)), ...(expiry && { expires_at: expiry }) });
    const next = async (words: string) =>
      rowOf((JSON.parse((await rig.ops(`key ${words} --yes --json`)).output) as Made).hash);
    const first = await next(`rotate ${hash}`);
    // The first successor is also rotated, so its row has a grace period.
    await next(`rotate ${String(first['hash'])}`);
    for (const words of [`rotate ${hash}`, `leaked ${hash}`])
      expect((await next(words))['expires_at']).toBe(expiry);
  },
);

it('a second rotation names the key that already replaces the first', async () => {
  const { hash } = await made('again-2');
  const first = JSON.parse((await rig.ops(`key rotate ${hash} --yes --json`)).output) as Made;
  const run = await rig.ops(`key rotate ${hash}`);
  expect(run).toMatchObject({
    code: 2,
    errors: expect.stringContaining(`key off ${first.hash.slice(0, 12)}`) as string,
  });
});

describe('key leaked', () => {
  it('disables the key, creates one with the same rights, and shows its usage and what to refund', async () => {
    const { hash, key } = await made('victim');
    await rig.ops(`key set ${hash} rpm=9`);
    await rig.grant('victim', '50');
    const call = async (iso: string, tail: string, of: string) =>
      rig.call('victim', idAt(iso, tail), { charge: yuan('1.5') }, { key: of.slice(0, 12) });
    await call('2026-11-10T09:59:00Z', 'before', hash);
    await call('2026-11-10T10:05:00Z', 'a', hash);
    await call('2026-11-10T10:55:00Z', 'b', hash);
    await call('2026-11-10T11:05:00Z', 'c', hash);
    await call('2026-11-10T11:06:00Z', 'other', 'f'.repeat(64));
    const words = `key leaked ${hash} --since 2026-11-10T10:00:00Z`;
    expect((await rig.ops(words)).code).toBe(2);
    expect((await rig.ops('key check', key)).code).toBe(0);

    const run = await rig.ops(`${words} --yes --json`);
    expect(run.code).toBe(0);
    const answer = JSON.parse(run.output) as Record<string, unknown> & { hash: string };
    expect(answer).toMatchObject({
      sum: { calls: 3, charged: '4.5' },
      hours: [
        { hour: '2026-11-10T10:00:00Z', model: 'gpt-4o', calls: 2, charged: '3' },
        { hour: '2026-11-10T11:00:00Z', model: 'gpt-4o', calls: 1, charged: '1.5' },
      ],
      refund: `grant new victim 4.5 --id leaked-${hash.slice(0, 12)} --reason "calls of a leaked key"`,
    });
    expect(answer['message']).toContain(String(answer['key']));
    expect((await rig.ops('key check', key)).errors).toContain('disabled');
    expect((await rig.ops('key check', String(answer['key']))).code).toBe(0);
    expect(await rowOf(answer.hash)).toMatchObject({ rpm: 9, _replaces: hash });
  });

  it('repeated, reports the earlier result, and creates no second successor', async () => {
    const { hash } = await made('twice');
    await rig.grant('twice', '50');
    const at = new Date(Date.now() - 3_600_000).toISOString();
    await rig.call('twice', idAt(at, 'a'), { charge: yuan('1.5') }, { key: hash.slice(0, 12) });
    const words = `key leaked ${hash} --yes`;
    const first = JSON.parse((await rig.ops(`${words} --json`)).output) as Made & { hint: string };
    const run = await rig.ops(words);
    expect(run.output).toContain('was already disabled as leaked at');
    expect(run.output).toContain(`Its replacement is ${first.hint}`);
    expect(run.output).toContain('Total: 1 call, ¥1.50');
    expect(run.output).toContain('grant new twice 1.5 --id leaked-');
    expect(JSON.parse((await rig.ops(`${words} --json`)).output)).toMatchObject({
      done: false,
      successor: { hash: first.hash, state: 'usable' },
      sum: { calls: 1 },
    });
    expect(await keysOf('twice')).toHaveLength(2);
  });

  it('shows the successor even if the ledger cannot be read, and offers no refund twice', async () => {
    const { hash } = await made('unread');
    await rig.grant('unread', '50');
    const ports = await rig.ports();
    const plan = await planLeakedKey(ports, { written: hash, sinceMs: Date.parse('2026-11-10T00:00:00Z') });
    const unread = (error: Error) => ({
      ...ports,
      ledger: {
        ...ports.ledger,
        ledger(): never {
          throw error;
        },
      },
    });
    const seen: string[] = [];
    const answer = await carryOutLeakedKey(unread(new Failure('throttled')), plan, ({ secretKey }) =>
      seen.push(secretKey),
    );
    expect(answer).toMatchObject({ problem: 'throttled', successor: { secretKey: seen[0] } });
    const of = await planLeakedKey(ports, { written: (await made('unread')).hash });
    expect(await carryOutLeakedKey(unread(new TypeError('no such thing')), of)).toMatchObject({
      problem: 'unexpected error',
      successor: { secretKey: expect.stringMatching(/^sk-/) as string },
    });
    const id = idAt('2026-11-10T10:00:00Z', 'r');
    await rig.call('unread', id, { charge: yuan('1.5') }, { key: hash.slice(0, 12) });
    await rig.ops(`request refund ${id} --amount 0.5 --reason slow --wait 0 --yes`);
    const words = `key leaked ${hash} --since 2026-11-10 --json`;
    expect(JSON.parse((await rig.ops(words)).output)).toMatchObject({
      refunded: '0.5',
      refund: expect.stringContaining('grant new unread 1 --id leaked-') as string,
    });
  });

  it('by two operators at once creates one successor', async () => {
    const { hash } = await made('both');
    const ports = await rig.ports();
    const plans = [
      await planLeakedKey(ports, { written: hash }),
      await planLeakedKey(ports, { written: hash }),
    ];
    const ended = await Promise.allSettled(plans.map((plan) => carryOutLeakedKey(ports, plan)));
    expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await keysOf('both')).toHaveLength(2);
  });

  it('creates a successor for a key that was already disabled', async () => {
    const { hash } = await made('late');
    await rig.ops(`key off ${hash} --yes`);
    const run = await rig.ops(`key leaked ${hash} --yes --json`);
    expect((await rig.ops('key check', (JSON.parse(run.output) as Made).key)).code).toBe(0);
  });
});
