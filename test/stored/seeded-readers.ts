import type { EventLog, ResponseStatus } from '../../shared/relay/ports/stored.ts';
import { StoreBusy, StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import {
  account,
  answerTexts,
  FollowedRig,
  frame,
  id,
  type Read,
} from '../unit/relay/stored/events/followed-rig.ts';
import type { EventWriter } from '../../shared/relay/stored/run-recorder.ts';
import { hold, isNumbered, statusOf } from './seen-events.ts';

/** The ending of a run in a world. */
const endings = [
  'completed',
  'incomplete',
  'failed',
  'cancelled',
  'killed',
  'paused',
  'deleted',
  'never begun',
] as const;
type Ending = (typeof endings)[number];

export interface World {
  seed: number;
  ending: Ending;
  /** The end that all readers saw. Undefined if the response was deleted. */
  status: string | undefined;
  events: number;
  /** Number of disconnects, rejected store calls and lost replies. */
  cuts: number;
  faults: number;
}

/** A store with occasional faults: it rejects a call or loses its reply. */
class RoughEvents {
  faults = 0;
  readonly #random: SeededRandom;
  readonly #chance: number;
  well = false;
  /** Once the run is killed, nothing that it waits for resolves. */
  runIsDead = false;

  constructor(random: SeededRandom, chance: number) {
    this.#random = random;
    this.#chance = chance;
  }

  async call<T>(work: () => Promise<T>): Promise<T> {
    const fault = !this.well && this.#random.chance(this.#chance) ? this.#random.integer(0, 2) : undefined;
    if (fault !== undefined) this.faults += 1;
    if (fault === 0) throw new StoreBusy();
    if (fault === 1) throw new StoreUnavailable();
    const result = await work();
    if (fault === 2) throw new StoreUnavailable();
    return result;
  }

  events(log: EventLog): EventLog {
    return {
      append: (...given) => (this.runIsDead ? new Promise(() => {}) : this.call(() => log.append(...given))),
      after: (...given) => this.call(() => log.after(...given)),
      last: (...given) => this.call(() => log.last(...given)),
    };
  }
}

/** One world: a response, its run, disconnected readers, a stranger, and a failing store. Throws on any violation. */
export async function readersWorld(seed: number): Promise<World> {
  const random = new SeededRandom(seed);
  const rig = new FollowedRig();
  const rough = new RoughEvents(random, random.pick([0, 0, 0.05, 0.3]));
  const ending = random.pick(endings);
  const run = new SeededRun(rig, { random, rough, ending });
  await rig.accept();
  const rigEvents = rough.events(rig.events);
  Object.assign(rig, { events: rigEvents });
  const readers = Array.from({ length: random.integer(1, 4) }, () => new SeededReader(rig, random));
  const stranger = strangersView(rig);
  const work = [run.run(), ...readers.map((reader) => reader.read(ending === 'deleted'))];
  await rig.clock.run(Promise.all(work));
  stranger.stop();
  rough.well = true;
  await rig.clock.run(stranger.done);
  const cuts = readers.reduce((sum, reader) => sum + reader.cuts, 0);
  const said = { seed, ending, cuts, faults: rough.faults };
  if (ending === 'deleted') {
    const longest = readers.map(({ events }) => events).toSorted((a, b) => b.length - a.length)[0] ?? [];
    for (const { events } of readers)
      hold(isStart(events, longest), 'a reader of what was deleted saw other events');
    hold((await attempt(rig, {})) === 404, 'what was deleted can be followed');
    return { ...said, status: undefined, events: longest.length };
  }
  const uncut = (await rig.clock.run(rig.read())).events;
  for (const { events } of readers)
    hold(
      JSON.stringify(events) === JSON.stringify(uncut),
      `a reader saw\n${events.join('')}not\n${uncut.join('')}`,
    );
  await checkEvents(rig, uncut);
  const status = statusOf(uncut);
  hold(run.expects(status), `${ending} ended as ${status}`);
  await rig.clock.run(rig.clock.sleep(1_600_000));
  hold((await attempt(rig, { after: 0 })) === 400, 'events are kept for longer than they should be');
  await rig.clock.run(rig.clock.sleep(30 * 86_400_000));
  hold((await attempt(rig, {})) === 404, 'the response is there after it has expired');
  hold(rig.faults.length === 0, `a fault: ${String(rig.faults[0])}`);
  return { ...said, status, events: uncut.length };
}

async function checkEvents(rig: FollowedRig, events: string[]): Promise<void> {
  isNumbered(events);
  const found = (await rig.stored.responses.read(account, [id])).get(id);
  hold(found?.head.status === statusOf(events), 'the last event has another status than the store');
}

const isStart = (some: string[], all: string[]): boolean => some.every((event, i) => event === all[i]);

/** The status of a rejected follow request, or 200. */
async function attempt(rig: FollowedRig, more: Parameters<FollowedRig['follow']>[0]): Promise<number> {
  return rig.clock.run(
    rig.follow(more).then(
      async (response) => {
        for await (const _ of response.body as AsyncIterable<string>) break;
        await response.done;
        return response.status;
      },
      (error: { status?: number }) => error.status ?? 400,
    ),
  );
}

/** Another account that keeps asking, and must never find anything. */
function strangersView(rig: FollowedRig): { stop: () => void; done: Promise<void> } {
  const over = new AbortController();
  const done = (async () => {
    while (!over.signal.aborted) {
      await rig.clock.sleep(1_700, over.signal);
      const seen = await rig.follow({ by: 'stranger' }).then(
        () => 'events',
        (error: { status?: number }) => error.status,
      );
      hold(seen === 404, `a stranger saw ${seen}`);
    }
  })();
  done.catch(() => {});
  return { stop: () => over.abort(), done };
}

interface Fate {
  random: SeededRandom;
  rough: RoughEvents;
  ending: Ending;
}

/** A run of the product that may freeze or die at any text. */
class SeededRun {
  readonly #rig: FollowedRig;
  readonly #fate: Fate;
  readonly #texts: string[];
  readonly #fatalAt: number;
  #canFinish = true;

  constructor(rig: FollowedRig, fate: Fate) {
    const { random } = fate;
    this.#rig = rig;
    this.#fate = fate;
    this.#texts = answerTexts(random.integer(0, 30), random.chance(0.1) ? 'x'.repeat(20_000) : 'piece');
    this.#fatalAt = random.integer(0, this.#texts.length);
  }

  expects(status: string): boolean {
    const { ending, rough } = this.#fate;
    if (ending === 'killed' || ending === 'never begun') return status === 'failed';
    // The store may have failed for as long as the claim lasted.
    if (ending === 'paused' || !this.#canFinish) return status === 'completed' || status === 'failed';
    return status === ending || (rough.faults > 0 && status === 'failed');
  }

  async run(): Promise<void> {
    const { random, ending } = this.#fate;
    const { clock } = this.#rig;
    if (ending === 'never begun') return;
    await clock.sleep(random.integer(0, 4_000));
    const writer = await this.#rig.begin();
    hold((await this.#claimedAgain()) === undefined, 'two runs have claimed one response');
    const stop = new AbortController();
    const renewed = this.#renew(stop.signal);
    for (const [i, text] of this.#texts.entries()) {
      if (i === this.#fatalAt && !(await this.#fatal(stop))) return;
      writer.wrote(random.chance(0.1) ? `: ping\n\n${text}` : text);
      await clock.sleep(random.chance(0.1) ? random.integer(0, 12_000) : random.integer(0, 900));
    }
    if (this.#fatalAt === this.#texts.length && !(await this.#fatal(stop))) return;
    await this.#finish(writer);
    stop.abort();
    await renewed;
  }

  /** A second delivery of the event that starts the run. */
  #claimedAgain(): Promise<unknown> {
    return this.#rig.stored.runs.claim({ account, id, run: 'second' }, this.#rig.now() + 60);
  }

  async #renew(stop: AbortSignal): Promise<void> {
    const rig = this.#rig;
    for (;;) {
      await rig.clock.sleep(20_000, stop);
      if (stop.aborted) return;
      const until = rig.now() + 60;
      const head = await rig.stored.runs.renew({ account, id, run: 'first' }, until);
      if (head?.status !== 'in_progress') return;
      rig.until = until;
    }
  }

  /** Whether the run continues after the fault. */
  async #fatal(stop: AbortController): Promise<boolean> {
    const { random, rough, ending } = this.#fate;
    const rig = this.#rig;
    if (ending === 'cancelled') await rig.stored.runs.cancel(account, id);
    if (ending === 'deleted') await rig.stored.responses.remove(account, id);
    if (ending !== 'killed' && ending !== 'paused') return true;
    stop.abort();
    if (ending === 'killed') {
      rough.runIsDead = true;
      return false;
    }
    this.#canFinish = false;
    await rig.clock.sleep(random.integer(1_000, 200_000));
    return true;
  }

  async #finish(writer: EventWriter): Promise<void> {
    const { ending } = this.#fate;
    const [type, status]: [string, ResponseStatus] =
      ending === 'failed' ? ['response.failed', 'failed'] : ['response.completed', statusFor(ending)];
    writer.wrote(frame(type, this.#texts.length));
    await this.#rig.finish(writer, {
      status,
      ...(status === 'failed' && { error: { code: 'upstream_unavailable' } }),
    });
  }
}

const statusFor = (ending: Ending): ResponseStatus =>
  ending === 'incomplete' || ending === 'cancelled' ? ending : 'completed';

/** A client that is disconnected repeatedly, and reconnects. */
class SeededReader {
  readonly #rig: FollowedRig;
  readonly #random: SeededRandom;
  readonly events: string[] = [];
  cuts = 0;

  constructor(rig: FollowedRig, random: SeededRandom) {
    this.#rig = rig;
    this.#random = random;
  }

  async read(mayVanish: boolean): Promise<void> {
    const { clock } = this.#rig;
    for (;;) {
      await clock.sleep(this.#random.integer(0, 6_000));
      const leaveAfter = this.#random.chance(0.7) ? this.#random.integer(1, 12) : Infinity;
      const read = await this.#once(leaveAfter);
      if (read === undefined) {
        if (!mayVanish) continue;
        const gone = (await this.#rig.stored.responses.heads(account, [id])).size === 0;
        if (gone) return;
        continue;
      }
      this.events.push(...read.events);
      if (/^event: response\.(completed|failed)\n/.test(this.events.at(-1) ?? '')) return;
      this.cuts += 1;
      hold(leaveAfter < Infinity || read.broken !== undefined, 'a stream ended without its last event');
    }
  }

  /** Undefined if rejected. */
  async #once(leaveAfter: number): Promise<Read | undefined> {
    const after = this.events.length - 1;
    try {
      return await this.#rig.read({
        ...(after >= 0 && { after }),
        leaveAfter,
        slowMs: this.#random.chance(0.2) ? this.#random.integer(1, 2_000) : 0,
      });
    } catch (error) {
      const { status } = error as { status?: number };
      hold(status === 404 || error instanceof StoreUnavailable, `a reader was refused: ${String(error)}`);
      return undefined;
    }
  }
}
