import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAutoTopUpStore } from '../../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { createNoticeStore } from '../../shared/adapters/dynamodb/alerts/alert-store.ts';
import { createAutoTopUp, startTopUp, turnOff, changeTopUp } from '../../shared/billing/auto-top-up.ts';
import type { AutoTopUpStore } from '../../shared/relay/ports/alerts.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryAutoTopUps } from '../support/memory-auto-top-ups.ts';
import { tablesOn } from '../support/sdk-tables.ts';

let emulator: Emulator;
beforeAll(async () => {
  emulator = await startEmulator('relay', { streams: false });
});
afterAll(() => emulator.stop());

const terms = { below: 2_000, amount: 5_000, monthly: 20_000 };
const wanted = changeTopUp(createAutoTopUp('acme'), { wanted: { ...terms, nonce: 'a'.repeat(16) } });
const notice = { id: 'n1', type: 'auto_top_up.off', created: 1, account: 'acme', data: {} } as const;

describe.each<[string, () => AutoTopUpStore]>([
  ['in memory', () => new MemoryAutoTopUps()],
  ['on DynamoDB', () => createAutoTopUpStore(tablesOn(emulatorClient(emulator.endpoint)), 'relay')],
])('automatic top-ups %s', (_, open) => {
  it('are read as written, and only one of several concurrent writers creates a version', async () => {
    const store = open();
    expect(await store.find('acme')).toBeUndefined();
    expect(await store.write(wanted)).toBe(true);
    expect(await store.find('acme')).toMatchObject(JSON.parse(JSON.stringify(wanted)) as object);
    const on = {
      ...wanted,
      version: 2,
      terms,
      card: { customer: 'cus_1', method: 'pm_1' },
      wanted: undefined,
    };
    expect(await store.write(on)).toBe(true);
    expect(await store.write(on)).toBe(false);
    const pending = startTopUp(on, { month: '2026-11', form: 'amount=1', nowMs: 5 });
    const writers = Array.from({ length: 8 }, () => store.write(pending).catch(() => false));
    expect((await Promise.all(writers)).filter(Boolean)).toHaveLength(1);
    expect(await store.listActive(['acme', 'beta'])).toEqual(['acme']);
    expect(await store.isCredited('acme', 'pi_1')).toBe(false);
    expect(await store.write({ ...turnOff(pending, 'declined'), told: true }, notice)).toBe(true);
    expect(await store.find('acme')).not.toHaveProperty('card');
    expect(await store.listActive(['acme'])).toEqual([]);
    const changed = await store.change('acme', (auto) => auto && turnOff(auto));
    expect(changed?.version).toBe(5);
  });

  it('apply each of thirty concurrent changes once', async () => {
    const store = open();
    const change = () =>
      store.change('crowd', (auto = createAutoTopUp('crowd')) =>
        changeTopUp(auto, { charged: auto.charged + 1 }),
      );
    await Promise.all(Array.from({ length: 30 }, change));
    expect(await store.find('crowd')).toMatchObject({ charged: 30, version: 30 });
  });
});

it('automatic top-ups store their notice in the same write, and find credited grants in the ledger', async () => {
  const client = emulatorClient(emulator.endpoint);
  expect(await createNoticeStore(tablesOn(client), 'relay').find('n1')).toMatchObject({ notice });
  const Item = { account: { S: 'acme' }, id: { S: 'grant#pi_1' } };
  await client.send(new PutItemCommand({ TableName: 'relay-ledger', Item }));
  const store = createAutoTopUpStore(tablesOn(client), 'relay');
  expect(await store.isCredited('acme', 'pi_1')).toBe(true);
});
