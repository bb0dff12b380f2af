/** Stories of stored answers on the running stack, whose processes and store fail while clients come and go. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../shared/relay/ports/host.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { BackgroundStory } from './background-story.ts';
import { ForegroundStory } from './foreground-story.ts';
import { KeyedStory } from './keyed-story.ts';
import type { Asked } from './seeded-client.ts';
import { strangerSees } from './stranger.ts';
import type { EndpointName, Owned, Stage, Story, Reported } from './stage.ts';
import { inputOf } from './slow-answer.ts';
import { accountOf, randomFault, strangersKey, type StoredStack } from './stored-stack.ts';

const befalls = ['nothing', 'killed', 'killed', 'stands still', 'store fails', 'store fails'] as const;
type Befalls = (typeof befalls)[number];

export interface StackRun extends Story {
  seed: number;
  pieces: number;
  befell: Befalls;
}

const realClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {}),
};

type Teller = (stage: Stage) => { tell(): Promise<Story> };
const tellers: readonly [Teller, ...Teller[]] = [
  (stage) => new BackgroundStory(stage),
  (stage) => new ForegroundStory(stage),
  (stage) => new KeyedStory(stage),
];

export async function runOnStack(
  stack: StoredStack,
  seed: number,
  expiring: [number, string][],
): Promise<StackRun> {
  const stage = new StackStage(stack, seed, expiring);
  const story = await stage.random.pick(tellers)(stage).tell();
  return { seed, pieces: stage.pieces, befell: stage.befalls, ...story };
}

class StackStage implements Stage {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly clock = realClock;
  readonly pieces: number;
  readonly answerMs: number;
  readonly input: string;
  readonly strangersKey = strangersKey;
  readonly befalls: Befalls;
  readonly #stack: StoredStack;
  readonly #expiring: [number, string][];
  readonly #begunMs = Date.now();

  constructor(stack: StoredStack, seed: number, expiring: [number, string][]) {
    this.#stack = stack;
    this.seed = seed;
    this.#expiring = expiring;
    this.random = new SeededRandom(seed);
    this.pieces = this.random.integer(1, 20);
    const gapMs = this.random.integer(20, 300);
    this.answerMs = this.pieces * gapMs;
    this.input = inputOf(seed, this.pieces, gapMs);
    this.befalls = this.random.pick(befalls);
  }

  ask = (asked: Asked) => this.#stack.ask(accountOf(this.seed), asked);
  own = (asked: Asked): Promise<Owned> => this.#stack.own(accountOf(this.seed), asked);

  async strike(at: EndpointName | 'background'): Promise<void> {
    const { random } = this;
    if (this.befalls === 'killed') await this.#signal(at, 'SIGKILL');
    if (this.befalls === 'stands still') {
      const pid = await this.#signal(at, 'SIGSTOP');
      const isLong = at === 'background' && random.chance(0.2);
      await sleep(isLong ? 75_000 : random.integer(500, 5_000));
      if (pid !== undefined) this.#stack.resume(pid);
    }
    if (this.befalls === 'store fails')
      this.#stack.failStore(randomFault(random), {
        tables: random.pick<string[]>([
          ['responses'],
          ['quotas'],
          ['runtime'],
          ['responses', 'quotas', 'runtime'],
        ]),
        share: random.pick([0.3, 1]),
        forMs: random.integer(200, 2_500),
      });
  }

  /** Of a background response, its followers are struck, too, and runs that have not asked their upstream. */
  async #signal(at: EndpointName | 'background', signal: NodeJS.Signals): Promise<number | undefined> {
    const { random, seed } = this;
    const name = at === 'chat/completions' ? 'chat' : at;
    const isOther = at === 'background' && random.chance(0.2);
    if (isOther) return this.#stack.signalAny('responses', random, signal);
    for (let tries = 0; tries < 20; tries += 1) {
      const pid = this.#stack.signal(name, seed, signal);
      if (pid !== undefined) return pid;
      await sleep(100); // Its upstream has not been called yet.
    }
    return at === 'background' ? this.#stack.signalAny(at, random, signal) : undefined;
  }

  reportedEnd(requestId: string, at: EndpointName): Promise<Reported> {
    return this.#stack.reportedEnd(requestId, at, this.#begunMs);
  }

  stranger = (id: string): Promise<void> => strangerSees(this, id);

  remember(id: string): void {
    this.#expiring.push([this.seed, id]);
  }
}
