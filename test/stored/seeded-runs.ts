import { StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import { closeExpired, type CloseRecord } from '../../shared/billing/quota-item.ts';
import type { RelayRequest, RelayResponse } from '../../shared/relay/http/http.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { BillingRig, byTokens, yuan, type BillingOptions } from '../support/billing-rig.ts';
import { delta, demoKey, done, finish, keyRow, reset, usage, type Step } from '../support/core-rig.ts';
import { RoughQuotaStore } from '../support/rough-quota-store.ts';
import { Hazards, unharmed, type Fate } from './hazards.ts';
import { hold, isSeenAlike, statusOf } from './seen-events.ts';
import { SeededClient, type Ask, type Asked } from './seeded-client.ts';

// Virtual time passes while a file is loaded.
await Promise.all([
  import('../../shared/relay/stored/routes.ts'),
  import('../../shared/relay/stored/routes.ts'),
  import('../../shared/relay/stored/accept.ts'),
  import('../../shared/relay/stored/follow.ts'),
]);

export const requestId = '01seededrun000000000000001';
export const id = `resp-${requestId}`;
/** A run starts some time after its acceptance. */
const absentMsMax = 100_000;
const strangersKey = 'sk-stranger';

/** The faults of a world, and the result. */
export interface Run {
  seed: number;
  /** The status in the last event. Undefined without a response. */
  status: string | undefined;
  events: number;
  cuts: number;
  faults: number;
  runFell: boolean;
  frontFell: boolean;
  cancelled: boolean;
  deleted: boolean;
  charge: bigint;
}

const options: BillingOptions = {
  charges: [byTokens],
  keys: {
    [demoKey]: { row: keyRow({ store: true }) },
    [strangersKey]: { row: keyRow({ store: true, account: 'stranger', hash: 'b'.repeat(64) }) },
  },
  channels: [{ idle_seconds: 600, first_content_seconds: 600 }],
};

/** One background response from its acceptance to its expiry, with everything that goes wrong on the way. */
class SeededRun {
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #home = new BillingRig(options);
  readonly #upstream: Step[];
  readonly #pieces: number;
  readonly #environments: BillingRig[] = [];
  readonly #hazards: { hazards: Hazards; fate: Fate }[] = [];
  readonly #closed: CloseRecord[] = [];
  readonly #runFate: Fate;
  readonly #frontFate: Fate;
  #reserved = 0;

  constructor(seed: number) {
    this.#seed = seed;
    const random = new SeededRandom(seed);
    this.#random = random;
    const chance = random.pick([0, 0, 0.03, 0.15]);
    this.#runFate = {
      chance,
      fatalAt: random.chance(0.5) ? random.integer(1, 40) : Infinity,
      stillMs: random.chance(0.5) ? Infinity : random.integer(500, 150_000),
      skewMs: random.integer(-1_500, 1_500),
    };
    this.#frontFate = {
      ...unharmed,
      chance,
      fatalAt: random.chance(0.15) ? random.integer(1, 8) : Infinity,
      stillMs: Infinity,
    };
    this.#pieces = random.integer(1, 25);
    this.#upstream = upstreamOf(random, this.#pieces);
    this.#home.granted(yuan);
    const { quotas } = this.#home;
    const close = quotas.close.bind(quotas);
    const reserve = quotas.reserve.bind(quotas);
    quotas.reserve = async (write) => {
      const reply = await reserve(write);
      this.#reserved += Number(reply.done);
      return reply;
    };
    quotas.close = async (write) => {
      const reply = await close(write);
      if (reply.done) this.#closed.push(write.closeRecord);
      return reply;
    };
  }

  async run(): Promise<Run> {
    const { clock } = this.#home;
    const random = this.#random;
    const first = new SeededClient({ clock, random, ask: this.#ask, absentMsMax });
    const others = Array.from(
      { length: random.integer(0, 2) },
      () => new SeededClient({ clock, random, ask: this.#ask, absentMsMax }),
    );
    const clients = [first, ...others];
    const [cancelled, deleted] = [random.chance(0.15), random.chance(0.1)];
    const over = new AbortController();
    const stranger = this.#stranger(over.signal);
    const work = [
      first
        .create({ model: 'm', input: 'hi', max_output_tokens: 200, background: true, stream: true })
        .then(() => first.follow(id)),
      ...others.map((client) => client.follow(id)),
      ...(cancelled ? [this.#after(() => this.#own('POST', `/${id}/cancel`))] : []),
      ...(deleted ? [this.#after(() => this.#own('DELETE', `/${id}`))] : []),
    ];
    await clock.run(Promise.all(work));
    over.abort();
    await clock.run(stranger);
    const uncut = await clock.run(this.#seen(clients, deleted));
    await this.#checkMoney(uncut);
    await this.#checkExpiry();
    return {
      seed: this.#seed,
      status: uncut && statusOf(uncut),
      events: uncut?.length ?? 0,
      cuts: clients.reduce((sum, client) => sum + client.cuts, 0),
      faults: this.#hazards.reduce((sum, { hazards }) => sum + hazards.faults, 0),
      runFell: this.#fell(this.#runFate),
      frontFell: this.#fell(this.#frontFate),
      cancelled,
      deleted,
      charge: this.#home.item?.spent ?? 0n,
    };
  }

  /** The view of one more client without disconnects, which must equal the others'. Undefined without a response. */
  async #seen(clients: SeededClient[], deleted: boolean): Promise<string[] | undefined> {
    const { clock } = this.#home;
    const ask: Ask = (asked) => this.#ask({ ...asked, isSafe: true });
    const client = new SeededClient({ clock, random: this.#random, ask, patient: true, absentMsMax });
    await client.follow(id);
    if (client.gone) {
      hold(deleted || clients[0]?.refused === true, 'a response is gone that was accepted');
      return undefined;
    }
    hold(!clients[0]?.denied, 'a response is there that was refused');
    const uncut = client.events;
    const { text } = await this.#own('GET', `/${id}`);
    isSeenAlike({ clients, uncut, shown: text });
    return uncut;
  }

  async #checkMoney(uncut: string[] | undefined): Promise<void> {
    const { clock, quotas } = this.#home;
    for (let sweeps = 0; sweeps < 3; sweeps += 1) {
      await clock.run(clock.sleep(500_000));
      for (const item of quotas.items.values())
        for (const write of closeExpired(item, clock.now() / 1000, 120)) await quotas.close(write);
    }
    const item = this.#home.item;
    hold(item !== undefined && item.open.size === 0, 'a reservation stays open');
    hold(item.available + item.spent === item.granted, 'money is lost or made');
    const charged = this.#closed.filter((record) => record.kind !== 'cancelled');
    hold(
      charged.length === Math.min(1, this.#reserved),
      `closed ${charged.length} times: ${JSON.stringify(charged.map(({ kind }) => kind))}`,
    );
    hold(this.#environments.filter(({ sent }) => sent.length > 0).length <= 1, 'two runs asked the upstream');
    if (uncut && statusOf(uncut) === 'completed' && !this.#fell(this.#runFate))
      hold(
        item.spent === 5_000_000n + BigInt(this.#pieces * tokensOfPiece) * 2_000_000n,
        `charged ${item.spent}`,
      );
    // A process that was frozen longer than its retry time gives up at the first rejected write, and logs it.
    const { stillMs } = this.#runFate;
    const gaveUp = (fault: unknown): boolean => fault instanceof StoreUnavailable && stillMs > 20_000;
    const faults = this.#environments.flatMap((environment) => environment.faults);
    const wrong = faults.find((fault) => !gaveUp(fault));
    hold(wrong === undefined, `a fault: ${String(wrong)}`);
  }

  async #checkExpiry(): Promise<void> {
    const { clock } = this.#home;
    const { status } = await clock.run(this.#own('GET', `/${id}?stream=true`));
    hold(status === 400 || status === 404, `events are kept too long: ${status}`);
    await clock.run(clock.sleep(31 * 86_400_000));
    for (const [method, path] of routes)
      hold((await clock.run(this.#own(method, path))).status === 404, `${method} ${path} after 31 days`);
  }

  #fell(fallen: Fate): boolean {
    return this.#hazards.some(({ hazards, fate }) => fate === fallen && hazards.happened);
  }

  async #after<T>(work: () => Promise<T>): Promise<void> {
    await this.#home.clock.sleep(this.#random.integer(0, 15_000));
    await work();
  }

  /** Keeps trying every path, and must find nothing. */
  async #stranger(over: AbortSignal): Promise<void> {
    const { clock } = this.#home;
    for (let turn = 0; !over.aborted; turn += 1) {
      await clock.sleep(1_300, over);
      const [method, path] = routes[turn % routes.length] ?? routes[0];
      const { status } = await this.#own(method, path, strangersKey);
      hold(status === 404, `a stranger got ${status} for ${method} ${path}`);
    }
  }

  async #own(method: string, path: string, key = demoKey): Promise<{ status: number; text: string }> {
    const response = await this.#respond({ method, path, key, isSafe: true });
    let text = '';
    if (typeof response.body === 'string') text = response.body;
    else for await (const piece of response.body) text += piece;
    await response.done;
    return { status: response.status, text };
  }

  /** A request in its own environment. */
  readonly #ask: Ask = (asked) => this.#respond(asked);

  #respond({ method, path, body, key = demoKey, isSafe = false }: Asked): Promise<RelayResponse> {
    const fate = isSafe
      ? unharmed
      : method === 'POST'
        ? this.#frontFate
        : { ...unharmed, chance: this.#runFate.chance };
    const { rig } = this.#environment(fate);
    const [pathname = '', query = ''] = path.split('?', 2);
    const more: Partial<RelayRequest> = {
      id: body === undefined ? '01anotherrequest0000000000' : requestId,
      method,
      path: `/v1/responses${pathname}`,
      query: new URLSearchParams(query),
      headers: { authorization: `Bearer ${key}` },
    };
    return rig.respond(body, more);
  }

  #environment(fate: Fate): { rig: BillingRig } {
    const home = this.#home;
    const hazards = new Hazards(home.clock, this.#random, fate);
    const rig = new BillingRig({ ...options, beside: home }).upstream({ steps: this.#upstream });
    const startRun = (of: { account: string; id: string }): Promise<void> => this.#deliver(of);
    Object.assign(rig, {
      quotas: home.quotas,
      store: hazards.around(new RoughQuotaStore(home.quotas, hazards.clock)),
      clock: hazards.clock,
      stored: {
        started: [],
        ...hazards.aroundStored(home.stored),
        ...hazards.around({ startRun }),
      },
    });
    this.#environments.push(rig);
    this.#hazards.push({ hazards, fate });
    return { rig };
  }

  /** Delivers the event of a run once, twice, late or never. */
  async #deliver(of: { account: string; id: string }): Promise<void> {
    const random = this.#random;
    const times = random.pick([0, 1, 1, 1, 1, 1, 1, 2, 2]);
    for (let each = 0; each < times; each += 1) {
      const delayMs = random.chance(0.05) ? 70_000 : random.integer(20, 3_000);
      void this.#home.clock.sleep(delayMs).then(async () => {
        const { rig } = this.#environment(this.#runFate);
        await rig.runs({ ...of, run: `run ${each} ${this.#environments.length}` }).catch(() => {});
      });
    }
  }
}

const routes: [[string, string], ...[string, string][]] = [
  ['GET', `/${id}`],
  ['GET', `/${id}?stream=true`],
  ['GET', `/${id}?stream=true&starting_after=2`],
  ['GET', `/${id}/input_items`],
  ['POST', `/${id}/cancel`],
  ['DELETE', `/${id}`],
];

const tokensOfPiece = 3;

/** A slow answer, sometimes with pauses without output. */
function upstreamOf(random: SeededRandom, count: number): Step[] {
  const steps: Step[] = [];
  for (let piece = 0; piece < count; piece += 1) {
    steps.push(random.chance(0.1) ? random.integer(0, 25_000) : random.integer(0, 1_500));
    steps.push(delta(`piece ${piece} `));
  }
  if (random.chance(0.1)) return [...steps, reset];
  return [...steps, finish(random.chance(0.1) ? 'length' : 'stop'), usage(5, count * tokensOfPiece), done];
}

/** Throws on any violation. */
const seededRun = (seed: number): Promise<Run> => new SeededRun(seed).run();

export async function runsOfSeeds(first: number, count: number): Promise<Run[]> {
  const runs: Run[] = [];
  for (let seed = first; seed < first + count; seed += 1)
    runs.push(
      await seededRun(seed).catch((error: Error) => {
        throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
      }),
    );
  return runs;
}
