/** For each of the relay's metrics with an alarm: runs the relay's code that emits it. */
import {
  DeleteItemCommand,
  PutItemCommand,
  type AttributeValue,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBStreamEvent } from 'aws-lambda';
import { tablesOn } from '../support/sdk-tables.ts';
import {
  createBackgroundMetrics,
  createRequestMetrics,
  createJsonLog,
} from '../../shared/adapters/telemetry/log.ts';
import { createPaymentStore } from '../../shared/adapters/dynamodb/payment-store.ts';
import { recordFact } from '../../shared/relay/payments/payments-handle.ts';
import { createConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import { createSweeper } from '../../shared/relay/jobs/sweeper.ts';
import { attributesOf } from '../contract/quota-store-dynamo.ts';
import { entryOf, itemOf } from '../contract/quota-store-rig.ts';
import { BillingRig, yuan } from '../support/billing-rig.ts';
import { CoreRig, delta, demoKey, done, finish, hello, keyRow, usage } from '../support/core-rig.ts';
import { noRegistry, scanOf } from '../support/whole-table.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedClient } from '../unit/adapters/dynamodb/store.ts';
import { invocation } from '../unit/adapters/lambda/url-event.ts';

/** Functions read their environment once, when they are loaded. */
export function setFunctionEnvironment(endpoint: string): void {
  Object.assign(process.env, {
    RELAY_STACK: 'relay',
    RELAY_VERSION: 'test',
    ORIGIN_SECRETS: '',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
  });
}

/** By metric. Each path runs on empty tables of the stack `relay`, through the given client. */
export const metricPaths: Record<string, (client: DynamoDBClient) => Promise<unknown>> = {
  CallFailed: failedRequest,
  FirstContentMs: slowRequest,
  CanarySuccesses: async () => createBackgroundMetrics('relay').countCanaryCall({ ok: true }),
  InternalErrors: bug,
  SettleLost: () => unreachableStore('close'),
  ReserveUnknown: () => unreachableStore('reserve', 'tombstone', 'close'),
  SweepFailed: unclosable,
  OpenReservations: async (client) => {
    const open = new Map([['running', entryOf({ until: Math.floor(Date.now() / 1000) + 600 })]]);
    await put(client, 'quotas', attributesOf(itemOf('acme', { open })));
    return sweep();
  },
  ExpiredReservations: async (client) => {
    const open = new Map([['lost', entryOf({ until: 0 })]]);
    await put(client, 'quotas', attributesOf(itemOf('acme', { open })));
    return sweepAll(client);
  },
  ReservationPoisoned: async (client) => {
    const open = { M: { lost: { S: 'nonsense' } } };
    await put(client, 'quotas', { ...attributesOf(itemOf('acme', {})), open });
    return sweepAll(client);
  },
  ConservationBroken: () => ledger(attributesOf({ ...itemOf('acme', {}), available: 7n })),
  LedgerPoisoned: () => ledger({ ...attributesOf(itemOf('acme', {})), available: { S: 'much' } }),
  GrantPoisoned: async (client) => {
    await put(client, 'quotas', { account: { S: 'acme' }, available: { S: 'much' } });
    const { handler } = await import('../../functions/grants.ts');
    return handler(
      recordOf({ account: { S: 'acme' }, grant_id: { S: 'one' }, amount: { N: '5' } }),
      invocation(),
    );
  },
  AlertUndelivered: async (client) => {
    const notice = { id: 'n1', type: 'balance.low', created: 1, account: 'acme', data: {} };
    await put(client, 'runtime', {
      id: { S: 'notice#n1' },
      notice: { S: JSON.stringify(notice) },
      tries: { N: '99' },
      due: { N: '0' },
      left: { L: [{ S: 'topic' }] },
    });
    await put(client, 'runtime', { id: { S: 'notices' }, n1: { N: '1' } });
    const { handler } = await import('../../functions/notify.ts');
    return handler(scheduled, invocation());
  },
  PaymentParked: async (client) => {
    const fact = {
      kind: 'paid',
      payment: 'pi_1',
      at: '',
      live: true,
      rate: undefined,
      bonus: undefined,
      account: undefined,
    } as const;
    const ports = {
      payments: createPaymentStore(tablesOn(client), 'relay'),
      clock: new VirtualClock(),
      random: { next: () => 0.5 },
      log: functionLog(),
      metrics: createBackgroundMetrics('relay'),
    };
    return recordFact(ports, { ...fact, paid: { minor: 1n, currency: 'usd' }, problem: 'no reference' });
  },
  BadRows: async (client) => {
    await put(client, 'channels', { id: { S: 'bad' }, endpoint: { S: 'nowhere' } });
    return compile();
  },
  ConfigCompileFailed: async (client) => {
    await put(client, 'runtime', { id: { S: 'config' }, version: { S: 'one' } });
    await compile().catch(() => {});
  },
  ConfigFormatUnknown: unknownFormat,
  TurnStateLost: unreadableTurns,
  ResponsesNotStored: unstoredAnswer,
  ImplausibleUsage: () => counted(7, 1e12),
  ChargedAboveReserve: () => counted(40, 140),
};

const scheduled = { 'detail-type': 'Scheduled Event' };

async function sweep(): Promise<unknown> {
  const { handler } = await import('../../functions/sweeper.ts');
  return handler(scheduled, invocation());
}

/** Sweeps as if the table had not been swept for an hour. */
async function sweepAll(client: DynamoDBClient): Promise<unknown> {
  const Key = { id: { S: 'sweep' }, period: { S: 'progress' } };
  await client.send(new DeleteItemCommand({ TableName: 'relay-daily', Key }));
  return sweep();
}

async function compile(): Promise<unknown> {
  const { handler } = await import('../../functions/config.ts');
  return handler(scheduled, invocation());
}

async function ledger(image: Attributes): Promise<unknown> {
  const { handler } = await import('../../functions/ledger.ts');
  return handler(recordOf(image), invocation());
}

type Attributes = Record<string, AttributeValue>;

function recordOf(image: Attributes): DynamoDBStreamEvent {
  const dynamodb = { Keys: { account: { S: 'acme' } }, NewImage: image, SequenceNumber: '1' };
  return { Records: [{ dynamodb }] } as DynamoDBStreamEvent;
}

const put = (client: DynamoDBClient, table: string, Item: Attributes): Promise<unknown> =>
  client.send(new PutItemCommand({ TableName: `relay-${table}`, Item }));

const functionLog = (): Log => createJsonLog('test', createRequestMetrics('relay'));

/** Writes the log of a pipeline in virtual time to the log of functions. */
function relog({ logged, events }: CoreRig): void {
  const log = functionLog();
  for (const entry of logged) log.request(entry);
  for (const { name, fields } of events) log.event(name, fields);
}

/** A charged answer after a failed attempt on another channel. */
export async function answeredRequest(): Promise<void> {
  const channels = [{ id: 'first', priority: 1 }, { id: 'second' }];
  const rig = new BillingRig({ channels }).upstream({ status: 500 }, { steps: hello }).granted(yuan);
  await rig.call();
  relog(rig);
}

async function slowRequest(): Promise<void> {
  const rig = new BillingRig().upstream({ steps: [50, ...hello] }).granted(yuan);
  await rig.call();
  relog(rig);
}

async function failedRequest(): Promise<void> {
  const rig = new BillingRig().upstream({ status: 500 }).granted(yuan);
  await rig.call();
  relog(rig);
}

async function bug(): Promise<void> {
  const rig = new BillingRig();
  await rig.call({}, { json: stumble });
  relog(rig);
}

function stumble(): never {
  throw new TypeError('a bug');
}

async function unreachableStore(...operations: ('reserve' | 'tombstone' | 'close')[]): Promise<void> {
  const rig = new BillingRig().upstream({ steps: hello }).granted(yuan);
  rig.store.always('dropped', ...operations);
  await rig.call();
  relog(rig);
}

async function counted(input: number, output: number): Promise<void> {
  const steps = [delta('a'), finish(), usage(input, output), done];
  const rig = new BillingRig().upstream({ steps }).granted(yuan);
  await rig.call();
  relog(rig);
}

async function unreadableTurns(): Promise<void> {
  const rig = new CoreRig().upstream({ steps: hello });
  rig.turnStates.before = () => Promise.reject(new Error('odd'));
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
  await rig.post({ model: 'm', messages: [{ role: 'assistant', tool_calls: [call] }] });
  relog(rig);
}

async function unstoredAnswer(): Promise<void> {
  const rig = new CoreRig({ keys: { [demoKey]: { row: keyRow({ store: true }) } } }).upstream({
    steps: hello,
  });
  rig.stored.failing = new Error('odd');
  await rig.post({ model: 'm', input: 'hi' }, { path: '/v1/responses' });
  relog(rig);
}

async function unclosable(): Promise<void> {
  const item = itemOf('acme', { open: new Map([['lost', entryOf({ until: 0 })]]) });
  const clock = new VirtualClock();
  const run = createSweeper(
    {
      clock,
      random: { next: () => 0.5 },
      registry: noRegistry,
      scan: scanOf(async () => [item]),
      quotas: { close: () => Promise.reject(new Error('odd')) },
      metrics: { count: () => {} },
      log: functionLog(),
    },
    0,
  );
  await clock.run(run());
}

async function unknownFormat(client: DynamoDBClient): Promise<void> {
  const numbers = { version: 1, format: 999, parts: 1, row_parts: 1, published_at: 1 };
  const attributes = Object.entries(numbers).map(([name, value]) => [name, { N: String(value) }]);
  await put(client, 'runtime', {
    id: { S: 'config' },
    digest: { S: 'x' },
    ...Object.fromEntries(attributes),
  });
  const own = countedClient();
  const clock = new VirtualClock();
  const config = createConfigSource({
    client: tablesOn(own.client),
    clock,
    random: { next: () => 0 },
    log: functionLog(),
    stack: 'relay',
  });
  await config.refresh();
  own.client.destroy();
}
