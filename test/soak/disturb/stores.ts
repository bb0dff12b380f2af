/** Faults of the store, injected by the proxy in front of it. */
import type { FaultProxy, FaultRule } from '../../support/fault-proxy.ts';
import type { Disturbances } from './disturbances.ts';

const writes = ['UpdateItem', 'PutItem', 'TransactWriteItems'];
const longMs = 5_000;
const longShare = 0.1;

type StoreFault = 'store-throttled' | 'store-down' | 'store-reply-lost' | 'store-slow';

export class StoreFaults {
  readonly #store: FaultProxy;
  readonly #around: Disturbances;

  constructor(store: FaultProxy, around: Disturbances) {
    this.#store = store;
    this.#around = around;
  }

  throttle(): Promise<void> {
    const share = this.#around.random.pick([0.1, 0.5, 1]);
    return this.#strike('store-throttled', { fault: { kind: 'throttle' }, share });
  }

  breakDown(): Promise<void> {
    const kind = this.#around.random.pick(['error', 'hang_up'] as const);
    return this.#strike('store-down', { fault: { kind } });
  }

  loseReplies(): Promise<void> {
    const share = this.#around.random.pick([0.3, 1]);
    return this.#strike('store-reply-lost', { fault: { kind: 'lost_reply' }, share, operations: writes });
  }

  slowDown(): Promise<void> {
    const delayMs = this.#around.random.integer(400, 1_000);
    return this.#strike('store-slow', { fault: { kind: 'slow', delayMs } });
  }

  /** Records the fault only if it hit a call. */
  async #strike(kind: StoreFault, rule: FaultRule): Promise<void> {
    const { random } = this.#around;
    const forMs =
      kind === 'store-throttled' && random.chance(longShare) ? longMs : random.integer(700, 1_800);
    const struck = (): number => this.#store.counts.faults[rule.fault.kind] ?? 0;
    const before = struck();
    const fault = this.#around.begin(kind);
    const id = this.#store.rules.add({ services: ['dynamodb'], ...rule });
    await this.#around.pause(forMs);
    this.#store.rules.remove(id);
    if (struck() > before) this.#around.over(fault);
    else fault.untilMs = Date.now();
  }
}
