import { noRegistry, scanOf } from '../support/whole-table.ts';
import { sweeper } from '../../shared/relay/background/sweeper.ts';
import type { Metrics, Log } from '../../shared/relay/ports/telemetry.ts';
import { StoreUnavailable, StoreBusy } from '../../shared/relay/ports/stores/store-errors.ts';
import { makeCustomers, startMs, type Customer } from './accounts.ts';
import { makeCall, type CallReport } from './call.ts';
import { Environment, type Hazards } from './environment.ts';
import { grantApplierIn, StoredGrants } from './grants.ts';
import { LedgerStream, StoredLedger } from './ledger-stream.ts';
import type { Mutant } from './mutant.ts';
import { Network, networkedQuotas, smooth, type Roughness } from './networked-store.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import { Scheduler } from './scheduler.ts';
import { SeededRandom } from './seeded-random.ts';
import { Server } from './server.ts';
import { StoredQuotas, type Change } from './stored-quotas.ts';
import { Broken, hold, Watch } from './watch.ts';

// Virtual time passes while a file is loaded.
await Promise.all([
  import('../../shared/relay/money/later-tries.ts'),
  import('../../shared/relay/money/elsewhere.ts'),
  import('../../shared/relay/money/guard.ts'),
  import('../../shared/relay/money/late-settle.ts'),
  import('../../shared/relay/money/resize.ts'),
  import('../../shared/relay/money/free-places.ts'),
]);

export const graceSeconds = 120;
const skewMsMax = 15_000;
const calm: Hazards = { crash: 0, freeze: 0, freezeMs: 0 };

/** A relay in small: customers, environments, a sweeper, a ledger and grants over one store, in one scheduler. */
export class World {
  readonly random: SeededRandom;
  readonly scheduler: Scheduler;
  readonly watch = new Watch();
  readonly quotas: StoredQuotas;
  readonly counters = new MemoryKeyCounters();
  readonly grants: StoredGrants;
  readonly ledger: StoredLedger;
  readonly stream: LedgerStream;
  readonly customers: [Customer, ...Customer[]];
  readonly reports: CallReport[] = [];
  /** Log events by name, with the request ids that they name. */
  readonly logged = new Map<string, Set<unknown>>();
  readonly hazards: Hazards;
  readonly roughness: Roughness;
  readonly #mutant: Mutant | undefined;
  #servers: Server[] = [];
  #calls = 0;

  constructor(seed: number, mutant?: Mutant) {
    const random = new SeededRandom(seed);
    this.random = random;
    this.#mutant = mutant;
    this.scheduler = new Scheduler(random, startMs);
    // Worlds differ in kind: some are rough all over, some have one trouble only.
    const some = (most: number): number => (random.chance(0.5) ? random.next() * most : 0);
    this.hazards = { crash: some(0.05), freeze: some(0.03), freezeMs: 900_000 };
    this.roughness = { busy: some(0.2), dropped: some(0.1), lost: some(0.2), late: some(0.1) };
    this.quotas = new StoredQuotas(mutant, (change) => this.#wrote(change));
    this.grants = new StoredGrants(mutant, this.quotas, (account, amount) =>
      this.watch.granted(account, amount),
    );
    this.ledger = new StoredLedger(mutant);
    this.stream = new LedgerStream(random);
    this.customers = makeCustomers(random);
  }

  /** Makes a call in an environment that is free, or in a new one. */
  startCall(customer = this.random.pick(this.customers)): void {
    this.#servers = this.#servers.filter(({ environment }) => !environment.crashed);
    const free = this.#servers.filter((server) => !server.busy);
    const server = free[this.random.integer(0, Math.max(free.length - 1, 3))] ?? this.#newServer();
    this.#calls += 1;
    const id = `call${String(this.#calls).padStart(4, '0')}`;
    server.busy = true;
    makeCall(server, this.random, customer, id)
      .then((report) => {
        this.reports.push(report);
        server.busy = false;
        server.environment.stoodStill = false;
        server.environment.spared = false;
      })
      .catch((error: unknown) => this.fail(error));
  }

  /** A grant as ops write it; the stream tells of it once, or more often, or never. */
  startGrant(account: string, grantId: string, amount: bigint): void {
    const image = this.grants.write(account, grantId, amount);
    const times = this.random.chance(0.1) ? 0 : this.random.integer(1, 3);
    for (let time = 0; time < times; time += 1) {
      this.scheduler.after(this.random.integer(0, 5_000), () => {
        const [environment, network] = this.place(this.hazards, this.roughness);
        const applier = grantApplierIn(
          environment,
          network,
          this.grants,
          this.random,
          this.#metrics,
          this.#log(environment),
        );
        this.watched(applier.apply({ ...image }));
      });
    }
  }

  keepMissedGrants(hazards = this.hazards, roughness = this.roughness): void {
    const [environment, network] = this.place(hazards, roughness);
    const applier = grantApplierIn(
      environment,
      network,
      this.grants,
      this.random,
      this.#metrics,
      this.#log(environment),
    );
    this.watched(applier.applyMissed());
  }

  takeBatch(hazards = this.hazards, roughness = this.roughness): void {
    const [environment, network] = this.place({ ...hazards, freeze: 0 }, roughness);
    this.watched(
      this.stream.takeBatch(environment, network, this.ledger, this.#log(environment), this.#metrics),
    );
  }

  sweep(hazards = this.hazards, roughness = this.roughness): void {
    const [environment, network] = this.place(hazards, roughness);
    const { quotas, random } = this;
    const startedMs = this.scheduler.nowMs;
    const startedSeconds = environment.now() / 1000;
    let failed = false;
    const log = this.#log(environment);
    const event: Log['event'] = (name, fields) => {
      if (name === 'sweep_failed') failed = true;
      log.event(name, fields);
    };
    const scan = scanOf(() =>
      network.send(() => Promise.resolve([...quotas.items.values()].filter(({ open }) => open.size > 0))),
    );
    const grace = this.#mutant === 'early_sweep' ? -30 : graceSeconds;
    const ports = { clock: environment, random, registry: noRegistry, scan };
    const run = sweeper(
      { ...ports, quotas: networkedQuotas(quotas, network), metrics: this.#metrics, log: { ...log, event } },
      grace,
    );
    this.watched(run().then(() => failed || this.#checkSwept(startedMs, startedSeconds - graceSeconds - 1)));
  }

  /** An environment of its own, and its way to the stores. */
  place(hazards: Hazards, roughness: Roughness): [Environment, Network] {
    const skewMs = this.random.integer(-skewMsMax, skewMsMax);
    const environment = new Environment(this.scheduler, this.random, hazards, skewMs);
    return [environment, new Network(this.scheduler, this.random, roughness, environment)];
  }

  /** Background work may fail on the store, and is then repeated by its schedule; on nothing else. */
  watched(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) this.fail(error);
    });
  }

  fail(error: unknown): void {
    this.scheduler.after(0, () => {
      throw error;
    });
  }

  finalSweep(): void {
    this.sweep(calm, smooth);
  }

  finalGrants(): void {
    this.keepMissedGrants(calm, smooth);
  }

  finalBatch(): void {
    this.takeBatch(calm, smooth);
  }

  #wrote(change: Change): void {
    this.watch.saw(change, this.scheduler.nowMs);
    if (change.late) void this.ledger.putCounted([change.late.row]);
    const { account, before, after } = change;
    this.stream.add({ item: account, account, before, after });
  }

  #newServer(): Server {
    const [environment, network] = this.place(this.hazards, this.roughness);
    const server = new Server(environment, network, {
      quotas: this.quotas,
      counters: this.counters,
      random: this.random,
      log: this.#log(environment),
    });
    this.#servers.push(server);
    return server;
  }

  /** Nothing stays open beyond its expiry, the grace and one sweep. */
  #checkSwept(startedMs: number, overdueSeconds: number): void {
    for (const { open } of this.quotas.items.values())
      for (const [id, { until }] of open) {
        const seen = (this.watch.openedMs.get(id) ?? Infinity) < startedMs;
        hold(!seen || until >= overdueSeconds, `${id} is open after its expiry, the grace and a sweep`);
      }
  }

  readonly #metrics: Metrics = {
    count: (name) => this.fail(new Broken(`metric ${name}`)),
  };

  #log(environment: Environment): Log {
    return {
      request: () => {},
      fault: (_id, error) => {
        if (!(error instanceof StoreUnavailable)) this.fail(error);
      },
      event: (name, fields) => {
        const id = fields['request_id'];
        this.logged.set(name, (this.logged.get(name) ?? new Set()).add(id));
        if (fields['unsure'] === true)
          this.logged.set('settle_unsure', (this.logged.get('settle_unsure') ?? new Set()).add(id));
        if (name !== 'settle_late' || environment.stoodStill) return;
        const kinds = this.watch.closes.get(String(id))?.map(({ kind }) => kind) ?? [];
        const own = kinds.includes('settled') || kinds.includes('released');
        if (fields['unsure'] !== true || !own)
          this.fail(new Broken(`${String(id)} came late without standing still`));
      },
    };
  }
}
