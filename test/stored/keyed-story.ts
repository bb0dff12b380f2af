/** A call with an Idempotency-Key that is disconnected and repeated: one charge, and every client gets the same bytes. */
import { codeOf } from './foreground-story.ts';
import { firstIdOf, seenCall, type Plan, type SeenCall } from './seen-call.ts';
import { hold } from './seen-events.ts';
import type { Asked } from './seeded-client.ts';
import type { EndpointName, Stage, Story } from './stage.ts';

/** Longer than the reservation of a killed call and the sweeper's interval. */
const freeAgainMsMax = 300_000;

export class KeyedStory {
  readonly #stage: Stage;
  readonly #at: EndpointName;
  readonly #streamed: boolean;
  readonly #body: Record<string, unknown>;
  readonly #deletes: boolean;
  /** The response that its caller deleted. */
  #deletedId: string | undefined;
  #mayBeDeletedId: string | undefined;
  /** All calls with the key, in order of start. */
  readonly #seen: SeenCall[] = [];
  #calls = 0;

  constructor(stage: Stage) {
    const { random, input } = stage;
    this.#stage = stage;
    this.#at = random.pick(['responses', 'chat/completions']);
    this.#streamed = random.chance(0.6);
    const isResponses = this.#at === 'responses';
    this.#deletes = isResponses && random.chance(0.25);
    this.#body = {
      model: 'm',
      stream: this.#streamed,
      ...(isResponses ? { input } : { messages: [{ role: 'user', content: input }] }),
      ...(isResponses && !this.#deletes && random.chance(0.3) && { store: false }),
    };
  }

  async tell(): Promise<Story> {
    const stage = this.#stage;
    const { random, answerMs, pieces } = stage;
    const length = this.#streamed ? pieces + 4 : answerMs;
    let deleted = Promise.resolve();
    const first = this.#call({
      leaveAfter: random.chance(0.5) ? random.integer(0, length) : Infinity,
      strikeAfter: random.integer(0, length),
      strike: () => void stage.strike(this.#at),
      begun: (id) => {
        if (this.#deletes && random.chance(0.5)) deleted = this.#deleteInTheMiddle(id);
        deleted.catch(() => {}); // Awaited below.
      },
    });
    const repeats = Array.from({ length: random.integer(0, 2) }, async () => {
      await stage.clock.sleep(random.integer(0, answerMs + 1_000));
      const leaveAfter = random.chance(0.3) ? random.integer(0, length) : Infinity;
      await this.#repeat(leaveAfter);
    });
    await Promise.all([first, ...repeats]);
    await deleted;
    // The last client reads to the end, and a later one gets the same.
    const last = await this.#repeat(Infinity);
    const again = last.status === 200 ? await this.#repeat(Infinity) : last;
    if (last.status === 200) {
      hold(firstIdOf(last) !== this.#deletedId, 'what was deleted is answered');
      hold(again.status === 200 || again.status === 409, `after an answer: ${again.status}`);
      // A call that was killed between its last byte and its charge has cost its input, and its key is free.
      const ranAgain = again.status === 200 && !('x-relay-replayed' in again.headers);
      if (ranAgain) {
        const { ended } = await stage.reportedEnd(firstIdOf(last), this.#at);
        hold(!ended, 'it ran again after its answer');
      }
      if (again.status !== 200) await this.#mayBeUnknown(firstIdOf(last), again);
      await this.#others();
    } else await this.#mayBeUnknown(undefined, last);
    await this.#compare();
    if (this.#deletes && last.status === 200)
      await this.#delete(firstIdOf(again.status === 200 ? again : last));
    const cuts = this.#seen.filter(({ status, isWhole }) => status === 200 && !isWhole).length;
    const kind = `keyed ${this.#at}${this.#streamed ? ' stream' : ''}`;
    return { kind, status: String(last.status), cuts, calls: this.#calls };
  }

  async #call(plan?: Plan, more: Partial<Asked> = {}): Promise<SeenCall> {
    this.#calls += 1;
    const { headers, ...rest } = this.#asked();
    const seen = await seenCall(
      this.#stage,
      { ...rest, headers: { ...headers, ...more.headers }, ...more },
      plan,
    );
    if (more.key === undefined && more.body === undefined) this.#seen.push(seen);
    return seen;
  }

  #asked(): Asked {
    const headers = { 'idempotency-key': `key of ${this.#stage.seed}` };
    return { method: 'POST', path: '', at: this.#at, headers, body: this.#body };
  }

  /** Repeats until there is an answer or a final refusal. */
  async #repeat(leaveAfter: number): Promise<SeenCall> {
    const { clock } = this.#stage;
    const untilMs = clock.now() + freeAgainMsMax;
    for (;;) {
      const seen = await this.#call({ leaveAfter, strikeAfter: Infinity, strike: () => {} });
      const { status, headers, text } = seen;
      // The client has its answer, or has left.
      if (leaveAfter < Infinity ? status === 200 || status === undefined : status === 200 && seen.isWhole)
        return seen;
      const code = status !== undefined && status >= 400 && seen.isWhole ? codeOf(text) : undefined;
      if (code === 'request_in_progress') hold('retry-after' in headers, '409 without retry-after');
      else if (status === 409) {
        hold(code === 'request_already_completed', `409 says ${code}`);
        return seen;
      } else
        hold(status === undefined || status === 200 || status === 429 || status >= 500, `${status} ${text}`);
      hold(clock.now() < untilMs, `its key is never free: ${status} ${text}`);
      await clock.sleep(1_000);
    }
  }

  /** An earlier call was charged, but its answer is missing: the log reports it, or the process was killed before it could. */
  async #mayBeUnknown(id: string | undefined, refused: SeenCall): Promise<void> {
    const [, named = ''] = /The request (\w+)/.exec(refused.text) ?? [];
    hold(id === undefined || id === named, `answered as ${id}, completed as ${named}`);
    const reported = await this.#stage.reportedEnd(named, this.#at);
    hold(
      reported.notKept || !reported.ended || named === this.#mayBeDeletedId,
      `the result of ${named} is gone: ${refused.text}`,
    );
  }

  /** All clients of one answer saw the same bytes, as far as they read. */
  async #compare(): Promise<void> {
    const answers = Map.groupBy(
      this.#seen.filter(({ status }) => status === 200),
      firstIdOf,
    );
    for (const [id, all] of answers) {
      const longest = all.map(({ text }) => text).toSorted((a, b) => b.length - a.length)[0] ?? '';
      for (const { text, isWhole } of all)
        hold(
          isWhole ? text === longest : longest.startsWith(text),
          `${id} was seen as\n${text}\nand\n${longest}`,
        );
    }
    // One that ran after another was there is one after a death.
    const ids = [...answers.keys()];
    for (const id of ids.slice(0, -1))
      hold(
        !(await this.#stage.reportedEnd(id, this.#at)).ended,
        `${ids.join()} have answered, and ${id} ended`,
      );
  }

  /** The same key with another body, and from another account. */
  async #others(): Promise<void> {
    const [name, ...value] = this.#at === 'responses' ? ['input', 'else'] : ['messages', []];
    const [other] = value;
    const changed =
      this.#at === 'responses'
        ? { ...this.#body, input: other }
        : { ...this.#body, messages: [{ role: 'user', content: 'else' }] };
    const asked = this.#asked();
    const { status, text } = await this.#stage.own({ ...asked, body: changed });
    const { error } = JSON.parse(text) as { error: { param: string } };
    hold(status === 422 && error.param === name, `another body: ${status} ${text}`);
    const strange = await this.#stage.own({ ...asked, key: this.#stage.strangersKey });
    hold(!('x-relay-replayed' in strange.headers), 'a stranger got the result');
    this.#calls += 1;
  }

  async #deleteInTheMiddle(id: string): Promise<void> {
    const { clock, random, answerMs } = this.#stage;
    await clock.sleep(random.integer(0, answerMs + 500));
    const { status, tries } = await this.#stage.own({ method: 'DELETE', path: `/resp-${id}` });
    hold(status === 200 || status === 404, `DELETE answers ${status}`);
    if (status === 200) this.#deletedId = id;
    // An attempt without an answer may have deleted it.
    if (status === 200 || tries > 1) this.#mayBeDeletedId = id;
  }

  async #delete(firstId: string): Promise<void> {
    const { status, tries } = await this.#stage.own({ method: 'DELETE', path: `/resp-${firstId}` });
    if (status === 404 && firstId !== this.#mayBeDeletedId) {
      // It was not stored, or an earlier attempt deleted it.
      const reported = await this.#stage.reportedEnd(firstId, this.#at);
      if (tries === 1)
        return hold(reported.notStored || !reported.ended, 'what was answered cannot be deleted');
    }
    const after = await this.#repeat(Infinity);
    // If it was killed before its charge, its key is free once its reservation expires.
    const ranAgain = after.status === 200 && firstIdOf(after) !== firstId;
    if (ranAgain && !(await this.#stage.reportedEnd(firstId, this.#at)).ended) return;
    hold(after.status === 409, `after DELETE a repeat is ${after.status}: ${after.text}`);
  }
}
