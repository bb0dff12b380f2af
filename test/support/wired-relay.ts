import { GetItemCommand, UpdateItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { composeAnsweringHandle } from '../../functions/compose/answering.ts';
import { startFaultProxy, type FaultProxy, startSecretDouble, type SecretDouble } from './fault-proxy.ts';
import { documentsOn, tablesOn } from './sdk-tables.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { buildShardKey, decodeQuota } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { systemClock } from '../../shared/adapters/system/node-ports.ts';
import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import { chatEndpoint } from '../../shared/endpoints/chat/chat-endpoint.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { startCompiler, type Compiler } from '../unit/relay/jobs/config-rig.ts';
import { emulatorClient, startEmulator, type Emulator } from './emulator.ts';
import { startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts';

export interface WiredAnswer {
  status: number;
  headers: Record<string, string>;
  text: string;
}

/** An environment of the chat function, composed like the function. */
export interface WiredEnvironment {
  /** Resolves once the answer has ended and the reservation is closed. */
  post(body?: object, options?: { deadlineMs?: number }): Promise<WiredAnswer>;
  /** Advances this environment's time, as a freeze does. */
  sleep(milliseconds: number): void;
}

export const wiredKey = 'sk-wired';
export const nanoYuan = 1_000_000_000n;

/** The chat function over the wire: the product's own clients, an emulator and a secret store behind fault proxies. */
export class WiredRelay {
  readonly store: FaultProxy;
  readonly secretStore: FaultProxy;
  readonly secrets: SecretDouble;
  readonly upstream: ScriptedUpstream;
  readonly compiler: Compiler;
  readonly direct: DynamoDBClient;
  /** The emulator's address, without the fault proxy. */
  get endpoint(): string {
    return this.#emulator.endpoint;
  }

  readonly #emulator: Emulator;
  /** The process's variables before the test. */
  readonly #variables = new Map<string, string | undefined>();

  private constructor(
    parts: Pick<WiredRelay, 'store' | 'secretStore' | 'secrets' | 'upstream'>,
    emulator: Emulator,
  ) {
    this.store = parts.store;
    this.secretStore = parts.secretStore;
    this.secrets = parts.secrets;
    this.upstream = parts.upstream;
    this.#emulator = emulator;
    this.direct = emulatorClient(emulator.endpoint);
    this.#setVariables({
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
      AWS_ENDPOINT_URL_SSM: parts.secretStore.endpoint,
      AWS_ENDPOINT_URL_SECRETS_MANAGER: parts.secretStore.endpoint,
      RELAY_STACK: 'relay',
      RELAY_VERSION: 'wired',
      RELAY_LOCAL: '1',
      ORIGIN_SECRETS: 'distribution',
      SEAL_KEYS: '{"1":"seal"}',
    });
    this.compiler = startCompiler({ local: true });
  }

  static async start(secretValues: Record<string, string> = {}): Promise<WiredRelay> {
    const [emulator, secrets, upstream] = await Promise.all([
      startEmulator(),
      startSecretDouble(secretValues),
      startScriptedUpstream(),
    ]);
    const store = await startFaultProxy({ upstream: emulator.endpoint, seed: 12, countUnits: true });
    const secretStore = await startFaultProxy({ upstream: secrets.endpoint, seed: 13 });
    const relay = new WiredRelay({ store, secretStore, secrets, upstream }, emulator);
    // A client resolves its endpoint at its first call: the compiler's client uses the emulator, those of environments
    // the fault proxy.
    await relay.compiler.store.put('keys', { hash: keyHash(wiredKey), account: 'acme', hint: 'sk-...red' });
    relay.#setVariables({ AWS_ENDPOINT_URL_DYNAMODB: store.endpoint });
    return relay;
  }

  /** Functions read their environment, and clients their endpoints, from the process. `stop` restores it. */
  #setVariables(variables: Record<string, string>): void {
    for (const [name, value] of Object.entries(variables)) {
      if (!this.#variables.has(name)) this.#variables.set(name, process.env[name]);
      process.env[name] = value;
    }
  }

  /** Publishes a channel to the scripted upstream that serves these models. */
  async publish(id: string, models: string[], more: object = {}): Promise<void> {
    const { endpoint } = this.upstream;
    await this.compiler.store.put('channels', { id, endpoint, models, state: true, ...more });
    await this.compiler.compile();
  }

  async grant(yuan: bigint): Promise<void> {
    await createQuotaStore(tablesOn(documentsOn(this.direct)), 'relay').create('acme');
    const amount = { N: String(yuan * nanoYuan) };
    await this.direct.send(
      new UpdateItemCommand({
        TableName: 'relay-quotas',
        Key: buildShardKey({ account: 'acme' }),
        UpdateExpression: 'SET available = :amount, granted = :amount',
        ExpressionAttributeValues: { ':amount': amount },
      }),
    );
  }

  async account(): Promise<QuotaItem> {
    const key = { TableName: 'relay-quotas', Key: buildShardKey({ account: 'acme' }), ConsistentRead: true };
    return decodeQuota((await this.direct.send(new GetItemCommand(key))).Item ?? {});
  }

  environment(): WiredEnvironment {
    let offsetMs = 0;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + offsetMs };
    const { handle, ids } = composeAnsweringHandle(chatEndpoint, clock);
    return {
      sleep: (milliseconds) => (offsetMs += milliseconds),
      async post(body = {}, { deadlineMs = 60_000 } = {}) {
        const whole = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body };
        const response = await handle({
          id: ids.next(),
          method: 'POST',
          path: '/v1/chat/completions',
          query: new URLSearchParams(),
          headers: { authorization: `Bearer ${wiredKey}` },
          baseUrl: 'https://relay.test/v1',
          json: async () => whole,
          rawBody: () => '',
          hostDeadlineMs: clock.now() + deadlineMs,
        });
        const texts =
          typeof response.body === 'string' ? [response.body] : await Array.fromAsync(response.body);
        await response.done;
        return { status: response.status, headers: response.headers, text: texts.join('') };
      },
    };
  }

  async stop(): Promise<void> {
    this.direct.destroy();
    await Promise.all([
      this.store.close(),
      this.secretStore.close(),
      this.secrets.close(),
      this.upstream.close(),
    ]);
    await this.#emulator.stop();
    for (const [name, value] of this.#variables)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}
