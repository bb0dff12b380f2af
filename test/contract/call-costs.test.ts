/** The DynamoDB cost of a call as the store itself counts it: commands and capacity units, including indexes. */
import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tablesOn } from '../support/sdk-tables.ts';
import { createLedgerStore } from '../../shared/adapters/dynamodb/ledger-store.ts';
import {
  buildShardKey,
  buildShardName,
  decodeQuota,
} from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { createKeyCounters } from '../../shared/adapters/dynamodb/key-budgets.ts';
import type { CloseRecord, OpenEntry } from '../../shared/billing/quota-item.ts';
import { formatPrice } from '../../shared/billing/price.ts';
import type { ReserveNeed } from '../../shared/billing/reservation.ts';
import { createLedgerProjector } from '../../shared/relay/jobs/ledger-projector.ts';
import { refuse } from '../../shared/relay/http/refusal.ts';
import type { Budget, ReservationRequest } from '../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../shared/relay/money/reservations.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { callUnits } from '../support/call-units.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { meteredClient, type MeteredCommand } from '../support/metered-client.ts';
import { freePrice, slot, tokenPrice } from '../support/reservations-rig.ts';
import { attributesOf } from './quota-store-dynamo.ts';
import { entryOf, itemOf } from './quota-store-rig.ts';

let emulator: Emulator;
let metered: ReturnType<typeof meteredClient>;
let unmetered: ReturnType<typeof emulatorClient>;
beforeAll(async () => {
  emulator = await startEmulator();
  metered = meteredClient(emulator.endpoint);
  unmetered = emulatorClient(emulator.endpoint);
});
afterAll(async () => {
  metered.client.destroy();
  unmetered.destroy();
  await emulator.stop();
});

const nowMs = Date.parse('2026-11-21T09:43:00Z');
const clock = { now: () => nowMs, sleep: async () => undefined };
const random = { next: () => 0.5 };
const log = {
  request: () => {},
  event: () => {},
  fault: (_id: string, error: unknown) => expect.fail(String(error)),
};
const idOf = (call: string): string => timeText(nowMs) + call.padStart(16, '0');
const key = '0123456789ab';

const estimate = {
  inputTokens: 1_000,
  inputTokensMax: 2_000,
  n: 1,
  outputTokensMax: 16_384,
  outputTokensLeast: 1_024,
  reservesFully: false,
};

interface Kind {
  need?: Partial<ReserveNeed>;
  request?: Partial<Omit<ReservationRequest, 'budgets'>>;
  budget?: Budget;
  entry?: Partial<OpenEntry>;
  charge?: bigint;
}

const budget: Kind['budget'] = {
  period: 'day',
  counter: { key, period: '2026-11-21', expires: 1_795_000_000 },
  most: 10n ** 12n,
  resetsAtMs: 0,
};
const kinds = {
  plain: {},
  'of a key with max_concurrency': { need: { maxConcurrency: 4 } },
  'of a key with rpm': { request: { rpm: 60 } },
  'of a key with a budget': { budget },
  'of an account with every limit': { need: { accountRpm: 60, accountTpm: 100_000, accountConcurrency: 8 } },
  'of a plan': { need: { slots: [slot('chat', 100)] }, charge: 0n },
  'of an unlimited plan': { need: { slots: [slot('chat', null)] }, charge: 0n },
  free: { need: { price: freePrice, reservesNothing: true }, charge: 0n },
  'of a metered account': { need: { metered: true } },
  'of a metered account, of a key with a budget': { need: { metered: true }, budget },
  official: { need: { reservesNothing: true }, entry: { official: true }, charge: 0n },
} satisfies Record<string, Kind> as { plain: Kind } & Record<string, Kind>;

/** Running calls of the account, as the store holds them. */
const others = (count: number): [string, OpenEntry][] =>
  Array.from({ length: count }, (_, at) => [
    idOf(`other${at}`),
    entryOf({
      amount: 10_384_000_000n,
      input: 1_000_000n,
      key,
      model: 'gpt-4o-mini',
      price: formatPrice(tokenPrice),
    }),
  ]);

async function putAccount(underWay: number): Promise<void> {
  const money = { available: 10n ** 13n, spent: 10n ** 12n, settled: 12_345 };
  const item = itemOf('acme', { ...money, open: new Map(others(underWay)) });
  await unmetered.send(new PutItemCommand({ TableName: 'relay-quotas', Item: attributesOf(item) }));
}

function requestOf(call: string, { need, request, budget, entry }: Kind): ReservationRequest {
  const whole: ReserveNeed = {
    id: idOf(call),
    price: tokenPrice,
    slots: [],
    estimate,
    key,
    nowMs,
    reservesNothing: false,
    ...need,
  };
  const price = formatPrice(whole.price);
  return {
    account: 'acme',
    deadlineMs: nowMs + 600_000,
    need: whole,
    entry: { input: 1_000_000n, key, model: 'gpt-4o-mini', price, official: false, ...entry },
    createRefusal: async ({ reason }) => refuse('insufficient_quota', reason),
    budgets: budget && [budget],
    ...request,
  };
}

const closeRecordOf = (id: string, charge: bigint): CloseRecord => ({
  id,
  kind: 'settled',
  charge,
  at: nowMs / 1000,
  endpoint: 'chat',
  prompt_tokens: 1_000,
  completion_tokens: 2_000,
  end: 'completed',
  channel: 'openai',
  first_content_ms: 400,
  bought: 2_000_000n,
});

/** Makes one call with the real reservations, and writes the ledger row of its close with the real projector. */
async function costsOf(call: string, kind: Kind) {
  const { client, commands } = metered;
  const documents = DynamoDBDocumentClient.from(client);
  const quotas = createQuotaStore(tablesOn(documents), 'relay');
  const counters = createKeyCounters(tablesOn(documents), 'relay');
  const reservations = new Reservations({ clock, random, log, quotas, counters });
  const ledger = createLedgerStore(tablesOn(client), 'relay');
  const project = createLedgerProjector({ clock, random, log, ledger, metrics: { count: () => {} } });
  const request = requestOf(call, kind);

  commands.length = 0;
  const rateCount = await reservations.admit(request);
  const reservation = await reservations.reserve({ ...request, rateCount });
  const before = commands.splice(0);
  await reservations.close(reservation, closeRecordOf(request.need.id, kind.charge ?? 3_000_000n), false);
  const after = commands.splice(0);
  const { shard: part } = reservation;
  const Key = buildShardKey({ account: 'acme', shard: part });
  const { Item } = await unmetered.send(new GetItemCommand({ TableName: 'relay-quotas', Key }));
  const image = Item && decodeQuota(Item);
  const change = {
    item: buildShardName({ account: 'acme', shard: part }),
    account: 'acme',
    before: reservation.item,
    after: image,
  };
  expect(await project([change])).toEqual([undefined]);
  return { before, after, projected: commands.splice(0) };
}

const update = (table: string): MeteredCommand => ({ name: `UpdateItem ${table}`, units: 1 });
const transact = (table: string, units: number): MeteredCommand => ({
  name: `TransactWriteItems ${table}`,
  units,
});
/** The costs that key counters add. */
const counted = new Map<string, { first: MeteredCommand[]; projected?: MeteredCommand[] }>([
  ['of a key with rpm', { first: [update('runtime')] }],
  [
    'of a metered account, of a key with a budget',
    { first: [update('runtime')], projected: [transact('runtime', callUnits.budget - 1)] },
  ],
  [
    'of a key with a budget',
    { first: [update('runtime')], projected: [transact('runtime', callUnits.budget - 1)] },
  ],
]);
const row = transact('ledger', callUnits.ledger + callUnits.ledgerIndex);

test.each(Object.entries(kinds))(
  'a call %s writes one unit before the upstream request and one after its end, and reads nothing',
  async (name, kind) => {
    await putAccount(0);
    const place = Object.keys(kinds).indexOf(name);
    // The first call of a day also adds the day's sums to their index.
    await costsOf(`first${place}`, kind);
    const { before, after, projected } = await costsOf(`second${place}`, kind);
    const { first = [], projected: freed = [] } = counted.get(name) ?? {};
    expect(before).toEqual([...first, update('quotas')]);
    expect(after).toEqual([update('quotas')]);
    expect(callUnits.quotas).toBe(2);
    // The row and its index; three sums by day, one by hour, one by month and one of health; and the minute, outside the transaction.
    // Transactions cost double.
    expect(projected).toEqual([transact('daily', 12), row, ...freed, update('daily')]);
    expect(12 + row.units + callUnits.minute).toBe(callUnits.loneRow);
  },
);

test('a call still costs one unit per write while seven other calls of the account run', async () => {
  await putAccount(7);
  const { before, after } = await costsOf('busy', kinds.plain);
  expect([...before, ...after]).toEqual([update('quotas'), update('quotas')]);
});

test('in a batch of different accounts, each call writes its row and its account’s sums, and shares the writes of other sums', async () => {
  const calls = 50;
  const { client, commands } = metered;
  const ledger = createLedgerStore(tablesOn(client), 'relay');
  const project = createLedgerProjector({ clock, random, log, ledger, metrics: { count: () => {} } });
  const batch = (name: string) =>
    Array.from({ length: calls }, (_, at) => {
      const account = `many${at}`;
      const id = idOf(`${name}${at}`);
      const money = { granted: 3_000_000n, spent: 3_000_000n };
      const before = itemOf(account, { granted: 3_000_000n, available: 3_000_000n });
      const after = itemOf(account, { ...money, last: closeRecordOf(id, 3_000_000n) });
      const open = new Map([[id, entryOf({ key, model: 'gpt-4o-mini' })]]);
      return { item: account, account, before: { ...before, open }, after };
    });
  await project(batch('first'));
  commands.length = 0;
  expect(new Set(await project(batch('second')))).toEqual(new Set([undefined]));
  const unitsOf = (table: string): number =>
    commands.filter(({ name }) => name.endsWith(` ${table}`)).reduce((sum, { units }) => sum + units, 0);
  expect(unitsOf('ledger')).toBe(calls * (callUnits.ledger + callUnits.ledgerIndex));
  expect(unitsOf('daily') / calls).toBeGreaterThanOrEqual(callUnits.daily);
  expect(unitsOf('daily') / calls).toBeLessThan(callUnits.daily + 0.5);
});
