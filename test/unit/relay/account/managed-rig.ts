import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createAutoTopUpStore } from '../../../../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { createCodeStore } from '../../../../shared/adapters/dynamodb/code-store.ts';
import { createKeyCounters } from '../../../../shared/adapters/dynamodb/key-budgets.ts';
import { createKeyStore } from '../../../../shared/adapters/dynamodb/key-store.ts';
import { createManagedKeyStore } from '../../../../shared/adapters/dynamodb/managed-key-store.ts';
import { Table, valuesOf, type TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import {
  generateSecretKey,
  nodeHmac,
  generateHex,
  systemClock,
} from '../../../../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import type { PlanRow } from '../../../../shared/config/rows/plan-row.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { defaultSettings, type Settings, type StripeSettings } from '../../../../shared/config/settings.ts';
import { createManagedKeysHandle } from '../../../../shared/relay/account/managed-keys.ts';
import type { RequestLog } from '../../../../shared/relay/ports/telemetry.ts';
import { SecretUnusable } from '../../../../shared/relay/ports/config-store.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { keyHash } from '../../../../shared/wire/ids.ts';
import { expectDocumented } from '../../../openapi/exchange.ts';
import type { TableName } from '../../../../shared/tables/table-names.ts';
import { emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';

export type Json = Record<string, unknown>;

export interface ManagedAnswer {
  status: number;
  headers: Record<string, string>;
  body: Json & { error: Json; data: Json[] };
}

/** Stripe as the relay sees it: it records requests and gives the test's answer. */
export interface StripeDouble {
  asked: { headers: IncomingHttpHeaders; form: URLSearchParams; path: string | undefined }[];
  answer: (form: URLSearchParams) => { status?: number; session?: unknown; never?: boolean };
}

/** The function `selfservice` without its host, over the real stores on an emulator. */
export class ManagedRig {
  readonly events: { name: string; fields: Json }[] = [];
  readonly logged: RequestLog[] = [];
  readonly faults: unknown[] = [];
  readonly secrets = new Map([
    ['ssm:/relay/relay/links', 'link secret'],
    ['ssm:/relay/relay/stripe', 'sk_test_1'],
  ]);
  readonly stripe: StripeDouble = { asked: [], answer: () => ({}) };
  settings: Settings = { ...defaultSettings };
  plans: PlanRow[] = [];
  /** Called before and after each transaction; throws to lose the reply. */
  beforeWrite: () => Promise<void> = async () => {};
  afterWrite: () => void = () => {};
  nowMs = Date.now();
  /** Replaces the clock's sleep. */
  sleep: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  readonly #emulator: Emulator;
  readonly tables: TableClient;
  readonly #server: Server;
  #endpoint = '';
  #requests = 0;

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
    this.tables = emulatorTables(emulator.endpoint);
    const listener: RequestListener = (request, response) => {
      void text(request).then((body) => {
        const form = new URLSearchParams(body);
        this.stripe.asked.push({ headers: request.headers, form, path: request.url });
        const { status = 200, session, never = false } = this.stripe.answer(form);
        if (never) return;
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(typeof session === 'string' ? session : JSON.stringify(session));
      });
    };
    this.#server = createServer(listener);
  }

  static async start(): Promise<ManagedRig> {
    const rig = new ManagedRig(await startEmulator('relay', { streams: false }));
    await once(rig.#server.listen(0, '127.0.0.1'), 'listening');
    rig.#endpoint = `http://127.0.0.1:${(rig.#server.address() as AddressInfo).port}`;
    return rig;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await this.#emulator.stop();
  }

  /** The setting `payments`, with sessions at the double. */
  payments(changes: Partial<StripeSettings> = {}): void {
    const stripe: StripeSettings = {
      live: false,
      webhookSecrets: ['ssm:/relay/relay/hook'],
      linkSecrets: ['ssm:/relay/relay/links'],
      rates: { cny: '1', usd: '7.1', jpy: '0.048', kwd: '23.123456' },
      unsigned: 'park',
      checkout: {
        secretKey: 'ssm:/relay/relay/stripe',
        currency: 'cny',
        endpoint: this.#endpoint,
        autoTopUp: true,
        plans: [],
      },
      ...changes,
    };
    this.settings = { ...this.settings, payments: { stripe } };
  }

  get endpoint(): string {
    return this.#endpoint;
  }

  async put(table: TableName, row: Json): Promise<void> {
    await new Table(this.tables, 'relay', table).put(row);
  }

  async rows(table: TableName = 'keys'): Promise<Json[]> {
    const pages = await Array.fromAsync(new Table(this.tables, 'relay', table).readPages('Scan'));
    return pages.flat().map(valuesOf);
  }

  async row(hash: unknown): Promise<Json> {
    return valuesOf((await new Table(this.tables, 'relay', 'keys').get({ hash })) ?? {});
  }

  async rowOf(key: string): Promise<Json> {
    return this.row(keyHash(key));
  }

  /** Creates the first key of a new account. */
  async maker(row: Json = {}): Promise<{ key: string; account: string }> {
    const account = `account-${generateHex(4)}`;
    const key = generateSecretKey();
    await this.put('accounts', { account });
    await this.put('keys', { hash: keyHash(key), hint: 'sk-ma...er', account, manage: true, ...row });
    return { key, account };
  }

  /** Changes attributes of a row, as an operator does. */
  async change(key: string, changes: Json): Promise<void> {
    await this.put('keys', { ...(await this.rowOf(key)), ...changes });
  }

  readonly #client = (): TableClient => {
    const client = this.tables;
    return {
      call: async (operation, input, options) => {
        if (operation !== 'TransactWriteItems') return client.call(operation, input, options);
        await this.beforeWrite();
        const reply = await client.call(operation, input, options);
        this.afterWrite();
        return reply;
      },
    };
  };

  async send(method: string, path: string, key: string, body?: unknown): Promise<ManagedAnswer> {
    const current = async () => ({ ...createEmptySnapshot(0), settings: this.settings, plans: this.plans });
    const clock = {
      now: () => this.nowMs,
      sleep: this.sleep ?? (async (ms: number, signal?: AbortSignal) => systemClock.sleep(ms, signal)),
    };
    const client = this.#client();
    const handle = createManagedKeysHandle({
      config: { current, notOlderThan: current },
      keys: createKeyStore({ client, clock, stack: 'relay' }),
      managed: createManagedKeyStore(client, 'relay'),
      counters: createKeyCounters(client, 'relay'),
      topUps: createAutoTopUpStore(client, 'relay'),
      codes: createCodeStore(client, 'relay'),
      secrets: {
        read: async (reference) => {
          const value = this.secrets.get(reference);
          if (value === undefined) throw new SecretUnusable('missing');
          return value;
        },
        refresh: async () => false,
      },
      transport: createHttpsTransport({ local: true }),
      hmac: nodeHmac,
      random: { next: Math.random, secretKey: generateSecretKey, hex: generateHex },
      clock,
      log: {
        request: (entry) => this.logged.push(entry),
        event: (name, fields) => this.events.push({ name, fields }),
        fault: (_id, error) => this.faults.push(error),
      },
    });
    this.#requests += 1;
    const response = await handle({
      id: `request-${this.#requests}`,
      method,
      path,
      query: new URLSearchParams(),
      headers: { authorization: `Bearer ${key}` },
      baseUrl: 'https://relay.test/v1',
      json: async () => undefined,
      rawBody: () => (body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)),
      hostDeadlineMs: this.nowMs + 30_000,
    });
    await response.done;
    const { status, headers } = response;
    const text = response.body as string;
    expectDocumented({ method, path, body, status, headers, text });
    return { status, headers, body: JSON.parse(text) as ManagedAnswer['body'] };
  }

  list = (key: string) => this.send('GET', '/v1/account/keys', key);
  create = (key: string, body: unknown = { name: 'shop' }) =>
    this.send('POST', '/v1/account/keys', key, body);
  edit = (key: string, id: unknown, body: unknown) =>
    this.send('POST', `/v1/account/keys/${String(id)}`, key, body);
  rotate = (key: string, id: unknown, body?: unknown) =>
    this.send('POST', `/v1/account/keys/${String(id)}/rotate`, key, body);
  remove = (key: string, id: unknown) => this.send('DELETE', `/v1/account/keys/${String(id)}`, key);
  topUp = (key: string, body: unknown) => this.send('POST', '/v1/account/top-ups', key, body);
}

export const lostReply = (): never => {
  throw new StoreUnavailable('lost');
};
