/**
 * Looks after a run: prolongs its claim, and stops it when it was cancelled, deleted or found dead, or when its time is up.
 * A run that may no longer write must not go on at an upstream's expense.
 */
import type { Clock } from '../../ports/clock.ts';
import { StoreBusy, StoreUnavailable } from '../../ports/stores/store-errors.ts';
import type { Run } from '../../ports/stored/run-store.ts';
import type { ResponseHead } from '../../ports/stored/stored-response.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { StoredPorts } from '../../ports/stored/stored-ports.ts';
import { requestIdOf } from './handed-call.ts';

/** How long a run counts as alive without a word of it. */
export const claimSeconds = 60;
const lookEveryMs = 1_000;
const renewEveryMs = 20_000;

/** `dead`: a reader found its claim passed, or another run has it. */
export type StopReason = 'cancelled' | 'deleted' | 'dead' | 'deadline';

export interface WatchedRun {
  run: Run;
  /** Unix seconds: the end of the claim. */
  until: number;
  deadlineMs: number;
  /** Aborts when the host has to end before. */
  hostEnds?: AbortSignal | undefined;
}

type WatchPorts = { clock: Clock; log: Log; stored: Pick<StoredPorts, 'responses' | 'runs'> };

export class RunWatch {
  readonly #ports: WatchPorts;
  readonly #run: Run;
  readonly #deadlineMs: number;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #until: number;
  #renewedMs: number;
  /** Undefined: the run goes on. */
  reason: StopReason | undefined;

  constructor(ports: WatchPorts, { run, until, deadlineMs, hostEnds }: WatchedRun) {
    this.#ports = ports;
    this.#run = run;
    this.#until = until;
    this.#deadlineMs = deadlineMs;
    this.#renewedMs = ports.clock.now();
    if (hostEnds?.aborted) this.#end('deadline');
    hostEnds?.addEventListener('abort', () => this.#end('deadline'), { signal: this.#over.signal });
  }

  /** Aborts when the run is to stop. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether readers count on the run, by its own clock. */
  get holds(): boolean {
    return (
      this.#ports.clock.now() < this.#until * 1000 && this.reason !== 'dead' && this.reason !== 'deleted'
    );
  }

  /** The end of the claim, in Unix seconds. */
  get until(): number {
    return this.#until;
  }

  /** Looks until `stop` is called. Never rejects. */
  async watch(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await clock.sleep(Math.max(0, Math.min(lookEveryMs, this.#deadlineMs - clock.now())), signal);
      if (signal.aborted) return;
      if (clock.now() >= this.#deadlineMs) {
        this.#end('deadline');
        await clock.sleep(lookEveryMs, signal);
      }
      await this.look();
    }
  }

  stop(): void {
    this.#over.abort('over');
  }

  /** Looks once. A store that does not answer is asked again a second later. */
  async look(): Promise<void> {
    try {
      this.#saw(await this.#head());
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof StoreBusy))
        this.#ports.log.fault(requestIdOf(this.#run.id), error);
    }
  }

  async #head(): Promise<ResponseHead | undefined> {
    const { clock, stored } = this.#ports;
    const { account, id } = this.#run;
    const nowMs = clock.now();
    if (nowMs - this.#renewedMs < renewEveryMs) return (await stored.responses.heads(account, [id])).get(id);
    const until = Math.floor(nowMs / 1000) + claimSeconds;
    const head = await stored.runs.renew(this.#run, until);
    if (head?.status === 'in_progress') {
      this.#until = until;
      this.#renewedMs = nowMs;
    }
    return head;
  }

  #saw(head: ResponseHead | undefined): void {
    if (!head) this.#end('deleted');
    else if (head.status === 'cancelled') this.#end('cancelled');
    else if (head.status !== 'in_progress' || head.background?.run !== this.#run.run) this.#end('dead');
  }

  /** The first reason stays, but nothing is written for what was deleted. */
  #end(reason: StopReason): void {
    if (this.#over.signal.aborted) return;
    this.reason ??= reason;
    this.#stop.abort(reason);
  }
}
