import {
  Table,
  type Attributes,
  type TableClient,
} from '../../../../shared/adapters/dynamodb/table-client.ts';
import { physicalNameOf, type TableName } from '../../../../shared/tables/table-names.ts';
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
import { createAccountReader } from '../../../../shared/adapters/dynamodb/account-reader.ts';
import { createRefusalCounts } from '../../../../shared/adapters/dynamodb/refusal-counts.ts';
import type { RefusalCounts } from '../../../../shared/relay/ports/money-stores.ts';
import { keyHash } from '../../../../shared/wire/ids.ts';
import { createKeyCounters } from '../../../../shared/adapters/dynamodb/key-budgets.ts';
import { createKeyStore } from '../../../../shared/adapters/dynamodb/key-store.ts';
import { defaultSettings, type Settings } from '../../../../shared/config/settings.ts';
import type { PlanRow } from '../../../../shared/config/rows/plan-row.ts';
import { createAccountHandle } from '../../../../shared/relay/account/account-handle.ts';
import type { RelayRequest } from '../../../../shared/relay/http/http.ts';
import type { Clock } from '../../../../shared/relay/ports/host.ts';
import type { BudgetCounter } from '../../../../shared/relay/ports/runtime-stores.ts';
import type { RequestLog } from '../../../../shared/relay/ports/telemetry.ts';
import { expectDocumented } from '../../../openapi/exchange.ts';
import { emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';

export const nowMs = Date.parse('2026-11-21T12:00:00Z');
const clock: Clock = { now: () => nowMs, sleep: async () => undefined };

export interface AccountAnswer {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown> & { error: Record<string, unknown> };
}

/** The account endpoints over the real reader and key store on an emulator. */
export class AccountRig {
  readonly logged: RequestLog[] = [];
  settings: Settings = { ...defaultSettings, subscriptionEnabled: true };
  plans: PlanRow[] = [];
  charges: Snapshot['charges'] = [];
  models: string[] = [];
  readonly refusals: RefusalCounts;
  readonly #emulator: Emulator;
  readonly #tables: TableClient;

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
    this.#tables = emulatorTables(emulator.endpoint);
    this.refusals = createRefusalCounts(this.#tables, 'relay');
  }

  static async start(): Promise<AccountRig> {
    return new AccountRig(await startEmulator());
  }

  async stop(): Promise<void> {
    await this.#emulator.stop();
  }

  async put(table: TableName, row: Record<string, unknown>): Promise<void> {
    await new Table(this.#tables, 'relay', table).put(row);
  }

  async putAttributes(table: TableName, Item: Attributes): Promise<void> {
    await this.#tables.call('PutItem', { TableName: physicalNameOf('relay', table), Item });
  }

  async putKey(key: string, row: Record<string, unknown>): Promise<void> {
    await this.put('keys', { hash: keyHash(key), hint: 'sk-ab...yz', ...row });
  }

  async useBudget(counter: BudgetCounter, used: bigint): Promise<void> {
    await createKeyCounters(this.#tables, 'relay').change(counter, { used, running: 0 });
  }

  async get(path: string, key?: string, changes: Partial<RelayRequest> = {}): Promise<AccountAnswer> {
    const { pathname, searchParams } = new URL(path, 'https://relay.test');
    const current = async (): Promise<Snapshot> => ({
      publishedAt: 0,
      channels: [],
      charges: this.charges,
      models: this.models,
      plans: this.plans,
      settings: this.settings,
    });
    const handle = createAccountHandle({
      config: { current, notOlderThan: current },
      keys: createKeyStore({ client: this.#tables, clock, stack: 'relay' }),
      accounts: createAccountReader(this.#tables, 'relay'),
      refusals: this.refusals,
      budgets: createKeyCounters(this.#tables, 'relay'),
      clock,
      log: { request: (entry) => this.logged.push(entry), event: () => undefined, fault: () => undefined },
    });
    const response = await handle({
      id: 'request-1',
      method: 'GET',
      path: pathname,
      query: searchParams,
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      baseUrl: 'https://relay.test/v1',
      json: async () => undefined,
      rawBody: () => '',
      hostDeadlineMs: nowMs + 30_000,
      ...changes,
    });
    const text = response.body as string;
    expectDocumented({
      method: 'GET',
      path: pathname,
      status: response.status,
      headers: response.headers,
      text,
    });
    const body = JSON.parse(text) as AccountAnswer['body'];
    return { status: response.status, headers: response.headers, body };
  }
}
