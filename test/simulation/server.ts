import { Reservations } from '../../shared/relay/money/reservations.ts';
import type { KeyCounters } from '../../shared/relay/ports/stores/key-counters.ts';
import type { Log } from '../../shared/relay/ports/telemetry.ts';
import type { Environment } from './environment.ts';
import { networkedQuotas, type Network } from './networked-store.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { StoredQuotas } from './stored-quotas.ts';

export interface ServerParts {
  quotas: StoredQuotas;
  counters: KeyCounters;
  random: SeededRandom;
  log: Log;
}

/** One environment of the chat function: one call at a time, and the reservations that it keeps from call to call. */
export class Server {
  readonly environment: Environment;
  readonly quotas: StoredQuotas;
  readonly reservations: Reservations;
  busy = false;

  constructor(environment: Environment, network: Network, { quotas, counters, random, log }: ServerParts) {
    this.environment = environment;
    this.quotas = quotas;
    const store = networkedQuotas(quotas, network);
    this.reservations = new Reservations({ clock: environment, random, quotas: store, counters, log });
  }
}
