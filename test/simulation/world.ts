import { BudgetsWatch, countersOf } from './budgets-watch.ts';
import type { CloseWrite } from '../../shared/billing/quota-item.ts';
import { noRegistry, scanOf } from '../support/whole-table.ts';
import { createSweeper } from '../../shared/relay/jobs/sweeper.ts';
import type { Metrics, Log } from '../../shared/relay/ports/telemetry.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { StoreUnavailable, StoreBusy } from '../../shared/relay/ports/store-errors.ts';
import { makeCustomers, startMs, type Customer } from './accounts.ts';
import { makeCall, type AcceptedCall, type CallReport } from './call.ts';
import { cancelLater, LaterCall, runLater } from './later-call.ts';
import { Environment, type Hazards } from './environment.ts';
import { grantApplierIn, StoredGrants } from './grants.ts';
import { LedgerStream, StoredLedger } from './ledger-stream.ts';
import { mutants, type Mutant } from './mutant.ts';
import type { Mutation } from './mutations.ts';
import { Network, networkedQuotas, smooth, type Roughness } from './networked-store.ts';
import { StoredCounters } from './stored-counters.ts';
import { LimitsWatch } from './limits-watch.ts';
import { kindOf, type WorldKind } from './world-kind.ts';
import { budgetUseOf, type CloseRow } from '../../shared/billing/ledger-row.ts';
import { firstCounter } from '../../shared/billing/shares.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { Scheduler } from './scheduler.ts';
import { SeededRandom } from './seeded-random.ts';
import { Server } from './server.ts';
import { StoredQuotas, type Change } from './stored-quotas.ts';
import { checkRow } from './row-check.ts';
import { Broken, hold, Watch } from './watch.ts';

// Virtual time passes while a file is loaded.
await Promise.all([
  import('../../shared/relay/money/shards.ts'),
  import('../../shared/relay/money/late-writes.ts'),
]);

export const graceSeconds = 120;
const skewMsMax = 15_000;
const calm: Hazards = { crash: 0, freeze: 0, freezeMs: 0 };

/** A small relay: customers, environments, a sweeper, a ledger and grants over one store, in one scheduler. */
export class World {
  readonly random: SeededRandom;
  readonly scheduler: Scheduler;
  readonly watch = new Watch();
  readonly quotas: StoredQuotas;
  readonly counters: StoredCounters;
  readonly kind: WorldKind;
  readonly grants: StoredGrants;
  readonly ledger: StoredLedger;
  readonly stream: LedgerStream;
  readonly customers: [Customer, ...Customer[]];
  readonly reports: CallReport[] = [];
  /** Log events by name, with their request ids. */
  readonly logged = new Map<string, Set<unknown>>();
  /** Counts of events, which show that the world reached the intended cases. */
  readonly seen = {
    limited: 0,
    renewed: 0,
    pastCrashed: 0,
    correctedInParts: 0,
    overdrawn: 0,
    overdraftsEnded: 0,
    joinedInDebt: 0,
    exactBudgets: 0,
    taggedBudgets: 0,
    ranLater: 0,
    refusedLater: 0,
    meteredOnCounters: 0,
    meteredInParts: 0,
  };
  readonly #limits: LimitsWatch;
  readonly #budgets: BudgetsWatch;
  readonly #mutant: Mutant | undefined;
  readonly #mutation: Mutation | undefined;
  #servers: Server[] = [];
  #calls = 0;

  constructor(seed: number, mutant?: Mutant, kind?: Partial<WorldKind>) {
    const random = new SeededRandom(seed);
    this.random = random;
    this.#mutant = mutant;
    this.scheduler = new Scheduler(random, startMs);
    this.#mutation = mutant && mutants[mutant];
    this.kind = kindOf(random, kind ?? this.#mutation?.kind);
    this.quotas = new StoredQuotas(mutant, (change) => this.#wrote(change));
    this.counters = new StoredCounters(this.#mutation, (key) => this.#budgets.changed(key));
    this.grants = new StoredGrants(mutant, this.quotas, (account, amount) =>
      this.watch.oracle.granted(account, amount),
    );
    this.ledger = new StoredLedger(mutant, (row) => this.#putRow(row));
    this.stream = new LedgerStream(random);
    this.customers = makeCustomers(random);
    this.#limits = new LimitsWatch(this.customers);
    this.#budgets = new BudgetsWatch(this.watch.oracle, this.counters, this.customers);
  }

  /** Makes a call in a free environment, or in a new one. */
  startCall(customer = this.random.pick(this.customers)): void {
    this.#servers = this.#servers.filter(({ environment }) => !environment.crashed);
    const free = this.#servers.filter((server) => !server.busy);
    const server = free[this.random.integer(0, Math.max(free.length - 1, 3))] ?? this.#newServer();
    this.#calls += 1;
    const id = requestId(server.environment.now(), this.#calls);
    server.busy = true;
    const longestMs = this.kind.requestSeconds * 1000;
    const { background } = this.kind;
    const isLater = background > 0 && this.random.chance(background);
    const accepts = isLater ? (accepted: AcceptedCall): void => this.#later(accepted) : undefined;
    const metered = this.kind.metered > 0 && this.random.chance(this.kind.metered);
    makeCall(server, { random: this.random, customer, id, metered, longestMs, accepts })
      .then((report) => {
        this.reports.push(report);
        if (report.limited) this.seen.limited += 1;
        server.free();
      })
      .catch((error: unknown) => this.fail(error));
  }

  /** Delivers its event once, twice or never, early or too late; sometimes it is cancelled. */
  #later(accepted: AcceptedCall): void {
    const { random, scheduler } = this;
    const later = new LaterCall(accepted);
    const longestMs = this.kind.requestSeconds * 1000;
    const times = random.chance(0.1) ? 0 : random.integer(1, 2);
    const delay = (): number => (random.chance(0.2) ? random.integer(0, 300_000) : random.integer(0, 2_000));
    for (let time = 0; time < times; time += 1)
      scheduler.after(delay(), () => {
        const server = this.#newServer();
        server.busy = true;
        runLater(server, { later, random, longestMs })
          .then((report) => {
            if (report) this.reports.push(report);
            if (report?.refused === false) this.seen.ranLater += 1;
            if (report?.refused && report.stoodStill !== true) this.seen.refusedLater += 1;
            server.free();
          })
          .catch((error: unknown) => this.fail(error));
      });
    if (!random.chance(0.2)) return;
    scheduler.after(delay(), () => cancelLater({ later }));
  }

  /** Writes a grant like an operator; the stream delivers it once, several times, or never. */
  startGrant(account: string, grantId: string, amount: bigint): void {
    const image = this.grants.write(account, grantId, amount);
    const times = this.random.chance(0.1) ? 0 : this.random.integer(1, 3);
    for (let time = 0; time < times; time += 1) {
      this.scheduler.after(this.random.integer(0, 5_000), () => {
        const [environment, network] = this.place(this.kind.hazards, this.kind.roughness);
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

  keepMissedGrants({ hazards, roughness }: Pick<WorldKind, 'hazards' | 'roughness'> = this.kind): void {
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

  takeBatch({ hazards, roughness }: Pick<WorldKind, 'hazards' | 'roughness'> = this.kind): void {
    const [environment, network] = this.place({ ...hazards, freeze: 0 }, roughness);
    this.watched(
      this.stream.takeBatch(environment, network, this.ledger, this.#log(environment), this.#metrics),
    );
  }

  sweep({ hazards, roughness }: Pick<WorldKind, 'hazards' | 'roughness'> = this.kind): void {
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
    const networked = networkedQuotas(quotas, network);
    const reached: QuotaStore['close'] = (write) => networked.close(write);
    const close = this.#mutation?.sweeps?.(reached) ?? reached;
    const run = createSweeper(
      { ...ports, quotas: { close }, metrics: this.#metrics, log: { ...log, event } },
      grace,
    );
    this.watched(run().then(() => failed || this.#checkSwept(startedMs, startedSeconds - graceSeconds - 1)));
  }

  /** A separate environment, and its access to the stores. */
  place(hazards: Hazards, roughness: Roughness): [Environment, Network] {
    const skewMs = this.random.integer(-skewMsMax, skewMsMax);
    const environment = new Environment(this.scheduler, this.random, hazards, skewMs);
    return [environment, new Network(this.scheduler, this.random, roughness, environment)];
  }

  /** Background work may fail only on the store, and its schedule then repeats it. */
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
    this.sweep({ hazards: calm, roughness: smooth });
  }

  finalGrants(): void {
    this.keepMissedGrants({ hazards: calm, roughness: smooth });
  }

  finalBatch(): void {
    this.takeBatch({ hazards: calm, roughness: smooth });
  }

  #wrote(change: Change): void {
    const { account, before, after, reserve, close, late } = change;
    if (late) this.counted(late.row);
    if (close) this.#closes(close);
    this.watch.saw(change, this.scheduler.nowMs);
    if (late) void this.ledger.putCounted([late.row]);
    if (change.move && after.shard === 0) this.#limits.moved(change);
    this.#notes(change);
    if (reserve) {
      const { asked } = this.watch.oracle.call(reserve.id);
      this.#limits.reserved(change, asked, this.scheduler.nowMs);
      this.#budgets.reserved(asked, reserve.entry);
    }
    this.stream.add({ item: account, account, before, after });
  }

  /** Puts a ledger row and counts its budget in one transaction. */
  #putRow(row: CloseRow): void {
    if (row.id.startsWith('late#')) return;
    this.counted(row);
    checkRow(row);
    if (row.kind === 'cancelled') return;
    this.watch.oracle.inLedger(row.id);
    for (const name of countersOf(row)) this.#budgets.changed(name.split(' ')[0] ?? '');
  }

  counted(row: CloseRow): void {
    for (const name of countersOf(row)) this.counters.count(name, budgetUseOf(row));
  }

  get redeemsTwice(): boolean {
    return this.#mutation?.redeemsTwice ?? false;
  }

  /** Checks the counters at the end of the world. */
  checkCounters(): void {
    this.seen.exactBudgets += this.#budgets.ended();
    this.seen.taggedBudgets += this.#budgets.tagged;
  }

  #notes({ before, after, amount = 0n, reserve, renew, close, move }: Change): void {
    if (after.shard === 0 && after.overdraft && !before?.overdraft) this.seen.overdrawn += 1;
    if (after.shard === 0 && move?.overdraft === 'ends') this.seen.overdraftsEnded += 1;
    if (after.shard === 0 && (before?.shardCount ?? 1) > after.shardCount && after.available < 0n)
      this.seen.joinedInDebt += 1;
    if (close?.entry.metered && after.shard >= firstCounter) this.seen.meteredOnCounters += 1;
    if (close?.entry.metered && after.shard < firstCounter) this.seen.meteredInParts += 1;
    if (renew) this.seen.renewed += 1;
    if (reserve?.uncountedLeases?.size) this.seen.pastCrashed += 1;
    if (amount < 0n && after.shard > 0) this.seen.correctedInParts += 1;
  }

  #closes(close: CloseWrite): void {
    this.#checkRuns(close);
    const { delivered } = this.watch.oracle.calls.get(close.id) ?? {};
    if (close.rateTokens !== undefined) this.#limits.closed(close.account, delivered?.outputTokens ?? 0);
  }

  /** A running call renews its lease, so the sweeper skips it. */
  #checkRuns({ id, closeRecord }: CloseWrite): void {
    if (closeRecord.kind !== 'expired') return;
    const runs = this.#servers.some(
      ({ environment, call, opened }) =>
        opened && call?.identity.requestId === id && !environment.crashed && !environment.stoodStill,
    );
    hold(!runs, `${id} expired while it ran`);
  }

  #newServer(): Server {
    const [environment, network] = this.place(this.kind.hazards, this.kind.roughness);
    const server = new Server(environment, network, {
      quotas: this.quotas,
      counters: this.counters,
      oracle: this.watch.oracle,
      mutation: this.#mutation,
      random: this.random,
      log: this.#log(environment),
    });
    this.#servers.push(server);
    return server;
  }

  /** Nothing stays open beyond its expiry, the grace period and one sweep. */
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

/** Ids as in the relay: the time, then a number that distinguishes ids of one moment. */
function requestId(nowMs: number, number: number): string {
  return timeText(nowMs) + String(number).padStart(16, '0');
}
