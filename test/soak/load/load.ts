/** The calls of a soak: ordinary calls all the time; each due fault is injected into the next call. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../simulation/seeded-random.ts';
import type { CallSeen } from '../checker/observations.ts';
import { isUpstreamFault, longCalls, type CallFault } from '../plan/fault-kinds.ts';
import type { PlannedCall } from '../upstream/soak-upstream.ts';
import { CallClient, type CallPlan } from './call-client.ts';
import {
  callsModel,
  closedModel,
  freeModel,
  lateModel,
  limitedModels,
  pairModel,
  soakKeys,
  soloModels,
  steadyModels,
} from './rows.ts';

export interface LoadOptions {
  seed: number;
  origin: string;
  workers: number;
  expect(call: PlannedCall): void;
  /** Called when a call has ended. */
  seen(call: CallSeen): void;
  injected(fault: CallFault): void;
}

const vocabulary =
  'river stone cloud winter garden silver window morning letter paper ocean forest candle bridge'.split(' ');
const wordsLeast = 8;
const wordsMost = 30;
const pauseMs = 40;
const thinkMs = 400;
/** About 20 MB for its client: more than the sockets in between can buffer. */
const stalledWords = 80_000;
const slowWords = 6_000;
/** Share of recoverable faults that hit a model with a second channel. */
const pairShare = 0.35;
const rateFaults = new Set(['rate-limited', 'rate-limited-retry-after']);

export class Load {
  readonly #options: LoadOptions;
  readonly #random: SeededRandom;
  readonly #client: CallClient;
  readonly #due: CallFault[] = [];
  readonly #running = new Set<Promise<void>>();
  #number = 0;
  #ended = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed + 1);
    this.#client = new CallClient(options.origin);
  }

  start(): void {
    for (let worker = 0; worker < this.#options.workers; worker += 1) this.#keep(this.#work());
  }

  /** Injects the fault into the next call, or into its own call if the fault takes long. */
  inject(fault: CallFault): void {
    if (longCalls.has(fault)) this.#keep(this.#call(fault));
    else this.#due.push(fault);
  }

  get inFlight(): number {
    return this.#running.size;
  }

  /** Resolves when all calls have ended. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#running);
    this.#client.close();
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#running.delete(kept));
    this.#running.add(kept);
  }

  async #work(): Promise<void> {
    while (!this.#ended) {
      await this.#call(this.#due.shift());
      await sleep(this.#random.integer(0, 2 * thinkMs));
    }
  }

  async #call(fault: CallFault | undefined): Promise<void> {
    this.#number += 1;
    const plan = this.#planOf(this.#number, fault);
    this.#options.expect({
      number: plan.number,
      fault: plan.fault,
      words: this.#wordsFor(plan),
      pauseMs: plan.fault === 'stalled-reader' || plan.fault === 'slow-reader' ? 0 : pauseMs,
      wordsPerPiece: plan.fault === 'stalled-reader' ? 1000 : plan.fault === 'slow-reader' ? 100 : 1,
      everyAttempt: plan.model !== pairModel,
    });
    if (fault !== undefined) this.#options.injected(fault);
    this.#options.seen(await this.#client.call(plan));
  }

  #planOf(number: number, fault: CallFault | undefined): CallPlan {
    const random = this.#random;
    const isLong = fault !== undefined && longCalls.has(fault);
    const mustStream = isLong || fault === 'hang-up-late';
    const plan: CallPlan = {
      number,
      fault: fault ?? 'none',
      key: soakKeys[random.integer(0, soakKeys.length - 1)] ?? raise('no keys'),
      model: this.#modelFor(fault),
      endpoint: random.chance(0.3) && fault !== 'stalled-reader' ? 'responses' : 'chat',
      streamed: mustStream || random.chance(0.75),
      ...(isLong && fault !== 'late-answer' && { maxTokens: 120_000 }),
    };
    return fault === 'bad-request' ? { ...plan, ...this.#wrong(number) } : plan;
  }

  #modelFor(fault: CallFault | undefined): string {
    const random = this.#random;
    if (fault === 'late-answer') return lateModel;
    if (fault === 'refused-connection') return closedModel;
    if (fault !== undefined && rateFaults.has(fault)) return random.pick(limitedModels);
    if (fault !== undefined && isUpstreamFault(fault))
      return random.chance(pairShare) ? pairModel : random.pick(soloModels);
    if (fault !== undefined) return random.pick(steadyModels);
    const steady = random.chance(0.5);
    if (steady) return random.pick(steadyModels);
    return random.pick([callsModel, freeModel, pairModel, ...soloModels, ...limitedModels]);
  }

  /** An invalid request, and the required status. */
  #wrong(number: number): Pick<CallPlan, 'wrong'> {
    const user = [{ role: 'user', content: 'Hello' }];
    const wrongs: NonNullable<CallPlan['wrong']>[] = [
      { body: '{"model":', status: 400 },
      { body: JSON.stringify({ model: 'soak-no-such-model', messages: user, input: 'Hello' }), status: 404 },
      { body: JSON.stringify({ model: steadyModels[0] }), status: 400 },
      { key: 'sk-nobody', status: 401 },
    ];
    return { wrong: wrongs[number % wrongs.length] };
  }

  /** The first word is unique to the call. */
  #wordsFor({ number, fault }: CallPlan): string[] {
    const random = this.#random;
    if (fault === 'stalled-reader')
      return [`call${number}`, ...Array.from({ length: stalledWords }, () => ' a')];
    const count = fault === 'slow-reader' ? slowWords : random.integer(wordsLeast, wordsMost);
    const words = Array.from(
      { length: count },
      () => ` ${vocabulary[random.integer(0, vocabulary.length - 1)]}`,
    );
    const last = fault === 'odd-sse' ? [' \u6cb3\u5ddd\u00e9'] : [];
    return [`call${number}`, ...words, ...last];
  }
}

function raise(message: string): never {
  throw new Error(message);
}
