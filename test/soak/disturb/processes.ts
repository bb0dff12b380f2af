/** Faults of processes: kill, freeze, wrong clock. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { answeringFunctions } from '../../../infra/stack/constructs/function-descriptions.ts';
import type { SoakedStack } from '../stack/soaked-stack.ts';
import type { Disturbances } from './disturbances.ts';

const answering = new Set<string>(answeringFunctions);
const background = new Set(['config', 'ledger', 'grants', 'sweeper']);
/** The host notices a call to a dead process, and starts the next one. */
const restartMs = 1_500;
const skewSecondsMost = 120;
const skewTakenWithinMs = 15_000;
const skewForMs = 12_000;

export class ProcessFaults {
  readonly #stack: SoakedStack;
  readonly #around: Disturbances;

  constructor(stack: SoakedStack, around: Disturbances) {
    this.#stack = stack;
    this.#around = around;
  }

  killAnswering(): Promise<void> {
    return this.#kill('kill-answering', answering);
  }

  killBackground(): Promise<void> {
    return this.#kill('kill-background', background);
  }

  /** Freezes a process as Lambda does between requests, but during one. */
  async freeze(): Promise<void> {
    const pid = this.#victim(answering);
    if (pid === undefined) return;
    const freeze = this.#around.begin('freeze', this.#stack.environments.get(pid));
    signal(pid, 'SIGSTOP');
    await this.#around.pause(this.#around.random.integer(2_000, 5_000));
    signal(pid, 'SIGCONT');
    this.#around.over(freeze);
  }

  /** Gives the next process a wrong clock for some seconds, and kills one so that one starts. */
  async skewClock(): Promise<void> {
    const { clockFolder, environments } = this.#stack;
    const next = path.join(clockFolder, 'next');
    while (existsSync(next) && !this.#around.ended) await this.#around.pause(200);
    const { random } = this.#around;
    const seconds = random.integer(20, skewSecondsMost) * (random.chance(0.5) ? 1 : -1);
    const before = new Set(readdirSync(clockFolder));
    const skew = this.#around.begin('clock-skew');
    writeFileSync(next, String(seconds));
    const victim = this.#victim(answering);
    if (victim !== undefined) this.#stack.kill(victim);
    const until = Date.now() + skewTakenWithinMs;
    while (existsSync(next) && Date.now() < until && !this.#around.ended) await this.#around.pause(50);
    if (existsSync(next)) {
      // No process started. Remove the clock, or a later process would keep it.
      rmSync(next);
      skew.untilMs = Date.now();
      return;
    }
    const taken = readdirSync(clockFolder).find((name) => name.startsWith('taken') && !before.has(name));
    const [, pid, target] = /^taken (\d+) (\w+)/.exec(taken ?? '') ?? [];
    if (target !== undefined) skew.target = target;
    await this.#around.pause(skewForMs);
    // The clock must not outlive the soak, and the sweeper must not keep it.
    if (pid !== undefined && environments.has(Number(pid))) this.#stack.kill(Number(pid));
    await this.#around.pause(restartMs);
    this.#around.over(skew);
  }

  async #kill(kind: 'kill-answering' | 'kill-background', targets: ReadonlySet<string>): Promise<void> {
    const pid = this.#victim(targets);
    if (pid === undefined) return;
    const kill = this.#around.begin(kind, this.#stack.environments.get(pid));
    this.#stack.kill(pid);
    await this.#around.pause(restartMs);
    this.#around.over(kill);
  }

  #victim(targets: ReadonlySet<string>): number | undefined {
    const pids = [...this.#stack.environments].flatMap(([pid, target]) => (targets.has(target) ? [pid] : []));
    return pids[this.#around.random.integer(0, Math.max(0, pids.length - 1))];
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has exited in the meantime.
  }
}
