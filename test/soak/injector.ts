/** Injects the planned faults on time; faults of the stack of one kind never overlap. */
import type { Load } from './load/load.ts';
import { isCallFault, storeFaults, type StackFault } from './plan/fault-kinds.ts';
import type { PlannedFault } from './plan/fault-plan.ts';

export type StackFaultActions = Record<StackFault, () => Promise<void>>;

export class Injector {
  readonly #load: Load;
  readonly #actions: StackFaultActions;
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(load: Load, actions: StackFaultActions) {
    this.#load = load;
    this.#actions = actions;
  }

  start(plan: readonly PlannedFault[]): void {
    for (const { atMs, kind } of plan)
      this.#timers.push(
        setTimeout(() => {
          if (isCallFault(kind)) this.#load.inject(kind);
          else this.#queue(kind);
        }, atMs),
      );
  }

  /** Resolves when the started faults are over. */
  async end(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#lanes.values());
  }

  #queue(kind: StackFault): void {
    const lane = storeFaults.has(kind) ? 'store' : kind;
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    this.#lanes.set(
      lane,
      before.then(() => this.#actions[kind]()),
    );
  }
}
