import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { TableName } from '../../shared/tables/table-names.ts';
import { tableNames, tableSchemas, type TableSchema } from '../../shared/tables/table-schemas.ts';
import { serveConsole, type ServedConsole } from '../../infra/ops/console/serve.ts';
import { enter, type Visitor } from '../console/console-rig.ts';
import { idAt, LedgerRig, yuan } from './ledger-rig.ts';

/**
 * Puts two invalid rows into each table, one without attributes and one whose attributes all have a wrong type,
 * next to a valid row.
 */
type Row = Record<string, unknown>;

let rig: LedgerRig;
let served: ServedConsole;
let visitor: Visitor;
const faults: unknown[] = [];
const call = idAt('2026-11-11T12:00:00Z');
const hash = 'c'.repeat(64);
const attributes =
  'account agent amount at available batch bought calls charge charged contact created cost enabled endpoint end expires expires_at expired figures from granted grants head hint input items key kind last limit live lines mapper marks model models moved name note open output overdraft paid params part parts period plan price prices priority problem rate redeemed_at redeemed_by reserved reversals revoked_at secret settled spent state status tiers type usage value version weight windows _applied _at _balance _by _closed _created _problem _replaces _sheet_id _unapplied _warning'.split(
    ' ',
  );

const nonsense = Object.fromEntries(attributes.map((name) => [name, { is: ['nonsense'] }]));

/** Keys as functions write them, so that lists by time or account find the rows. */
const foundKeys: Partial<Record<TableName, Row[]>> = {
  grants: [
    { account: 'acme', grant_id: 'bad-1' },
    { account: 'acme', grant_id: 'bad-2' },
  ],
  ledger: ['b', 'c'].map((tail) => ({ account: 'acme', id: idAt('2026-11-11T12:00:00Z', tail) })),
  responses: [{ account: 'acme', id: `resp-${call}` }],
  daily: [
    { id: 'served', period: 'day#2026-11-11#bad-model#healthy-channel' },
    { id: 'account#acme', period: 'day#2026-11-11#bad-model' },
    { id: 'month.0#2026-11', period: 'account#bad-account' },
  ],
};

function badRowsOf(table: TableName): Row[] {
  const { partitionKey, sortKey, indexes = [] }: TableSchema = tableSchemas[table];
  const keys = [91, 92].map((number) =>
    Object.fromEntries(
      [partitionKey, ...(sortKey ? [sortKey] : [])].map(({ name, type }) => [
        name,
        type === 'N' ? number : `bad-${number}`,
      ]),
    ),
  );
  const indexed = indexes.map((each) => [each.partitionKey.name, 'nonsense']);
  return [...keys, ...(foundKeys[table] ?? [])].map((key, at) =>
    at % 2 === 0 ? key : Object.assign({}, nonsense, Object.fromEntries(indexed), key),
  );
}

beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.put('channels', {
    id: 'healthy-channel',
    endpoint: 'https://example.com/v1',
    models: ['gpt-4o'],
    state: true,
  });
  await rig.put('charges', { id: 7, type: 'non-billing', models: ['healthy-model'] });
  await rig.put('plans', { level: 1, price: 30, items: [] });
  await rig.put('settings', { name: 'contact', value: 'healthy@example.com' });
  await rig.put('accounts', { account: 'acme', enabled: false, note: 'healthy-note' });
  await rig.put('keys', { hash, account: 'acme', hint: 'sk-heal...thy', enabled: false });
  await rig.put('codes', { hash, batch: 'healthy-batch', amount: 10 });
  await rig.grant('acme', '10');
  await rig.call('acme', call, { charge: yuan('0.0468'), model: 'gpt-4o', channel: 'healthy-channel' });
  await rig.put('payments', {
    id: 'pi_healthy',
    version: 1,
    state: 'granted',
    at: '2026-11-11T12:00:00Z',
    amount: 1000,
    currency: 'usd',
    account: 'acme',
    reversals: {},
  });
  for (const table of tableNames) await rig.put(table, ...badRowsOf(table));
  const where = { readOnly: true, port: 0, where: 'relay, local tables', name: 'local' };
  served = await serveConsole(await rig.ports(), { ...where, onFault: (error) => faults.push(error) });
  visitor = await enter(served);
});
afterAll(async () => {
  served?.stop();
  await rig.stop();
});

const healthyIn = {
  channels: 'healthy-channel',
  charges: 'healthy-model',
  grants: 'start-acme',
  keys: 'sk-heal...thy',
  ledger: call,
};

describe('an invalid row', () => {
  it.each([
    ['channel list', healthyIn.channels],
    ['charge list', healthyIn.charges],
    ['plan list', '30'],
    ['setting list', 'healthy@example.com'],
    ['key list', healthyIn.keys],
    ['key list --account acme', healthyIn.keys],
    ['customer list', 'acme'],
    ['customer list --sort spent', 'acme'],
    ['customer show acme', '9.9532'],
    ['grant list', healthyIn.grants],
    ['grant list --account acme', healthyIn.grants],
    ['grant batches', 'healthy-batch'],
    ['grant batches healthy-batch', 'healthy-batch'],
    ['payment list', 'pi_healthy'],
    ['ledger list', call],
    ['ledger list --account acme', call],
    ['ledger total --by account,day', '0.0468'],
    ['response total acme', '0'],
    [`request show ${call}`, '0.0468'],
    ['report --month 2026-11', healthyIn.channels],
    ['statement --all --month 2026-11 --wait 0 --marked', '9.9532'],
    ['statement acme --month 2026-11 --wait 0 --marked', '9.9532'],
    ['audit --account acme --wait 0', 'acme'],
    ['check', healthyIn.charges],
    ['customer close acme --dry-run', 'already closed'],
    ['customer erase acme --dry-run', 'pi_healthy'],
  ])('does not hide the others from `%s`', async (words, healthy) => {
    const { output, errors } = await rig.ops(words);
    expect(errors).not.toContain('unexpected error');
    expect(output + errors).toContain(healthy);
  });

  it.each([
    ['', healthyIn.channels],
    ['customers', 'acme'],
    ['customers?order=spent', 'acme'],
    ['customers/acme', healthyIn.grants],
    ['keys', healthyIn.keys],
    ['customers-codes', 'healthy-batch'],
    ['channels', healthyIn.channels],
    ['charges', healthyIn.charges],
    ['settings', 'healthy@example.com'],
    ['ledger?account=acme', call],
    ['statements?account=acme', 'acme'],
    ['margins?month=2026-11', 'gpt-4o'],
    ['margins?by=customer', 'acme'],
    ['audit', healthyIn.charges],
    ['find?q=acme', 'acme'],
  ])('does not hide the others from the page /%s', async (path, healthy) => {
    const reply = await visitor.get(path);
    expect({ status: reply.status, faults }).toEqual({ status: 200, faults: [] });
    expect(await reply.text()).toContain(healthy);
  });

  it('is reported next to the listed payments', async () => {
    expect((await rig.ops('payment list')).errors).toContain('payments bad-91: ');
    expect((await rig.ops('payment list --json')).output).toContain('pi_healthy');
  });
});
