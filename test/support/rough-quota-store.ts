import type { Clock } from '../../shared/relay/ports/host.ts';
import { StoreUnavailable, StoreBusy } from '../../shared/relay/ports/store-errors.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import type { MemoryQuotaStore } from './memory-quota-store.ts';

/**
 * The fate of one operation. `busy`: rejected before anything was done. `dropped`: never arrives, and the caller can't
 * know. `lost`: applied, but the reply is lost. `late`: the caller gives up, and it is applied that many milliseconds
 * later. `taken`: waits that long, then is applied and answered.
 */
export type Fault =
  | 'fine'
  | 'busy'
  | 'dropped'
  | 'lost'
  | { kind: 'late'; afterMs: number }
  | { kind: 'taken'; afterMs: number };

export type Operation = 'reserve' | 'close' | 'tombstone' | 'create' | Rare;
type Rare = 'renew' | 'read' | 'move' | 'chargeLate' | 'closedAs';

/** The in-memory quota store behind a network with the faults that the test sets. */
export class RoughQuotaStore implements QuotaStore {
  readonly inner: MemoryQuotaStore;
  /** Sent operations by name, whether or not they arrived. */
  readonly sent: Operation[] = [];
  readonly #clock: Clock;
  readonly #faults: Record<Operation, Fault[]> = {
    reserve: [],
    close: [],
    tombstone: [],
    create: [],
    renew: [],
    read: [],
    move: [],
    chargeLate: [],
    closedAs: [],
  };

  constructor(inner: MemoryQuotaStore, clock: Clock) {
    this.inner = inner;
    this.#clock = clock;
  }

  /** Sets the faults of the next operations of a kind, in order; later ones succeed. */
  meets(operation: Operation, ...faults: Fault[]): this {
    this.#faults[operation].push(...faults);
    return this;
  }

  /** Sets the fault of every later operation of these kinds. */
  always(fault: Fault, ...operations: Operation[]): this {
    for (const operation of operations) this.#faults[operation] = Array.from({ length: 10_000 }, () => fault);
    return this;
  }

  reserve: QuotaStore['reserve'] = (write) => this.#send('reserve', () => this.inner.reserve(write));
  close: QuotaStore['close'] = (write) => this.#send('close', () => this.inner.close(write));
  create: QuotaStore['create'] = (...given) => this.#send('create', () => this.inner.create(...given));
  tombstone: QuotaStore['tombstone'] = (write) => this.#send('tombstone', () => this.inner.tombstone(write));
  renew: QuotaStore['renew'] = (write) => this.#send('renew', () => this.inner.renew(write));

  read: QuotaStore['read'] = (account, parts) => this.#send('read', () => this.inner.read(account, parts));
  move: QuotaStore['move'] = (write) => this.#send('move', () => this.inner.move(write));
  chargeLate: QuotaStore['chargeLate'] = (charge) =>
    this.#send('chargeLate', () => this.inner.chargeLate(charge));
  closedAs: QuotaStore['closedAs'] = (account, id) =>
    this.#send('closedAs', () => this.inner.closedAs(account, id));

  async #send<T>(operation: Operation, act: () => Promise<T>): Promise<T> {
    this.sent.push(operation);
    const fault = this.#faults[operation].shift() ?? 'fine';
    if (fault === 'fine') return act();
    if (fault === 'busy') throw new StoreBusy('throttled');
    if (fault === 'lost') await act();
    else if (fault !== 'dropped') {
      const later = this.#clock.sleep(fault.afterMs).then(act);
      if (fault.kind === 'taken') return later;
    }
    throw new StoreUnavailable('no reply');
  }
}
