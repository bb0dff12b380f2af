/**
 * The drill of docs/deploy.md, as far as an emulator without point-in-time recovery allows: tables as of one moment, under
 * the names of a second stack, and the audit's result.
 */
import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DescribeTableCommand,
  paginateScan,
  type AttributeValue,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createGrantStore } from '../../shared/adapters/dynamodb/grant-store.ts';
import { grantApplier } from '../../shared/relay/jobs/grant-applier.ts';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import { emulatorClient } from '../support/emulator.ts';
import { idAt, LedgerRig, yuan } from './ledger-rig.ts';
import { tablesOn } from '../support/sdk-tables.ts';

type TableName = (typeof tableNames)[number];
type Items = Record<string, AttributeValue>[];
/** The rows of all tables at one moment. */
type Moment = Map<TableName, Items>;

const restored = 'relay-back';
const call = { charge: yuan('0.003096'), prompt_tokens: 12, completion_tokens: 40 };

let rig: LedgerRig;
let client: DynamoDBClient;

beforeEach(async () => {
  rig = await LedgerRig.start();
  client = emulatorClient(String((await rig.ports()).target.endpoint));
  await rig.grant('acme', '10');
  await rig.call('acme', idAt('2026-11-10T10:00:00Z'), call);
});
afterEach(async () => {
  client.destroy();
  await rig.stop();
});

async function rowsOf(table: string): Promise<Items> {
  const rows: Items = [];
  for await (const { Items = [] } of paginateScan({ client }, { TableName: table })) rows.push(...Items);
  return rows;
}

async function now(): Promise<Moment> {
  const moment: Moment = new Map();
  for (const name of tableNames) moment.set(name, await rowsOf(`relay-${name}`));
  return moment;
}

/** A restore copies keys, indexes and the rows of the moment, but neither stream nor expiry. */
async function restore(momentOf: (name: TableName) => Moment): Promise<void> {
  for (const name of tableNames) {
    const { Table = {} } = await client.send(new DescribeTableCommand({ TableName: `relay-${name}` }));
    const TableName = `${restored}-${name}`;
    await client.send(
      new CreateTableCommand({
        TableName,
        KeySchema: Table.KeySchema,
        AttributeDefinitions: Table.AttributeDefinitions,
        BillingMode: 'PAY_PER_REQUEST',
        ...(Table.GlobalSecondaryIndexes && {
          GlobalSecondaryIndexes: Table.GlobalSecondaryIndexes.map(
            ({ IndexName, KeySchema, Projection }) => ({
              IndexName,
              KeySchema,
              Projection,
            }),
          ),
        }),
      }),
    );
    await put(TableName, momentOf(name).get(name) ?? []);
  }
}

async function put(table: string, rows: Items): Promise<void> {
  for (let from = 0; from < rows.length; from += 25) {
    const requests = rows.slice(from, from + 25).map((Item) => ({ PutRequest: { Item } }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: requests } }));
  }
}

/** Writes a second grant, some time after the first. */
async function grantLater(): Promise<void> {
  await rig.put('grants', { account: 'acme', grant_id: 'later', amount: '5', reason: 'paid' });
  await rig.applyGrants();
}

const audit = async () => rig.ops(`audit --wait 0 --stack ${restored}`);

/** The function `grants` of the restored stack, in the scheduled runs of a day: each scans its share for rows of other tools. */
async function runGrants(): Promise<void> {
  const quarterMs = 15 * 60_000;
  const begin = Date.parse('2026-11-12T12:00:00Z');
  for (let quarter = 0; quarter < 96; quarter += 1) await runGrantsAt(begin + quarter * quarterMs);
}

async function runGrantsAt(atMs: number): Promise<void> {
  await grantApplier({
    clock: { now: () => atMs, sleep: async () => undefined },
    random: { next: () => 0.5 },
    grants: createGrantStore(tablesOn(client), restored),
    metrics: { count: () => undefined },
    log: { request: () => undefined, event: () => undefined, fault: () => undefined },
  }).applyMissed();
}

async function grantedOf(stack: string): Promise<string | undefined> {
  const [row] = await rowsOf(`${stack}-quotas`);
  return row?.['granted']?.N;
}

/** Rows of grants without the marks of the function `grants`. */
function unmarked(moment: Moment): Moment {
  const grants = (moment.get('grants') ?? []).map(({ _applied: _mark, ...row }) => row);
  return new Map([...moment, ['grants', grants]]);
}

describe('tables restored to one second', () => {
  it('add up under the names of a second stack, while the old one keeps running', async () => {
    const moment = await now();
    await rig.call('acme', idAt('2026-11-10T11:00:00Z'), call);
    await restore(() => moment);
    const run = await audit();
    expect(run.output).toContain('all balances match');
    expect(run.code).toBe(0);
    expect((await rig.ops('audit --wait 0')).output).toContain('1 account and 3 ledger rows');
  });

  it('contain each grant once, also those that were applied but not yet marked at that second', async () => {
    const moment = unmarked(await now());
    await restore(() => moment);
    await runGrants();
    expect(await grantedOf(restored)).toBe(String(yuan('10')));
    expect((await audit()).output).toContain('all balances match');
  });

  it('apply copied later grants, each once', async () => {
    const moment = await now();
    await grantLater();
    await restore(() => moment);
    const later = (await rowsOf('relay-grants')).filter((row) => row['grant_id']?.S === 'later');
    expect(later).toHaveLength(1);
    await put(`${restored}-grants`, unmarked(new Map([['grants', later]])).get('grants') ?? []);
    await runGrants();
    await runGrants();
    expect(await grantedOf(restored)).toBe(String(yuan('15')));
    expect((await audit()).output).toContain('all balances match');
  });
});

describe('tables restored to different seconds', () => {
  it('grant twice if the ledger is older than the balances, and the audit reports it', async () => {
    const before = await now();
    await grantLater();
    const after = unmarked(await now());
    await restore((name) => (name === 'ledger' ? before : after));
    const run = await audit();
    expect(run.code).toBe(1);
    expect(run.output).toContain("granted is 15, but the ledger's grants add up to 10");
    await runGrants();
    expect(await grantedOf(restored)).toBe(String(yuan('20')));
  });

  it('lose charges and grants if the balances are older than the ledger, and the audit reports it', async () => {
    const before = await now();
    await grantLater();
    await rig.call('acme', idAt('2026-11-10T11:00:00Z'), call);
    const after = unmarked(await now());
    await restore((name) => (name === 'quotas' ? before : after));
    await runGrants();
    expect(await grantedOf(restored)).toBe(String(yuan('10')));
    const run = await audit();
    expect(run.code).toBe(1);
    expect(run.output).toContain("granted is 10, but the ledger's grants add up to 15");
    expect(run.output).toContain("but the ledger's charges add up to");
  });
});
