/** Stories in virtual time: every call has its own environment, which may die at a store call or have failing stores. */
import { closeExpired, type CloseRecord } from '../../shared/billing/quota-item.ts';
import { defaultSettings } from '../../shared/config/settings.ts';
import { StoreBusy, StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import type { UpstreamReply, UpstreamRequest } from '../../shared/upstreams/exchange.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { BillingRig, byTokens, yuan, type BillingOptions } from '../support/billing-rig.ts';
import { delta, demoKey, done, finish, keyRow, usage } from '../support/core-rig.ts';
import { RoughQuotaStore } from '../support/rough-quota-store.ts';
import { ForegroundStory } from './foreground-story.ts';
import { Hazards, unharmed, type Fate } from './hazards.ts';
import { KeyedStory } from './keyed-story.ts';
import type { Answered, Asked } from './seeded-client.ts';
import { hold } from './seen-events.ts';
import { inputOf, priceOf, slowAnswer } from './slow-answer.ts';
import type { EndpointName, Owned, Stage, Story, Reported } from './stage.ts';
import { strangerSees } from './stranger.ts';

/** Limits of deaths and of calls with failing stores, so that a client that retries is answered eventually. */
const fatalCalls = 2;
const roughCalls = 12;
const sweepEveryMs = 30_000;
const sweepGraceSeconds = 120;

interface Environment {
  rig: BillingRig;
  hazards: Hazards;
}

export class VirtualStage implements Stage {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly pieces: number;
  readonly answerMs: number;
  readonly input: string;
  readonly strangersKey = 'sk-stranger';
  readonly #options: BillingOptions = {
    charges: [byTokens],
    keys: {
      [demoKey]: { row: keyRow({ store: true }) },
      [this.strangersKey]: { row: keyRow({ store: true, account: 'stranger', hash: 'b'.repeat(64) }) },
    },
    channels: [{ idle_seconds: 600, first_content_seconds: 600 }],
    settings: { limits: { ...defaultSettings.limits, requestSeconds: 120 } },
    send: (request, signal) => this.#send(request, signal),
  };
  readonly #home = new BillingRig(this.#options);
  readonly #fate: Fate;
  /** By request id. */
  readonly #environments = new Map<string, Environment>();
  readonly #closed: CloseRecord[] = [];
  #asked = 0;
  readonly #remembered: string[] = [];

  constructor(seed: number) {
    this.seed = seed;
    this.random = new SeededRandom(seed);
    const { random } = this;
    this.pieces = random.integer(1, 12);
    const gapMs = random.integer(0, 600);
    this.answerMs = this.pieces * gapMs;
    this.input = inputOf(seed, this.pieces, gapMs);
    this.#fate = {
      ...unharmed,
      chance: random.pick([0, 0, 0.05, 0.2]),
      fatalAt: random.chance(0.6) ? random.integer(1, 14) : Infinity,
      stillMs: random.chance(0.6) ? Infinity : random.integer(500, 30_000),
      ...(random.chance(0.4) && { downAt: random.integer(1, 12), downMs: random.integer(500, 8_000) }),
      slowMs: random.pick([0, 10, 500]),
    };
    this.#home.granted(1_000n * yuan);
    this.#home.quotas.grant('stranger', 1_000n * yuan);
    const { quotas, idempotency } = this.#home;
    const close = quotas.close.bind(quotas);
    quotas.close = async (write) => {
      const reply = await close(write);
      if (!reply.done) return reply;
      const { closeRecord } = write;
      if (write.account === 'acme') this.#closed.push(closeRecord);
      if (closeRecord.kind !== 'cancelled')
        idempotency.closed.set(`${write.account} ${closeRecord.id}`, closeRecord.kind);
      return reply;
    };
  }

  get clock() {
    return this.#home.clock;
  }

  async run(): Promise<Story & { faults: number; fell: number }> {
    const over = new AbortController();
    void this.#sweeps(over.signal);
    const story = this.random.pick<{ tell(): Promise<Story> }>([
      new ForegroundStory(this),
      new KeyedStory(this),
    ]);
    const reported = await this.clock.run(story.tell());
    await this.clock.run(this.clock.sleep(600_000));
    over.abort('over');
    this.#checkMoney(reported);
    await this.#checkExpiry();
    const all = [...this.#environments.values()].map(({ hazards }) => hazards);
    return {
      ...reported,
      faults: all.reduce((sum, { faults }) => sum + faults, 0),
      fell: all.filter(({ happened }) => happened).length,
    };
  }

  /** Runs in the environment of this request, with its planned fault. */
  ask = (asked: Asked): Promise<Answered> => {
    this.#asked += 1;
    return this.#respond(asked, {
      ...this.#fate,
      ...(this.#asked > fatalCalls && { fatalAt: Infinity, downAt: Infinity }),
      ...(this.#asked > roughCalls && { chance: 0 }),
    });
  };

  async own(asked: Asked): Promise<Owned> {
    const { status, headers, body } = await this.#respond(asked, unharmed);
    let text = '';
    if (typeof body === 'string') text = body;
    else for await (const piece of body) text += piece;
    return { status, headers, text, tries: 1 };
  }

  async strike(): Promise<void> {}

  async reportedEnd(requestId: string, _at: EndpointName): Promise<Reported> {
    const { rig, hazards } = this.#environments.get(requestId) ?? {};
    hold(rig !== undefined && hazards !== undefined, `nobody knows ${requestId}`);
    for (let seconds = 0; rig.logged.length === 0 && !hazards.isDead; seconds += 1) {
      hold(seconds < 1_000, `${requestId} never ends`);
      await this.clock.sleep(1_000);
    }
    const said = (name: string): boolean => rig.events.some((event) => event.name === name);
    return {
      ended: rig.logged.length > 0,
      notStored: said('response_not_stored'),
      notKept: said('result_not_kept'),
    };
  }

  stranger = (id: string): Promise<void> => strangerSees(this, id);

  remember(id: string): void {
    this.#remembered.push(id);
  }

  async #respond(
    { method, path, at = 'responses', key, headers, body, signal }: Asked,
    fate: Fate,
  ): Promise<Answered> {
    const id = `01seeded${String(this.#environments.size).padStart(18, '0')}`;
    const { rig, hazards } = this.#environment(id, fate);
    const [pathname = '', query = ''] = path.split('?', 2);
    const broken = hazards.died.promise.then(() => undefined);
    const responding = rig.respond(body, {
      id,
      method,
      path: `/v1/${at}${pathname}`,
      query: new URLSearchParams(query),
      headers: { authorization: `Bearer ${key ?? demoKey}`, ...headers },
    });
    const response = await Promise.race([responding, broken]);
    if (!response) return { status: 599, headers: {}, body: '' };
    const { status, body: answer } = response;
    if (typeof answer === 'string') return { status, headers: response.headers, body: answer };
    const texts = answer[Symbol.asyncIterator]();
    if (signal?.aborted) void texts.return?.();
    signal?.addEventListener('abort', () => void texts.return?.());
    return { status, headers: response.headers, body: untilBroken(texts, broken) };
  }

  #environment(id: string, fate: Fate): Environment {
    const home = this.#home;
    const hazards = new Hazards(home.clock, this.random, fate);
    const rig = new BillingRig({ ...this.#options, beside: home });
    Object.assign(rig, {
      quotas: home.quotas,
      store: hazards.around(new RoughQuotaStore(home.quotas, hazards.clock)),
      clock: hazards.clock,
      idempotency: hazards.around(home.idempotency, false),
      stored: { started: [], ...hazards.aroundStored(home.stored) },
    });
    const environment = { rig, hazards };
    this.#environments.set(id, environment);
    return environment;
  }

  async #send({ body }: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply> {
    const { clock } = this;
    const { gapMs, pieces, promptTokens, completionTokens } = slowAnswer(
      JSON.parse(body) as Record<string, unknown>,
    );
    const frames = [
      ...pieces.map((piece) => delta(piece)),
      finish(),
      usage(promptTokens, completionTokens),
      done,
    ];
    async function* slowly(): AsyncGenerator<Uint8Array> {
      for (const frame of frames) {
        await clock.sleep(gapMs, signal);
        yield new TextEncoder().encode(frame);
      }
    }
    return { status: 200, headers: {}, body: slowly() };
  }

  async #sweeps(over: AbortSignal): Promise<void> {
    const { quotas } = this.#home;
    while (!over.aborted) {
      await this.clock.sleep(sweepEveryMs, over);
      for (const item of quotas.items.values())
        for (const write of closeExpired(item, this.clock.now() / 1000, sweepGraceSeconds))
          await quotas.close(write);
    }
  }

  #checkMoney({ kind, status }: Story): void {
    const faults = [...this.#environments.values()].flatMap(({ rig }) => rig.faults);
    const odd = faults.find((fault) => !(fault instanceof StoreBusy || fault instanceof StoreUnavailable));
    hold(odd === undefined, `a fault: ${String(odd)}`);
    const { item } = this.#home;
    hold(item !== undefined && item.open.size === 0, 'a reservation stays open');
    hold(item.available + item.spent === item.granted, 'money is lost or made');
    const settled = this.#closed
      .filter((record) => record.kind === 'settled')
      .map(({ charge }) => Number(charge));
    const [whole, next] = [priceOf(this.pieces), priceOf(1, this.pieces)];
    const said = `charged ${settled.join()}, where an answer costs ${whole} and the next ${next}`;
    hold(
      settled.every((charge) => charge === whole || charge === next),
      said,
    );
    hold(settled.filter((charge) => charge === whole).length <= 1, said);
    if (!kind.startsWith('keyed')) return;
    hold(settled.length <= 1, said);
    if (status === '200') hold(item.spent > 0n, 'an answer was free');
  }

  async #checkExpiry(): Promise<void> {
    await this.clock.run(this.clock.sleep(31 * 86_400_000));
    for (const id of this.#remembered)
      for (const path of [`/${id}`, `/${id}/input_items`]) {
        const { status } = await this.clock.run(this.own({ method: 'GET', path }));
        hold(status === 404, `GET ${path} is ${status} after 31 days`);
      }
  }
}

async function* untilBroken(
  texts: AsyncIterator<string>,
  broken: Promise<undefined>,
): AsyncGenerator<string> {
  try {
    for (;;) {
      const next = await Promise.race([texts.next(), broken]);
      if (next === undefined) throw new Error('the connection broke');
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    void texts.return?.();
  }
}

/** Throws on any violation. */
export async function storiesOfSeeds(first: number, count: number) {
  const stories = [];
  const wrong: string[] = [];
  for (let seed = first; seed < first + count; seed += 1)
    try {
      stories.push(await new VirtualStage(seed).run());
    } catch (error) {
      wrong.push(`seed ${seed}: ${(error as Error).message}`);
    }
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  return stories;
}
