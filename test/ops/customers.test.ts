import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { carryOutNewCustomer, planNewCustomer } from '../../shared/operate/customers/new-customer.ts';
import { listCustomers, listSpending } from '../../shared/operate/customers/customer-list.ts';
import { planEraseAccount } from '../../shared/operate/customers/close-account.ts';
import { carryOutWrites } from '../../shared/operate/rows.ts';
import type { RowWrite } from '../../shared/operate/operator-ports.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
});
afterAll(async () => rig.stop());

const json = async (words: string[]): Promise<Record<string, unknown>> => {
  const run = await rig.ops([...words, '--json']);
  expect(run).toMatchObject({ code: 0 });
  return JSON.parse(run.output) as Record<string, unknown>;
};
const keysOf = async (account: string): Promise<{ state: string; hint: string }[]> =>
  JSON.parse((await rig.ops(`key list --account ${account} --json`)).output) as {
    state: string;
    hint: string;
  }[];

describe('customer new', () => {
  const words = 'customer new acme --grant 50 contact.email=ops@example.com note=invoice --wait 0'.split(' ');

  it('shows its plan and does nothing without confirmation', async () => {
    const run = await rig.ops(words);
    expect(run.code).toBe(2);
    expect(run.output).toMatch(/note: invoice\n +contact\.email: ops@example\.com\n/);
    expect(run.output).toContain('Credit ¥50.00 to acme (grant "first")');
    expect(run.errors).toContain('Create customer acme with ¥50.00? Re-run with --yes');
    expect(await rig.row('accounts', { account: 'acme' })).toBeUndefined();
  });

  it('writes the account, the grant and the key, and prints a message for the customer with the key', async () => {
    const run = await rig.ops([...words, '--yes']);
    expect(run.code).toBe(0);
    const [key = ''] = run.output.match(/sk-[\w-]{48}/) ?? [];
    expect(run.output).toContain('Send this message to ops@example.com');
    expect(run.output).toContain(`API key:  ${key}`);
    // Without a running stack the address of the relay is unknown.
    expect(run.output).toContain('Base URL: (the address of this relay)/v1');
    expect(await rig.row('accounts', { account: 'acme' })).toMatchObject({
      contact: { email: 'ops@example.com' },
      note: 'invoice',
    });
    await rig.applyGrants();
    expect((await rig.item('acme'))?.available).toBe(yuan('50'));
    expect((await rig.ops('key check', key)).code).toBe(0);
  });

  it('accepts every field of an account, and prints notes about them', async () => {
    const fields = 'metered=yes rpm=600 alert_below=5 plan.level=3 plan.until=365d'.split(' ');
    const run = await rig.ops(['customer', 'new', 'fielded', ...fields, '--yes']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toMatch(/rpm: 600\n +alert_below: ¥5\.00\n +metered: yes\n +plan\.level: level 3\n/);
    expect(run.errors).toContain('there is no plan with level 3, so this plan covers nothing');
    expect(await rig.row('accounts', { account: 'fielded' })).toMatchObject({
      metered: true,
      rpm: 600,
      plan: { level: 3, until: expect.stringMatching(/Z$/) as string },
    });
  });

  it('repeated, reports that the customer exists and changes neither its key nor its money', async () => {
    const before = await keysOf('acme');
    const run = await rig.ops([...words, '--yes']);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(
      'customer acme already exists: use `key new acme` for another key, `key rotate` to replace a lost key, or `grant new acme` to top up',
    );
    await rig.applyGrants();
    expect((await rig.item('acme'))?.granted).toBe(yuan('50'));
    expect(await keysOf('acme')).toEqual(before);
  });

  it('prints a link to the customer’s page if the address is known', async () => {
    await rig.put('runtime', { id: 'local-log', base_url: 'http://127.0.0.1:9321/v1' });
    const made = await json('customer new linked --link --yes'.split(' '));
    expect(made['link']).toBe(`http://127.0.0.1:9321/account#${String(made['key'])}`);
    expect(made['message']).toContain(String(made['key']));
  });

  it('is refused after a run that granted another amount, and names that amount', async () => {
    await rig.put('grants', { account: 'regranted', grant_id: 'first', amount: 50 });
    const run = await rig.ops('customer new regranted --grant 60 --yes'.split(' '));
    expect(run.code).toBe(2);
    expect(run.errors).toContain('an earlier run already credited ¥50.00 to');
  });

  it('prints no link to a page that the settings disable', async () => {
    await rig.put('settings', { name: 'account_page', value: false }, { name: 'page', value: false });
    const run = await rig.ops('customer new unpaged --link --yes'.split(' '));
    expect(run.errors).toContain('the setting account_page is false');
    expect(run.output).not.toMatch(/\/account|Models and prices/);
    await rig.put('settings', { name: 'account_page', value: true }, { name: 'page', value: true });
  });

  it('resumes wherever an earlier run stopped, and grants once', async () => {
    await rig.put('accounts', { account: 'broken-1' });
    await rig.put('accounts', { account: 'broken-2' });
    await rig.put('grants', { account: 'broken-2', grant_id: 'first', amount: 50 });
    for (const name of ['broken-1', 'broken-2']) {
      const { key } = await json(['customer', 'new', name, '--grant', '50', '--wait', '0', '--yes']);
      await rig.applyGrants();
      expect((await rig.item(name))?.granted).toBe(yuan('50'));
      expect((await rig.ops('key check', String(key))).code).toBe(0);
    }
  });

  it('reports with the key, also as JSON, that the relay does not apply the grant', async () => {
    const grant = { account: 'untaken', grant_id: 'first', amount: 5, _problem: 'no such plan' };
    await rig.put('grants', grant);
    const made = await json('customer new untaken --grant 5 --yes --wait 0'.split(' '));
    expect(made).toMatchObject({ applied: false, problem: 'the relay rejects it: no such plan' });
    expect((await rig.ops('key check', String(made['key']))).code).toBe(0);
  });

  it('is refused for a disabled account, and a key for it is created with a warning', async () => {
    await rig.put('accounts', { account: 'asleep', enabled: false });
    const run = await rig.ops('customer new asleep --yes');
    expect(run).toMatchObject({ code: 2 });
    expect(run.errors).toContain('customer on asleep');
    const made = await rig.ops('key new asleep');
    expect(made.errors).toContain(
      'customer asleep is disabled: the key is rejected until you run `customer on asleep`',
    );
  });

  it('by two operators at once creates one customer of a name', async () => {
    const ports = await rig.ports();
    const input = { account: 'twice', grant: '5' };
    const plans = [await planNewCustomer(ports, input), await planNewCustomer(ports, input)];
    const made = await Promise.allSettled(plans.map((plan) => carryOutNewCustomer(ports, plan, 0)));
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await rig.applyGrants();
    expect((await rig.item('twice'))?.granted).toBe(yuan('5'));
    expect(await keysOf('twice')).toHaveLength(1);
  });

  it('is refused for an account with calls, or with keys from elsewhere', async () => {
    await rig.grant('busy', '8');
    await rig.call('busy', idAt('2026-11-10T10:00:00Z'), { charge: yuan('1') });
    await rig.ops('key new keyed');
    for (const name of ['busy', 'keyed']) {
      const run = await rig.ops(`customer new ${name} --yes`);
      expect(run.code).toBe(2);
      expect(run.errors).toContain(`customer ${name} already exists: use \`key new ${name}\``);
    }
  });

  it.each([
    [['--grant', '-5'], '--grant: use an amount above 0'],
    [['--grant', 'five'], 'amount: found "five"'],
    [['contact.email=nobody'], 'contact.email: found "nobody"'],
    [['metred=yes'], 'metred: unknown attribute (did you mean metered?'],
    [
      ['contact=ops@example.com'],
      'contact is set by its fields: contact.name=..., contact.email=..., contact.webhook=...',
    ],
    [['plan=1'], 'plan is set by its fields: plan.level=..., plan.since=..., plan.until=...'],
    [['models=gpt-4o'], 'models belong to the key, not to the customer: use --models a,b'],
    [['enabled=false'], 'enabled: a new customer is always enabled'],
    [['plan.since=2026-10-05'], 'plan.since: set plan.level as well'],
  ])('rejects %j before anything is written', async (options, message) => {
    const run = await rig.ops(['customer', 'new', 'wrong', ...options, '--yes']);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
    expect(await rig.row('accounts', { account: 'wrong' })).toBeUndefined();
  });
});

describe('customer list', () => {
  it('shows balance, plan, spending of this month and the last call', async () => {
    await rig.put('accounts', { account: 'spender', plan: { level: 1, since: '2026-11-01' }, note: 'mine' });
    await rig.grant('spender', '10');
    await rig.call('spender', idAt(new Date().toISOString()), { charge: yuan('4') });
    const rows = (await json(['customer', 'list', '--name', 'spend'])) as unknown as object[];
    expect(rows).toMatchObject([
      {
        account: 'spender',
        state: 'on',
        available: '6',
        spent_this_month: '4',
        calls_this_month: 1,
        plan: 1,
        last_call: expect.stringMatching(/Z$/),
        note: 'mine',
      },
    ]);
  });

  it('sorted by spending starts with the highest; sorted by runway, with the balance that runs out first', async () => {
    await rig.put('accounts', { account: 'rich' });
    await rig.grant('rich', '9000');
    await rig.call('rich', idAt(new Date().toISOString(), 'r'), { charge: yuan('5') });
    const first = async (sort: string) =>
      (
        (await json(['customer', 'list', '--sort', sort, '--limit', '1'])) as unknown as { account: string }[]
      )[0];
    expect(await first('spent')).toMatchObject({ account: 'rich', spent_this_month: '5' });
    expect(await first('dry')).toMatchObject({ account: 'spender', days_left: expect.any(Number) });
  });

  it('predicts empty balances also on the first of a month, before any spending', async () => {
    const ports = await rig.ports();
    const year = new Date().getUTCFullYear();
    const first = Date.UTC(year, new Date().getUTCMonth() + 1, 1, 0, 30);
    const clock = { ...ports.clock, now: () => first };
    const { customers } = await listSpending({ ...ports, clock }, { order: 'dry', limit: 1 });
    expect(customers).toMatchObject([{ account: 'spender', daysLeft: expect.any(Number) as number }]);
  });

  it('omits customers from the runway list whose calls were free', async () => {
    await rig.put('accounts', { account: 'free' });
    await rig.grant('free', '1');
    await rig.call('free', idAt(new Date().toISOString(), 'f'), { charge: 0n });
    const { customers, looked } = await listSpending(await rig.ports(), { order: 'dry', limit: 100 });
    expect(customers.map(({ account }) => account)).not.toContain('free');
    expect(looked).toBe(customers.length);
  });

  it('prints the command for the next page', async () => {
    const page = await rig.ops('customer list --limit 2');
    const [, next = ''] = /--after '([^']+)'/.exec(page.errors) ?? [];
    const rest = (await json(['customer', 'list', '--after', next])) as unknown as { account: string }[];
    expect(rest.map(({ account }) => account)).toContain('spender');
    expect(page.output).not.toContain('spender');
  });

  it('continues after a name that looks like a position in the list', async () => {
    const ports = await rig.ports();
    const names = ['+4915112345', '++1', 'last'];
    // The table takes three requests to read.
    const rows: typeof ports.pages.rows = async ({ after }) => {
      const at = after === undefined ? 0 : names.indexOf(after) + 1;
      return { rows: [{ account: names[at] }], next: at < names.length - 1 ? names[at] : undefined };
    };
    const seen: string[] = [];
    for (let after: string | undefined; seen.length < 9;) {
      const page = await listCustomers({ ...ports, pages: { ...ports.pages, rows } }, { after, limit: 1 });
      seen.push(...page.customers.map(({ account }) => account));
      after = page.next;
      if (after === undefined) break;
    }
    expect(seen).toEqual(names);
  });
});

describe('customer off, on, set and close', () => {
  it('disable the keys of the account, enable them again, and keep the rest of its row', async () => {
    const { key } = await json(['customer', 'new', 'off', 'note=old', '--yes']);
    const asked = await rig.ops('customer off off');
    expect(asked).toMatchObject({ code: 2 });
    expect(asked.output).toContain('enabled: allowed -> refused');
    await rig.ops('customer off off --yes');
    expect((await rig.ops('key check', String(key))).errors).toContain('disabled with its customer');
    await rig.ops('customer on off');
    expect((await rig.ops('key check', String(key))).code).toBe(0);
    await rig.ops(['customer', 'set', 'off', 'budgets=[{"by":"tag:a","amount":1,"period":"day"}]', '--yes']);
    expect(await rig.row('accounts', { account: 'off' })).toHaveProperty('budgets');
    expect(await rig.ops('customer set off budgets=[]')).toMatchObject({ code: 0 });
    expect(await rig.row('accounts', { account: 'off' })).not.toHaveProperty('budgets');
    const forged = await rig.ops(['customer', 'set', 'off', 'note=new\nCustomer other', '--dry-run']);
    expect(forged.output).not.toContain('\nCustomer other');
    await rig.ops('customer set off note=new rpm=5');
    expect(await rig.row('accounts', { account: 'off' })).toMatchObject({
      note: 'new',
      rpm: 5,
      enabled: true,
    });
    expect((await rig.ops('customer set off rpm=many')).errors).toContain('rpm: found "many"');
    await rig.ops('customer set off note=');
    expect(await rig.row('accounts', { account: 'off' })).not.toHaveProperty('note');
  });

  it('close disables all keys, keeps every row, and prints the amount to pay back and how to record it', async () => {
    await rig.ops('customer new leaving --grant 12.5 --wait 0 --yes'.split(' '));
    await rig.applyGrants();
    const closed = await json(['customer', 'close', 'leaving', '--yes']);
    expect(closed).toMatchObject({ available: '12.5', keys_disabled: 1 });
    const correction = String((closed['next'] as string[]).at(-1));
    expect(correction).toMatch(/^grant new leaving -12\.5 --id closed-\d{4}-\d\d-\d\d --reason "paid back"$/);
    // Calls accepted before the close took effect everywhere may have changed the balance.
    expect((closed['next'] as string[])[0]).toContain('read the final balance: `customer close leaving`');
    expect((await rig.ops('customer close leaving')).output).toContain(`already closed`);
    expect((await rig.ops('customer close leaving')).output).toContain(correction);
    expect((await keysOf('leaving')).map(({ state }) => state)).toEqual(['disabled']);
    const words = 'grant new leaving -12.5 --id closed --wait 0 --yes'.split(' ');
    expect((await rig.ops(words)).code).toBe(0);
    await rig.applyGrants();
    expect((await rig.item('leaving'))?.available).toBe(0n);
    await rig.ops('grant new leaving -1 --id twice --wait 0 --yes'.split(' '));
    await rig.applyGrants();
    expect((await rig.ops('customer close leaving')).output).toMatch(/already closed[^]*balance: −¥1\.00/);
  });
});

describe('a closed customer', () => {
  const names = [
    'accounts',
    'keys',
    'grants',
    'ledger',
    'quotas',
    'payments',
    'runtime',
    'daily',
    'responses',
  ];
  const tablesWith = async (text: string): Promise<string[]> => {
    const { tables } = await rig.ports();
    const all = await Promise.all(names.map((name) => tables.scan(name as 'accounts')));
    return names.filter((_, at) => JSON.stringify(all[at]).includes(text));
  };
  const close = async (name: string): Promise<void> => {
    await rig.ops(
      `customer new ${name} --grant 5 --wait 0 --yes contact.email=eve@secret.example`.split(' '),
    );
    await rig.applyGrants();
    await rig.ops(`customer set ${name} note=eve@secret.example`);
    await rig.ops(`key new ${name} name=eve@secret.example`);
    await rig.ops(`customer close ${name} --yes`);
  };

  it('is reopened with only those keys that the closing disabled', async () => {
    await rig.ops('customer new opens --wait 0 --yes');
    const { key } = await json(['key', 'new', 'opens']);
    const [lost] = await keysOf('opens');
    await rig.ops(`key off ${lost?.hint} --yes`);
    await rig.ops('customer close opens --yes');
    await rig.ops('customer close opens --yes');
    await rig.ops('customer on opens');
    expect((await keysOf('opens')).map(({ state }) => state).toSorted()).toEqual(['disabled', 'usable']);
    expect((await rig.row('accounts', { account: 'opens' }))?.['_closed']).toBeUndefined();
    expect(typeof key).toBe('string');
  });

  it('can be erased: its contact data is removed everywhere, and the remaining data is listed', async () => {
    await rig.ops('customer new stays --grant 5 --wait 0 --yes contact.email=eve@secret.example'.split(' '));
    const refused = await rig.ops('customer erase stays --yes');
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('close it first') as string });
    await close('stays');
    await close('gone');
    await rig.put('accounts', {
      ...(await rig.row('accounts', { account: 'gone' })),
      mail: 'eve@secret.example',
      _problem: 'mail: found "eve@secret.example"',
    });
    const sheetId = { _sheet_id: 'eve@secret.example', mail: 'eve@secret.example' };
    await rig.put('keys', { hash: 'd'.repeat(64), account: 'gone', enabled: false, ...sheetId });
    // The console submits a form only if its data is unchanged, so the order of attributes must not matter.
    expect((await rig.ops('customer erase gone --dry-run')).output).toContain(
      'Erase contact, mail, note, the names and notes of 2 keys of gone;',
    );
    const erased = await json(['customer', 'erase', 'gone', '--yes']);
    expect((erased['remains'] as string[]).join(' ')).toMatch(/ledger and grants.*expire.*35 days/);
    expect(JSON.stringify(await rig.row('accounts', { account: 'gone' }))).not.toContain('secret.example');
    expect(await tablesWith('eve@secret.example')).toEqual(['accounts', 'keys']);
    await rig.ops('customer erase stays --yes');
    expect(await tablesWith('eve@secret.example')).toEqual([]);
    expect((await rig.item('gone'))?.granted).toBe(5_000_000_000n);
    expect((await rig.ops('customer erase gone --yes')).output).toContain('already erased');
  });

  it('is erased completely by a second run if the first one stopped, but never after it was reopened', async () => {
    await close('broken');
    const ports = await rig.ports();
    const plan = await planEraseAccount(ports, 'broken');
    await ports.tables.write(plan.changes[0] as RowWrite);
    expect((await rig.ops('customer erase broken --yes')).output).toContain(
      'Erase the names and notes of 1 key',
    );
    expect(await tablesWith('eve@secret.example')).toEqual([]);
    await close('opened');
    const late = await planEraseAccount(ports, 'opened');
    await rig.ops('customer on opened');
    await expect(carryOutWrites(ports, late)).rejects.toThrow('nothing was erased');
    expect(await tablesWith('eve@secret.example')).toEqual(['accounts', 'keys']);
  });
});

describe('lists as data', () => {
  it('are complete without a limit, while the text form shows the first rows and their number', async () => {
    const names = Array.from({ length: 60 }, (_, at) => `many-${String(at).padStart(3, '0')}`);
    await rig.put('accounts', ...names.map((account) => ({ account })));
    await rig.put('grants', ...names.map((id) => ({ account: 'many-000', grant_id: id, amount: 1 })));
    for (const list of [
      ['customer', 'list'],
      ['grant', 'list'],
    ]) {
      const isNamed = (line: string): boolean => /many-0[1-5]/.test(line);
      expect(
        ((await json(list)) as unknown as object[]).filter((row) => isNamed(JSON.stringify(row))),
      ).toHaveLength(50);
      expect((await rig.ops([...list, '--csv'])).output.split('\n').filter(isNamed)).toHaveLength(50);
      expect(await json([...list, '--limit', '3'])).toHaveLength(3);
      const shown = await rig.ops(list);
      expect(shown.output.trim().split('\n').length).toBeLessThanOrEqual(52);
      expect(shown.errors).toMatch(/\d+ (?:customers|grants) in total/);
    }
  });
});
