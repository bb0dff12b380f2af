import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { openSession } from '../../infra/ops/session/session.ts';
import { createGrantStore } from '../../shared/adapters/dynamodb/grant-store.ts';
import { wholeGrants } from '../support/whole-table.ts';
import { createLedgerStore } from '../../shared/adapters/dynamodb/ledger-store.ts';
import { buildShardKey, decodeQuota } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import type { TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { parseYuan } from '../../shared/billing/money.ts';
import { planSplit } from '../../shared/billing/shards.ts';
import type { CloseRecord, OpenEntry, QuotaItem } from '../../shared/billing/quota-item.ts';
import type { OperatorPorts } from '../../shared/operate/operator-ports.ts';
import { grantApplier, type GrantApplier } from '../../shared/relay/jobs/grant-applier.ts';
import { createLedgerProjector } from '../../shared/relay/jobs/ledger-projector.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { emulatorTables, startEmulator, type Emulator } from '../support/emulator.ts';
import { runOps, type OpsRun, type Words } from './run-ops.ts';

type Row = Record<string, unknown>;

/** A request id with this time. */
export const idAt = (iso: string, tail = 'a'): string => timeText(Date.parse(iso)) + tail.padStart(16, '0');
export const yuan = (written: string): bigint => parseYuan(written) ?? 0n;

/** Balances on an emulator, written by the relay's own code, and the operators' tool on the same tables. */
export class LedgerRig {
  readonly #emulator: Emulator;
  readonly #tables: TableClient;
  readonly quotas: QuotaStore;
  readonly #keepLedger: ReturnType<typeof createLedgerProjector>;
  readonly #grants: GrantApplier;
  /** When functions write their rows. */
  now = '2026-11-11T12:00:00Z';

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
    const tables = emulatorTables(emulator.endpoint);
    this.#tables = tables;
    this.quotas = createQuotaStore(tables, 'relay');
    const clock = { now: () => Date.parse(this.now), sleep: async () => undefined };
    const ports = {
      metrics: { count: () => undefined },
      log: { request: () => undefined, event: () => undefined, fault: () => undefined },
    };
    const grants = wholeGrants(createGrantStore(tables, 'relay'));
    const random = { next: () => 0.5 };
    const ledger = createLedgerStore(tables, 'relay');
    this.#keepLedger = createLedgerProjector({ ...ports, clock, random, ledger });
    this.#grants = grantApplier({ ...ports, clock, random, grants });
  }

  static async start(emulator?: Emulator): Promise<LedgerRig> {
    return new LedgerRig(emulator ?? (await startEmulator()));
  }

  async stop(): Promise<void> {
    await this.#emulator.stop();
  }

  async ops(words: Words, input?: string, variables: Record<string, string> = {}): Promise<OpsRun> {
    return runOps(words, { ...variables, AWS_ENDPOINT_URL_DYNAMODB: this.#emulator.endpoint }, input);
  }

  /** The ports of operators' actions, on this emulator. */
  async ports(): Promise<OperatorPorts> {
    const target = { stack: 'relay', endpoint: this.#emulator.endpoint, local: true };
    return (await openSession(target, {})).ports;
  }

  async put(table: string, ...rows: Row[]): Promise<void> {
    for (const row of rows) {
      const Item = marshall(row, { removeUndefinedValues: true });
      await this.#tables.call('PutItem', { TableName: `relay-${table}`, Item });
    }
  }

  async row(table: string, Key: Row): Promise<Row | undefined> {
    const { Item } = await this.#tables.call('GetItem', { TableName: `relay-${table}`, Key: marshall(Key) });
    return Item && unmarshall(Item);
  }

  async remove(table: string, Key: Row): Promise<void> {
    await this.#tables.call('DeleteItem', { TableName: `relay-${table}`, Key: marshall(Key) });
  }

  /** Damages one attribute, as an edit by hand would. */
  async damage(table: string, Key: Row, attribute: string, value: unknown): Promise<void> {
    await this.#tables.call('UpdateItem', {
      TableName: `relay-${table}`,
      Key: marshall(Key),
      UpdateExpression: 'SET #attribute = :value',
      ExpressionAttributeNames: { '#attribute': attribute },
      ExpressionAttributeValues: marshall({ ':value': value }),
    });
  }

  async removeDaily(id: string, period: string): Promise<void> {
    const Key = { id: { S: id }, period: { S: period } };
    await this.#tables.call('DeleteItem', { TableName: 'relay-daily', Key });
  }

  /** Applies all grants, as the relay's own function does. */
  async applyGrants(): Promise<void> {
    await this.#grants.applyMissed();
  }

  async grant(account: string, amount: string): Promise<void> {
    await this.put('grants', { account, grant_id: `start-${account}`, amount, reason: 'paid' });
    await this.applyGrants();
  }

  async item(account: string, part = 0): Promise<QuotaItem | undefined> {
    const Key = buildShardKey({ account, shard: part });
    const { Item } = await this.#tables.call('GetItem', { TableName: 'relay-quotas', Key });
    return Item && decodeQuota(Item);
  }

  async split(account: string, parts: number): Promise<void> {
    const write = planSplit(await this.quotas.read(account, 1, true), parts, new Map());
    if (!write || !(await this.quotas.move(write))) throw new Error(`${account} was not split`);
  }

  entry(changes: Partial<OpenEntry> = {}): OpenEntry {
    return {
      until: Math.ceil(Date.now() / 1000) + 600,
      amount: yuan('0.3'),
      input: yuan('0.018'),
      key: '0123456789ab',
      model: 'gpt-4o',
      price: '1:tokens:0.018:0.072',
      slot: '',
      official: false,
      tombstone: false,
      ...changes,
    };
  }

  async reserve(account: string, id: string, changes: Partial<OpenEntry> = {}, part = 0): Promise<OpenEntry> {
    const entry = this.entry(changes);
    const slot =
      entry.slot === '' ? undefined : { key: entry.slot, staleKey: 'none@2000-01-01', limit: null };
    if (!(await this.item(account))) await this.quotas.create(account);
    const reply = await this.quotas.reserve({ account, shard: part, id, entry, slot });
    if (!reply.done) throw new Error(`the reserve of ${id} was refused`);
    return entry;
  }

  /** A complete call: reserve, close, ledger row. */
  async call(
    account: string,
    id: string,
    closeRecord: Partial<CloseRecord> & { charge: bigint },
    changes: Partial<OpenEntry> = {},
    part = 0,
  ): Promise<void> {
    if (part > 0) await this.quotas.create(account, part);
    const entry = await this.reserve(account, id, changes, part);
    const before = await this.item(account, part);
    const whole: CloseRecord = {
      id,
      kind: 'settled',
      at: 1_795_000_000,
      end: 'completed',
      endpoint: 'chat',
      ...closeRecord,
    };
    await this.quotas.close({
      account,
      shard: part,
      id,
      entry,
      releaseSlot: whole.kind === 'released',
      closeRecord: whole,
    });
    await this.#keepLedger([{ item: account, account, before, after: await this.item(account, part) }]);
  }
}
