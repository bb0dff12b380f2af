import type { Capabilities } from '../../shared/config/rows/capabilities.ts';
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { KeyRow } from '../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { defaultSettings, type Settings } from '../../shared/config/settings.ts';
import type { Snapshot } from '../../shared/config/snapshot.ts';
import type { ChatPorts } from '../../shared/relay/ports/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../shared/relay/http/http.ts';
import { chatEndpoint } from '../../shared/endpoints/chat/chat-endpoint.ts';
import { embeddingsEndpoint } from '../../shared/endpoints/embeddings/embeddings-endpoint.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { createBackgroundRuns, type RunEvent } from '../../shared/relay/background-run.ts';
import { createWindowPolls } from '../../shared/relay/window-polls.ts';
import { answerWith } from '../../shared/relay/lifecycle.ts';
import { SearchRefused, type SearchResult } from '../../shared/relay/ports/host.ts';
import { messagesEndpoint } from '../../shared/endpoints/messages/messages-endpoint.ts';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import type { RequestLog } from '../../shared/relay/ports/telemetry.ts';
import { StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../shared/upstreams/exchange.ts';
import type { KeyLookup } from '../../shared/relay/ports/config-store.ts';
import { createSealer, createPseudonym, inflateWithZlib } from '../../shared/adapters/system/node-ports.ts';
import type { StateKey } from '../../shared/adapters/system/environment.ts';
import { MemoryLearnedFacts } from './memory-learned-facts.ts';
import type { FreeAttempts } from '../../shared/relay/ports/money-stores.ts';
import { MemoryRefusalCounts } from './memory-refusal-counts.ts';
import { MemoryStored } from './memory-stored.ts';
import { MemoryTurnStateStore } from './memory-turn-state-store.ts';
import { MemoryIdempotency } from './memory-idempotency.ts';
import { MemoryHealth } from './memory-health.ts';
import { MemoryKeyCounters } from './memory-key-counters.ts';
import { MemoryQuotaStore } from './memory-quota-store.ts';
import { RoughQuotaStore } from './rough-quota-store.ts';
import { dialectNames, loadDialect } from '../../shared/upstreams/dialects/dialects.ts';
import { deepFreeze } from './deep-freeze.ts';
import { VirtualClock } from './virtual-clock.ts';

/** A step of an upstream in virtual time. A number waits that many milliseconds. */
export type Step = string | Uint8Array | number;

export interface UpstreamScript {
  status?: number;
  headers?: Record<string, string>;
  steps?: Step[];
  /** The connection itself fails. */
  connect?: 'refused' | 'hang';
}

export const reset = '\u0000reset';
export const hang = '\u0000hang';
export const demoKey = 'sk-test';

export interface RigOptions {
  channels?: Record<string, unknown>[];
  charges?: Record<string, unknown>[];
  plans?: Record<string, unknown>[];
  settings?: Partial<Settings>;
  keys?: Record<string, KeyLookup | 'store_down'>;
  configDown?: boolean;
  /** See ChatCall. */
  concurrencyGiven?: number;
  /** The search results. If absent, the search provider is down. */
  search?: (query: string) => Promise<SearchResult[]>;
  /** Returns the value of a secret. If absent, all secrets have one value. */
  secretOf?: (reference: string) => string;
  /** The error of reading a secret. */
  secretError?: Error;
  /** Replaces the scripted upstreams. */
  send?: (request: UpstreamRequest, signal: AbortSignal) => Promise<UpstreamReply>;
  /** Replaces both endpoints. */
  endpoint?: Endpoint;
  /** Wraps the handle that is composed of ports, for example with tracing. */
  composed?: (ports: ChatPorts, handleOf: (ports: ChatPorts) => Handle) => Handle;
  /** The keys that seal and open state, oldest first. */
  sealKeys?: StateKey[];
  /** Shares the stores of another rig: this one is a new environment beside it. */
  beside?: CoreRig;
  /** A secret that is read again has a new value. */
  secretChanges?: boolean;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** Each text with the milliseconds since the request arrived. */
  said: { atMs: number; text: string }[];
}

// Virtual time passes while a file is loaded.
await Promise.all([
  ...[...dialectNames, 'embeddings'].map(loadDialect),
  import('../../shared/billing/estimate/media-tokens.ts'),
  import('../../shared/relay/state/turn-states.ts'),
  import('../../shared/relay/answer/stop-cut.ts'),
  import('../../shared/relay/call/attribution.ts'),
  import('../../shared/relay/idempotency.ts'),
  import('../../shared/relay/stored/accept.ts'),
  import('../../shared/relay/stored/conversation.ts'),
  import('../../shared/relay/stored/kept-answer.ts'),
  import('../../shared/endpoints/responses/stored-input.ts'),
  import('../../shared/endpoints/chat/other-forms.ts'),
  import('../../shared/relay/stored/follow.ts'),
  import('../../shared/relay/stored/repeated.ts'),
  import('../../shared/relay/dispatch/refused-attempt.ts'),
  import('../../shared/relay/explain.ts'),
  import('../../shared/relay/health/health-states.ts'),
  import('../../shared/billing/reservation.ts'),
  import('../../shared/relay/call/content-urls.ts'),
  import('../../shared/relay/money/budget-hold.ts'),
  import('../../shared/relay/money/shards.ts'),
  import('../../shared/relay/money/late-writes.ts'),
  import('../../shared/relay/search.ts'),
  import('../../shared/relay/count-tokens.ts'),
  import('../../shared/relay/stored/routes.ts'),
  import('../../shared/upstreams/event-stream-events.ts'),
  import('../../shared/relay/dispatch/submitted-call.ts'),
]);

/** Parsed once: it is frozen, and each call reads its key. */
let demoKeys: Record<string, KeyLookup> | undefined;

/** The pipeline with virtual time, a table of keys and scripted upstreams; everything else is real. */
export class CoreRig {
  readonly clock: VirtualClock;
  readonly logged: RequestLog[] = [];
  readonly faults: unknown[] = [];
  readonly searched: string[] = [];
  readonly refusals = new MemoryRefusalCounts();
  readonly freeAttempts: Parameters<FreeAttempts['count']>[0][] = [];
  readonly events: { name: string; fields: Record<string, unknown> }[] = [];
  readonly quotas = new MemoryQuotaStore();
  /** The quota store, whose network a test can make unreliable. */
  readonly store: RoughQuotaStore;
  /** The number of store calls before each upstream request. */
  readonly storeCallsBeforeUpstream: number[] = [];
  readonly counters = new MemoryKeyCounters();
  readonly health: MemoryHealth;
  readonly idempotency: MemoryIdempotency;
  readonly turnStates: MemoryTurnStateStore;
  readonly stored: MemoryStored;
  readonly learned: MemoryLearnedFacts;
  readonly sent: (UpstreamRequest & { json: Record<string, unknown> })[] = [];
  readonly secretsRead: string[] = [];
  readonly secretHosts: (string | undefined)[] = [];
  keyLookups = 0;
  /** Steps left in upstream scripts, which show whether a stream was read to its end. */
  stepsTaken = 0;
  readonly #options: RigOptions;
  readonly #handles = new Map<Endpoint, Handle>();
  #compiled: { rows: unknown[]; snapshot: Snapshot } | undefined;
  #ran = 0;
  #scripts: UpstreamScript[] = [];

  constructor(options: RigOptions = {}) {
    this.#options = options;
    const { beside } = options;
    this.clock = beside?.clock ?? new VirtualClock();
    this.store = new RoughQuotaStore(this.quotas, this.clock);
    this.health = beside?.health.inNewEnvironment() ?? new MemoryHealth(this.clock);
    this.idempotency = new MemoryIdempotency(this.clock);
    this.turnStates = beside?.turnStates ?? new MemoryTurnStateStore(this.clock);
    this.stored = beside?.stored ?? new MemoryStored(this.clock);
    this.learned = beside?.learned.inNewEnvironment() ?? new MemoryLearnedFacts(this.clock);
  }

  /** Scripts for the next upstream calls, in order; the last one repeats. */
  upstream(...scripts: UpstreamScript[]): this {
    this.#scripts = scripts;
    return this;
  }

  async post(body: unknown, options: Partial<RelayRequest> & { leaveAfter?: number } = {}): Promise<Answer> {
    const startedMs = this.clock.now();
    const response = await this.clock.run(this.respond(body, options));
    const said: Answer['said'] = [];
    const read = async (): Promise<void> => {
      if (typeof response.body === 'string') {
        said.push({ atMs: this.clock.now() - startedMs, text: response.body });
        return;
      }
      for await (const text of response.body) {
        said.push({ atMs: this.clock.now() - startedMs, text });
        if (said.length === options.leaveAfter) return;
      }
    };
    await this.clock.run(read());
    await this.clock.run(response.done);
    return {
      status: response.status,
      headers: response.headers,
      text: said.map((one) => one.text).join(''),
      said,
    };
  }

  respond(body: unknown, options: Partial<RelayRequest> = {}): Promise<RelayResponse> {
    const path = options.path ?? '/v1/chat/completions';
    const named =
      [responsesEndpoint, messagesEndpoint, embeddingsEndpoint].find((one) => path.startsWith(one.path)) ??
      chatEndpoint;
    return this.#handle(this.#options.endpoint ?? named)({
      id: '01testrequest0000000000000',
      method: 'POST',
      path,
      query: new URLSearchParams(),
      headers: { authorization: `Bearer ${demoKey}` },
      baseUrl: 'https://relay.test/v1',
      json: async () => body,
      rawBody: () => '',
      hostDeadlineMs: this.clock.now() + 900_000,
      ...options,
    });
  }

  /** Runs an event as the function `background` does. Default: the last sent event. */
  runs(event: Partial<RunEvent> = {}): Promise<void> {
    this.#ran += 1;
    const last = this.stored.started.at(-1) ?? { account: 'acme', id: 'resp-none' };
    const run = createBackgroundRuns(this.#ports(), frozen(responsesEndpoint));
    return run({ ...last, run: `run ${this.#ran}`, hostDeadlineMs: this.clock.now() + 900_000, ...event });
  }

  /** Runs the schedule of the function `background`. */
  async polls(): Promise<void> {
    await createWindowPolls(this.#ports(), frozen(responsesEndpoint))();
  }

  /** One relay per endpoint, as in a function: its memory outlives a request. */
  #handle(endpoint: Endpoint): Handle {
    const handle = this.#handles.get(endpoint) ?? this.#composed(frozen(endpoint));
    this.#handles.set(endpoint, handle);
    return handle;
  }

  #composed(endpoint: Endpoint): Handle {
    const handleOf = (ports: ChatPorts): Handle => answerWith(ports, endpoint);
    return this.#options.composed?.(this.#ports(), handleOf) ?? handleOf(this.#ports());
  }

  #ports(): ChatPorts {
    return {
      clock: this.clock,
      config: { current: () => this.#current(), notOlderThan: () => this.#current() },
      keys: { find: (key) => this.#findKey(key) },
      secrets: {
        read: (reference, host) => {
          this.secretsRead.push(reference);
          this.secretHosts.push(host);
          const { secretError } = this.#options;
          const value = this.#options.secretOf?.(reference) ?? 'upstream-secret-value';
          return secretError ? Promise.reject(secretError) : Promise.resolve(value);
        },
        refresh: () => Promise.resolve(this.#options.secretChanges === true),
      },
      transport: { send: (request, signal) => this.#send(request, signal) },
      quotas: this.store,
      counters: this.counters,
      searchProvider: () => ({ search: (query, _signal, sent) => this.#search(query, sent) }),
      health: this.health,
      idempotency: this.idempotency,
      pseudonym: createPseudonym('test'),
      inflate: inflateWithZlib,
      sealer: createSealer(this.#options.sealKeys ?? [{ number: 1, secret: 'first' }]),
      turnStates: this.turnStates,
      stored: this.stored,
      learned: this.learned,
      refusals: this.refusals,
      freeAttempts: { count: async (call) => void this.freeAttempts.push(call) },
      concurrencyGiven: this.#options.concurrencyGiven,
      random: { next: () => 0.5 },
      log: {
        request: (entry) => this.logged.push(entry),
        event: (name, fields) => this.events.push({ name, fields }),
        fault: (_id, error) => this.faults.push(error),
      },
    };
  }

  #current(): Promise<Snapshot> {
    if (this.#options.configDown) return Promise.reject(new StoreUnavailable());
    // A snapshot lasts until rows change, as in a function. Rows are frozen, so a test that changes one in place
    // throws.
    const { channels, charges, plans, settings } = this.#options;
    const rows = [channels, charges, plans, settings];
    if (!this.#compiled || rows.some((each, i) => each !== this.#compiled?.rows[i]))
      this.#compiled = { rows: deepFreeze(rows), snapshot: deepFreeze(this.#snapshot()) };
    return Promise.resolve(this.#compiled.snapshot);
  }

  #search(query: string, sent: () => void): Promise<SearchResult[]> {
    this.searched.push(query);
    sent();
    return this.#options.search?.(query) ?? Promise.reject(new SearchRefused('no provider'));
  }

  #snapshot(): Snapshot {
    const rows = this.#options.channels ?? [{}];
    const all = rows.map(({ can, ...row }): ChannelRow => {
      const whole = { id: 'main', endpoint: 'https://upstream.test/v1', models: ['m'], state: true, ...row };
      return Object.assign(ChannelRow.parse(whole), can === undefined ? {} : { can: can as Capabilities });
    });
    const channels = all.filter(({ state }) => state);
    return {
      publishedAt: 1,
      channels,
      drainingChannels: all.filter(({ state }) => !state),
      charges: (this.#options.charges ?? []).map((row) => ChargeRow.parse(row)),
      plans: (this.#options.plans ?? []).map((row) => PlanRow.parse(row)),
      settings: { ...defaultSettings, ...this.#options.settings },
      models: channels.flatMap((channel) => channel.models),
    };
  }

  #findKey(key: string): Promise<KeyLookup> {
    this.keyLookups += 1;
    const keys = this.#options.keys ?? (demoKeys ??= { [demoKey]: { row: keyRow() } });
    const found = keys[key] ?? { missing: 'unknown' };
    return found === 'store_down'
      ? Promise.reject(new StoreUnavailable())
      : Promise.resolve(deepFreeze(found));
  }

  async #send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply> {
    this.storeCallsBeforeUpstream.push(this.store.sent.length);
    this.sent.push({ ...request, json: JSON.parse(request.body || '{}') });
    if (this.#options.send) return this.#options.send(request, signal);
    const script = this.#scripts.length > 1 ? this.#scripts.shift() : this.#scripts[0];
    if (script?.connect === 'refused') throw new TransportError('connect', 'refused');
    if (script?.connect === 'hang') await this.#forever(signal);
    return {
      status: script?.status ?? 200,
      headers: script?.headers ?? {},
      body: this.#body(script?.steps ?? [], signal),
    };
  }

  async *#body(steps: Step[], signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (const step of steps) {
      if (signal.aborted) throw new TransportError('aborted', 'aborted');
      this.stepsTaken += 1;
      if (step === hang) await this.#forever(signal);
      else if (step === reset) throw new TransportError('reset', 'reset');
      else if (typeof step === 'number') await this.clock.sleep(step, signal);
      else yield typeof step === 'string' ? new TextEncoder().encode(step) : step;
    }
  }

  async #forever(signal: AbortSignal): Promise<never> {
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    throw new TransportError('aborted', 'aborted');
  }
}

/** Wraps the endpoint so that nobody can modify its requests. */
const frozen = (endpoint: Endpoint): Endpoint => ({
  ...endpoint,
  read: (...asked) => deepFreeze(endpoint.read(...asked)),
});

export const keyRow = (more: Record<string, unknown> = {}): KeyRow =>
  KeyRow.parse({ hash: 'a'.repeat(64), account: 'acme', hint: 'sk-te...st', ...more });

export const data = (value: object | string): string =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

export const delta = (content: string, index = 0): string =>
  data({ choices: [{ index, delta: { content } }] });

export const finish = (reason = 'stop', index = 0): string =>
  data({ choices: [{ index, delta: {}, finish_reason: reason }] });

export const usage = (prompt: number, completion: number): string =>
  data({
    choices: [],
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  });

export const done = data('[DONE]');

/** A short answer as most upstreams stream it. */
export const hello: Step[] = [delta('Hel'), delta('lo'), finish(), usage(7, 2), done];

/** Returns the JSON values of a stream's data frames; `[DONE]` stays a string. */
export const frames = (text: string): unknown[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => frame.slice(6))
    .map((value) => (value === '[DONE]' ? value : JSON.parse(value)));
