/** A background response with followers that are disconnected: the union of what each saw equals the uncut stream. */
import { SeededClient } from './seeded-client.ts';
import { hold, isSeenAlike, statusOf } from './seen-events.ts';
import type { Stage, Story } from './stage.ts';

export class BackgroundStory {
  readonly #stage: Stage;
  readonly #changes: 'nothing' | 'cancel' | 'delete';
  /** The deletion has been asked for. */
  #isDeleted = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#changes = stage.random.pick(['nothing', 'nothing', 'nothing', 'nothing', 'cancel', 'delete']);
  }

  async tell(): Promise<Story> {
    const stage = this.#stage;
    const { random, input } = stage;
    const first = this.#client();
    const struck = this.#struck();
    let changed = Promise.resolve();
    const body = { model: 'm', input, background: true, stream: true };
    const id = await first.create(body, (known) => {
      changed = this.#change(known);
      changed.catch(() => {}); // Awaited below.
    });
    if (id === undefined) {
      await struck;
      return { kind: 'background', status: undefined, cuts: 0, calls: 1 };
    }
    const others = Array.from({ length: random.integer(0, 2) }, () => this.#client());
    const clients = [first, ...others];
    await Promise.all([...clients.map((client) => client.follow(id)), changed, stage.stranger(id), struck]);
    const last = this.#client(true);
    await last.follow(id);
    const cuts = clients.reduce((sum, client) => sum + client.cuts, 0);
    const reported = { kind: 'background', cuts, calls: 1 };
    if (last.gone) {
      hold(this.#isDeleted, `${id} is gone, which nobody deleted`);
      return { ...reported, status: 'deleted' };
    }
    const uncut = last.events;
    const { text } = await stage.own({ method: 'GET', path: `/${id}` });
    isSeenAlike({ clients, uncut, shown: text });
    hold(['completed', 'failed', 'cancelled'].includes(statusOf(uncut)), `it ends ${statusOf(uncut)}`);
    stage.remember(id);
    return { ...reported, status: statusOf(uncut) };
  }

  async #struck(): Promise<void> {
    const { clock, random, answerMs } = this.#stage;
    await clock.sleep(random.integer(0, answerMs + 1_500));
    await this.#stage.strike('background');
  }

  #client(patient = false): SeededClient {
    const { clock, random, ask } = this.#stage;
    // A broken connection is not an answer of the relay.
    return new SeededClient({ clock, random, ask, patient, isCut: () => true, absentMsMax: 2_000 });
  }

  /** The caller's action on the response. */
  async #change(id: string): Promise<void> {
    const stage = this.#stage;
    await stage.clock.sleep(stage.random.integer(0, stage.answerMs));
    if (this.#changes === 'cancel') await stage.own({ method: 'POST', path: `/${id}/cancel` });
    if (this.#changes !== 'delete') return;
    this.#isDeleted = true;
    const { status, tries } = await stage.own({ method: 'DELETE', path: `/${id}` });
    // An attempt without an answer may have deleted it.
    hold(status === 200 || (status === 404 && tries > 1), `DELETE answers ${status}`);
    hold((await stage.own({ method: 'GET', path: `/${id}` })).status === 404, 'what was deleted is there');
  }
}
