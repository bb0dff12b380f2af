/** A stored foreground answer: its client can read and continue what it saw, or the answer said that it was not stored. */
import { framesOf, requestIdOf, seenCall, type SeenCall } from './seen-call.ts';
import { hold, responseOf } from './seen-events.ts';
import { piecesOf } from './slow-answer.ts';
import type { Owned, Stage, Story, Reported } from './stage.ts';

type Stored = { id: string; status: string; store: boolean; output: { content?: { text: string }[] }[] };

const textOf = ({ output }: Pick<Stored, 'output'>): string =>
  output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join('');

const wholeText = (pieces: number, turn = 1): string => piecesOf(pieces, turn).join('');

export class ForegroundStory {
  readonly #stage: Stage;
  readonly #streamed: boolean;
  readonly #store: boolean | undefined;
  readonly #changes: 'nothing' | 'delete' | 'cancel';
  /** Whether the response is deleted. Undefined if unknown. */
  #isDeleted: boolean | undefined = false;
  #calls = 1;

  constructor(stage: Stage) {
    const { random } = stage;
    this.#stage = stage;
    this.#streamed = random.chance(0.65);
    this.#store = random.pick([undefined, undefined, undefined, true, false]);
    this.#changes = random.pick(['nothing', 'nothing', 'delete', 'cancel']);
  }

  async tell(): Promise<Story> {
    const stage = this.#stage;
    const { random, answerMs, pieces } = stage;
    const length = this.#streamed ? pieces + 4 : answerMs;
    let changed = Promise.resolve();
    const body = {
      model: 'm',
      input: stage.input,
      stream: this.#streamed,
      ...(this.#store !== undefined && { store: this.#store }),
    };
    const seen = await seenCall(
      stage,
      { method: 'POST', path: '', body },
      {
        leaveAfter: random.chance(0.35) ? random.integer(0, length) : Infinity,
        strikeAfter: random.integer(0, length),
        strike: () => void stage.strike('responses'),
        begun: (id) => {
          if (!this.#streamed) return;
          changed = this.#change(`resp-${id}`, random.integer(0, answerMs));
          changed.catch(() => {}); // Awaited below.
        },
      },
    );
    const status = seen.status === 200 ? await this.#look(seen, () => changed) : undefined;
    const kind = `${this.#streamed ? 'streamed' : 'JSON'} answer`;
    return { kind, status, cuts: Number(!seen.isWhole), calls: this.#calls };
  }

  async #look(seen: SeenCall, changed: () => Promise<void>): Promise<string | undefined> {
    const stage = this.#stage;
    const id = `resp-${requestIdOf(seen)}`;
    const shown = seen.isWhole ? this.#shownIn(seen) : undefined;
    if (shown?.store === true) await this.#seenAsStored(id, shown);
    const reported = await stage.reportedEnd(requestIdOf(seen), 'responses');
    await changed();
    if (!this.#streamed && this.#changes !== 'nothing') await this.#change(id, 0);
    const kept = await stage.own({ method: 'GET', path: `/${id}` });
    this.#compare(kept, { seen, shown, reported });
    await stage.stranger(id);
    if (kept.status === 200) stage.remember(id);
    await this.#goOn(id, kept.status);
    return kept.status === 200 ? (JSON.parse(kept.text) as Stored).status : `not stored`;
  }

  #shownIn({ text }: SeenCall): Stored {
    const shown = this.#streamed ? responseOf(framesOf(text)) : (JSON.parse(text) as unknown);
    return shown as Stored;
  }

  /** Can be read as soon as the end is seen, if the answer says so. */
  async #seenAsStored(id: string, shown: Stored): Promise<void> {
    if (this.#changes === 'delete') return;
    const { status, text } = await this.#stage.own({ method: 'GET', path: `/${id}` });
    hold(status === 200, `what said store: true is ${status} at once`);
    hold(text === JSON.stringify(shown), `GET shows ${text} and not ${JSON.stringify(shown)}`);
  }

  #compare(
    { status, text }: Owned,
    { seen, shown, reported }: { seen: SeenCall; shown: Stored | undefined; reported: Reported },
  ): void {
    const stage = this.#stage;
    hold(status === 200 || status === 404, `GET answers ${status}`);
    if (this.#isDeleted === true) return hold(status === 404, 'what was deleted is there');
    if (this.#store === false) return hold(status === 404, 'what should not be stored is there');
    if (shown)
      hold(
        shown.store || !this.#streamed === 'x-relay-store' in seen.headers,
        `store: false, and the header ${seen.headers['x-relay-store']}`,
      );
    // A killed process could not delete it again.
    if (shown?.store === false && reported.ended) hold(status === 404, 'what said store: false is there');
    if (reported.notStored && reported.ended) hold(status === 404, 'what is logged as not stored is there');
    if (status === 404) {
      const mayBeAbsent = !reported.ended || reported.notStored || this.#isDeleted === undefined;
      return hold(mayBeAbsent && shown?.store !== true, 'what was stored is gone');
    }
    const kept = JSON.parse(text) as Stored;
    if (shown?.store === true)
      hold(text === JSON.stringify(shown), `GET shows ${text} and not ${JSON.stringify(shown)}`);
    hold(kept.status === 'completed', `it ended ${kept.status}`);
    hold(textOf(kept) === wholeText(stage.pieces), `a part is kept: ${text}`);
    if (this.#streamed) hold(textOf(kept).startsWith(deltasOf(seen.text)), 'its client saw another text');
  }

  /** The caller deletes it or tries to cancel it, during the run or later. */
  async #change(id: string, afterMs: number): Promise<void> {
    const stage = this.#stage;
    await stage.clock.sleep(afterMs);
    if (this.#changes === 'cancel') {
      const { status } = await stage.own({ method: 'POST', path: `/${id}/cancel` });
      hold(status === 400 || status === 404, `a foreground answer is cancelled with ${status}`);
    }
    if (this.#changes !== 'delete') return;
    const { status, tries } = await stage.own({ method: 'DELETE', path: `/${id}` });
    hold(status === 200 || status === 404, `DELETE answers ${status}`);
    if (status === 200) this.#isDeleted = true;
    else if (tries > 1) this.#isDeleted = undefined;
  }

  /** A later call finds the turn, or is asked to send the conversation. */
  async #goOn(id: string, keptStatus: number): Promise<void> {
    const stage = this.#stage;
    const input = stage.input.replace(/pieces=\d+ gap=\d+/, 'pieces=1 gap=0');
    const body = { model: 'm', input, previous_response_id: id };
    this.#calls += 1;
    const { status, text } = await stage.own({ method: 'POST', path: '', body });
    const items = await stage.own({ method: 'GET', path: `/${id}/input_items` });
    hold(items.status === keptStatus, `GET answers ${keptStatus}, input_items ${items.status}`);
    if (keptStatus === 404)
      return hold(
        status === 400 && codeOf(text) === 'previous_response_not_found',
        `GET answers 404, going on ${status}: ${text}`,
      );
    hold(status === keptStatus, `GET answers ${keptStatus}, going on ${status}: ${text}`);
    hold(items.text.includes(stage.input), `the input is not listed: ${items.text}`);
    const next = JSON.parse(text) as Stored;
    if (next.status === 'completed')
      hold(textOf(next) === wholeText(1, 2), `the next turn did not see the first: ${text}`);
  }
}

export const codeOf = (text: string): string | undefined =>
  (JSON.parse(text) as { error?: { code: string } }).error?.code;

const deltasOf = (text: string): string =>
  framesOf(text)
    .filter((frame) => frame.startsWith('event: response.output_text.delta\n'))
    .map((frame) => (JSON.parse(frame.slice(frame.indexOf('\ndata: ') + 7)) as { delta: string }).delta)
    .join('');
