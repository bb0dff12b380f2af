import { StoreUnavailable, StoreBusy } from '../../shared/relay/ports/store-errors.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import type { Environment } from './environment.ts';
import type { Scheduler } from './scheduler.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface Roughness {
  busy: number;
  /** The chance that the request never arrives. */
  dropped: number;
  /** The chance that it is applied, but the reply never arrives. */
  lost: number;
  /** The chance that the caller gives up before it is applied. */
  late: number;
}

export const smooth: Roughness = { busy: 0, dropped: 0, lost: 0, late: 0 };

const requestTimeoutMs = 1_000;
const lateMsMax = 8_000;
const networkMsMax = 20;

/**
 * The network between an environment and a store. Like the design, it assumes that a reserve which arrives after its
 * caller gave up finds that caller alive and able to write the guard, and that a call has late retries of its reserve
 * or of its close, not both. (`ops audit` finds two such faults in one call.)
 */
export class Network {
  readonly #scheduler: Scheduler;
  readonly #random: SeededRandom;
  readonly #roughness: Roughness;
  readonly #environment: Environment;
  /** Replies that never arrived. */
  faults = 0;

  constructor(scheduler: Scheduler, random: SeededRandom, roughness: Roughness, environment: Environment) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#roughness = roughness;
    this.#environment = environment;
  }

  /** `opens`: the operation reserves something of an account, so a late arrival needs a guard. */
  send<T>(act: () => Promise<T>, opens = false): Promise<T> {
    const environment = this.#environment;
    return new Promise((resolve, reject) => {
      const timeOut = (): void =>
        environment.after(requestTimeoutMs, () => reject(new StoreUnavailable('no reply')));
      const fault = this.#fault();
      if (fault !== undefined && fault !== 'busy') this.faults += 1;
      if (fault === 'busy') environment.after(this.#delay(), () => reject(new StoreBusy('throttled')));
      else if (fault === 'dropped') timeOut();
      else if (fault === 'late') {
        if (opens) environment.spared = true;
        this.#scheduler.after(requestTimeoutMs + this.#random.integer(0, lateMsMax), () => void act());
        timeOut();
      } else {
        const applied = (): void => {
          const reply = act();
          if (fault === undefined) environment.after(this.#delay(), () => resolve(reply));
        };
        this.#scheduler.after(this.#delay(), applied);
        if (fault === 'lost') timeOut();
      }
    });
  }

  #fault(): keyof Roughness | undefined {
    if (this.#environment.spared) return undefined;
    let chance = this.#random.next();
    for (const fault of ['busy', 'lost', 'dropped', 'late'] as const) {
      if (chance < this.#roughness[fault]) return fault;
      chance -= this.#roughness[fault];
    }
    return undefined;
  }

  #delay(): number {
    return this.#random.integer(0, networkMsMax);
  }
}

/** The quota store as an environment reaches it. */
export const networkedQuotas = (store: QuotaStore, network: Network): QuotaStore => ({
  reserve: (write) => network.send(() => store.reserve(write), true),
  close: (write) => network.send(() => store.close(write)),
  tombstone: (write) => network.send(() => store.tombstone(write)),
  renew: (write) => network.send(() => store.renew(write)),
  create: (...given) => network.send(() => store.create(...given)),
  read: (account, parts, exact) => network.send(() => store.read(account, parts, exact)),
  move: (write) => network.send(() => store.move(write)),
  chargeLate: (charge) => network.send(() => store.chargeLate(charge)),
  closedAs: (...given) => network.send(() => store.closedAs(...given)),
});
