/** Grants on a real emulator: an operator's rows, their stream and the balances. */
import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type AttributeValue,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord } from 'aws-lambda';
import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { createGrantStore } from '../../../../shared/adapters/dynamodb/grant-store.ts';
import { decodeQuota } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { invocation } from '../../adapters/lambda/url-event.ts';
import {
  createTableStreamHandler,
  readGrantRecord,
} from '../../../../shared/adapters/entry/table-streams.ts';
import type { QuotaItem } from '../../../../shared/billing/quota-item.ts';
import { grantApplier, type GrantApplier } from '../../../../shared/relay/jobs/grant-applier.ts';
import { QuickClock } from '../../../contract/faulty-wire.ts';
import { emulatorClient, emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';
import { recordedLog } from '../../adapters/telemetry/recorded-log.ts';
import { countedMetrics, eventOf, openStream, type TableStream } from './ledger-stream.ts';

/** An operator's input: the digits of a number, or any attribute. */
export type Typed = Record<string, string | AttributeValue>;

const roundsMax = 20;

export class GrantRig implements AsyncDisposable {
  readonly client: DynamoDBClient;
  readonly tables: TableClient;
  readonly clock = new QuickClock();
  readonly #emulator: Emulator;
  readonly #stream: TableStream;
  log = recordedLog();
  metrics = countedMetrics();
  applier: GrantApplier;

  private constructor(emulator: Emulator, stream: TableStream) {
    this.#emulator = emulator;
    this.#stream = stream;
    this.client = emulatorClient(emulator.endpoint);
    this.tables = emulatorTables(emulator.endpoint);
    this.applier = this.applierOn();
  }

  static async open(): Promise<GrantRig> {
    const emulator = await startEmulator();
    return new GrantRig(emulator, await openStream(emulator.endpoint, 'relay-grants'));
  }

  get endpoint(): string {
    return this.#emulator.endpoint;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
    await this.#emulator.stop();
  }

  forget(): void {
    this.log = recordedLog();
    this.metrics = countedMetrics();
    this.applier = this.applierOn();
  }

  applierOn(clock = this.clock): GrantApplier {
    const { log, metrics } = this;
    const grants = createGrantStore(this.tables, 'relay');
    return grantApplier({ clock, random: { next: () => 0.5 }, grants, log, metrics });
  }

  /** Runs the schedule of a day, every 15 minutes of its own clock. */
  async dayOfSchedules(): Promise<void> {
    const clock = new QuickClock();
    const applier = this.applierOn(clock);
    for (let runs = 0; runs < 96; runs += 1) {
      await applier.applyMissed();
      clock.nowMs += 15 * 60 * 1000;
    }
  }

  /** Lists the grants that the schedule finds in the index. */
  async unapplied(): Promise<string[]> {
    const grants = await Array.fromAsync(createGrantStore(this.tables, 'relay').unapplied());
    return grants.map(({ account, grant_id }) => `${account} ${grant_id}`);
  }

  /** Puts a row as an operator does: `amount` as a number, other texts as texts. */
  async put(account: string, grantId: string, typed: Typed): Promise<void> {
    const attributes = Object.entries(typed).map(([name, value]) => [name, attribute(name, value)]);
    const Item = { account: { S: account }, grant_id: { S: grantId }, ...Object.fromEntries(attributes) };
    await this.client.send(new PutItemCommand({ TableName: 'relay-grants', Item }));
  }

  async remove(account: string, grantId: string): Promise<void> {
    const Key = { account: { S: account }, grant_id: { S: grantId } };
    await this.client.send(new DeleteItemCommand({ TableName: 'relay-grants', Key }));
  }

  nextRecords(): Promise<DynamoDBRecord[]> {
    return this.#stream.next();
  }

  deliver(records: DynamoDBRecord[], applier = this.applier): Promise<DynamoDBBatchResponse> {
    const { log, metrics } = this;
    const poisoned = { event: 'grant_poisoned', metric: 'GrantPoisoned' } as const;
    return createTableStreamHandler(readGrantRecord, {
      take: applier.apply,
      poisonReport: poisoned,
      log,
      metrics,
    })(eventOf(records), invocation());
  }

  /** Delivers until the stream is empty, because marks cause new records. Returns the number of records. */
  async run(): Promise<number> {
    let delivered = 0;
    for (let round = 0; round < roundsMax; round += 1) {
      const records = await this.nextRecords();
      if (records.length === 0) return delivered;
      delivered += records.length;
      const { batchItemFailures } = await this.deliver(records);
      if (batchItemFailures.length > 0) throw new Error('a record came back');
    }
    throw new Error('the stream never gets quiet');
  }

  async #read(account: string, grantId: string): Promise<Record<string, AttributeValue> | undefined> {
    const Key = { account: { S: account }, grant_id: { S: grantId } };
    return (await this.client.send(new GetItemCommand({ TableName: 'relay-grants', Key }))).Item;
  }

  warning = async (account: string, grantId: string): Promise<string | undefined> =>
    (await this.#read(account, grantId))?.['_warning']?.S;

  async createAccount(account: string): Promise<void> {
    const Item = { account: { S: account } };
    await this.client.send(new PutItemCommand({ TableName: 'relay-accounts', Item }));
  }

  async marks(account: string, grantId: string): Promise<{ applied?: string; problem?: string }> {
    const Item = await this.#read(account, grantId);
    const [applied, problem] = [Item?.['_applied']?.S, Item?.['_problem']?.S];
    return { ...(applied !== undefined && { applied }), ...(problem !== undefined && { problem }) };
  }

  async quota(account: string): Promise<QuotaItem | undefined> {
    const input = { TableName: 'relay-quotas', Key: { account: { S: account } } };
    const { Item } = await this.client.send(new GetItemCommand(input));
    return Item && decodeQuota(Item);
  }

  /** The account's ledger: `grant#id amount reason`. */
  async ledger(account: string): Promise<string[]> {
    const input = {
      TableName: 'relay-ledger',
      KeyConditionExpression: 'account = :account',
      ExpressionAttributeValues: { ':account': { S: account } },
    };
    const { Items = [] } = await this.client.send(new QueryCommand(input));
    return Items.map(({ id, amount, reason }) => `${id?.S} ${amount?.N} ${reason?.S}`);
  }
}

function attribute(name: string, value: string | AttributeValue): AttributeValue {
  if (typeof value !== 'string') return value;
  return name === 'amount' ? { N: value } : { S: value };
}
