import { Reservations } from '../../shared/relay/money/reservations.ts';
import type { BillableCall } from '../../shared/relay/money/call-costs.ts';
import type { ReservationsPorts } from '../../shared/relay/money/open-reservation.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import type { Oracle } from '../oracle/oracle.ts';
import type { Environment } from './environment.ts';
import type { Mutation } from './mutations.ts';
import { networkedQuotas, type Network } from './networked-store.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { StoredCounters } from './stored-counters.ts';
import type { StoredQuotas } from './stored-quotas.ts';

export interface ServerParts {
  quotas: StoredQuotas;
  counters: StoredCounters;
  oracle: Oracle;
  random: SeededRandom;
  log: Log;
  mutation: Mutation | undefined;
}

/** One environment of the chat function: one call at a time, with reservations that it keeps between calls. */
export class Server {
  readonly environment: Environment;
  readonly quotas: StoredQuotas;
  readonly oracle: Oracle;
  readonly mutation: Mutation | undefined;
  readonly reservations: Reservations;
  /** Replies that this environment did not receive. */
  readonly faults: () => number;
  readonly ports: ReservationsPorts;
  readonly #counters: StoredCounters;
  busy = false;
  /** Its current call, and whether that has reserved. */
  call: BillableCall | undefined;
  opened = false;

  constructor(environment: Environment, network: Network, parts: ServerParts) {
    const { quotas, counters, oracle, random, log, mutation } = parts;
    this.environment = environment;
    this.quotas = quotas;
    this.oracle = oracle;
    this.mutation = mutation;
    this.faults = () => network.faults;
    this.#counters = counters;
    const ports: ReservationsPorts = {
      clock: environment,
      random,
      quotas: networkedQuotas(quotas, network),
      counters: counters.reachedBy(network),
      log,
    };
    this.ports = ports;
    this.reservations = mutation?.reservations?.(ports, () => this.call) ?? new Reservations(ports);
    // The reserved budget of a call that died stays reserved until the period ends.
    environment.died = () => {
      if (this.busy && !this.opened) this.losesBudget();
    };
  }

  losesBudget(): void {
    const { key, account } = this.call ?? {};
    if (key?.budget) this.#counters.inexact.add(key.hash.slice(0, 12));
    if (account?.budgets) this.#counters.inexact.add(account.account);
  }

  free(): void {
    this.busy = false;
    this.opened = false;
    this.call = undefined;
    this.environment.stoodStill = false;
    this.environment.spared = false;
  }
}
