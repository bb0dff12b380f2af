/**
 * Watches a run: renews its claim, and stops it when it was cancelled, deleted or found dead, or when its time is up. A run that
 * may no longer write must stop, because its upstream still charges for it.
 */
import type { ChatPorts } from '../ports/chat-ports.ts';
import { StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';
import type { ResponseHead, Run } from '../ports/stored.ts';
import { requestIdOf } from './accepted-call.ts';

/** A run counts as dead if it has not renewed its claim for this long. */
export const claimSeconds = 60;
const lookEveryMs = 1_000;
const renewEveryMs = 20_000;

/** `dead`: a reader found its claim expired, or another run took it over. */
type StopReason = 'cancelled' | 'deleted' | 'dead' | 'deadline';

interface WatchedRun {
  run: Run;
  /** The first end of the claim, in Unix seconds. */
  until: number;
  deadlineMs: number;
  /** Aborts when the host must end before the deadline. */
  hostEnds?: AbortSignal | undefined;
}

export class RunWatch {
  readonly #ports: Pick<ChatPorts, 'clock' | 'log' | 'stored'>;
  readonly #of: WatchedRun;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #renewedMs: number;
  /** The end of the claim, in Unix seconds. */
  until: number;
  /** Aborts when the run is to stop. */
  readonly signal = this.#stop.signal;
  reason: StopReason | undefined;

  constructor(ports: Pick<ChatPorts, 'clock' | 'log' | 'stored'>, of: WatchedRun) {
    this.#ports = ports;
    this.#of = of;
    this.until = of.until;
    this.#renewedMs = ports.clock.now();
  }

  /** True until the claim expires by this process's clock or is lost. Readers trust the run that long. */
  get holds(): boolean {
    const isLost = this.reason === 'dead' || this.reason === 'deleted';
    return this.#ports.clock.now() < this.until * 1000 && !isLost;
  }

  /** Looks until `stop` is called. Never rejects. */
  async watch(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#over;
    const { deadlineMs, hostEnds } = this.#of;
    if (hostEnds?.aborted) this.#end('deadline');
    hostEnds?.addEventListener('abort', () => this.#end('deadline'), { signal });
    while (!signal.aborted) {
      await clock.sleep(Math.max(0, Math.min(lookEveryMs, deadlineMs - clock.now())), signal);
      if (signal.aborted) return;
      if (clock.now() >= deadlineMs) {
        this.#end('deadline');
        await clock.sleep(lookEveryMs, signal);
      }
      await this.look();
    }
  }

  /** Call it if the client cancelled the run before its answer arrived. */
  markCancelled(): void {
    this.reason = 'cancelled';
  }

  stop(): void {
    this.#over.abort('over');
  }

  /** Looks once. A store that does not answer is asked again a second later. */
  async look(): Promise<void> {
    const { run } = this.#of;
    try {
      const head = await this.#readHead();
      if (!head) this.#end('deleted');
      else if (head.status === 'cancelled') this.#end('cancelled');
      else if (head.status !== 'in_progress' || head.background?.run !== run.run) this.#end('dead');
    } catch (error) {
      if (!mayPass(error)) this.#ports.log.fault(requestIdOf(run.id), error);
    }
  }

  async #readHead(): Promise<ResponseHead | undefined> {
    const { clock, stored } = this.#ports;
    const { run } = this.#of;
    const nowMs = clock.now();
    if (nowMs - this.#renewedMs < renewEveryMs)
      return (await stored.responses.heads(run.account, [run.id])).get(run.id);
    const until = Math.floor(nowMs / 1000) + claimSeconds;
    const head = await stored.runs.renew(run, until);
    if (head?.status === 'in_progress') {
      this.until = until;
      this.#renewedMs = nowMs;
    }
    return head;
  }

  /** The first reason stays, but nothing is written for what was deleted. */
  #end(reason: StopReason): void {
    if (this.#over.signal.aborted) return;
    this.reason ??= reason;
    this.#stop.abort(reason);
  }
}

/** True if the store may answer again in a moment. */
export const mayPass = (error: unknown): boolean =>
  error instanceof StoreUnavailable || error instanceof StoreBusy;
