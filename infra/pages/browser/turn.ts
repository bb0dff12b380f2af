/**
 * One message as it is shown. What a model says becomes text nodes, never markup: a tag, an event handler or a link in it is
 * text like any other.
 */
import type { ToolCallPart } from './answer-stream.ts';
import { byId, element } from './elements.ts';
import { AnswerPictures } from './pictures.ts';
import { count } from './words.ts';

/** More of one answer is read, so that it comes to its end, but neither shown nor kept. */
const shownMax = 200_000;
const showEveryMs = 50;

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** Text that grows. It is shown in steps: a browser that lays out a page for each chunk falls behind. */
class GrowingText {
  readonly #node = document.createTextNode('');
  readonly #rest: HTMLElement;
  #waiting = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  text = '';
  #left = 0;

  constructor(place: HTMLElement) {
    this.#rest = element('p', { className: 'soft' });
    this.#rest.hidden = true;
    place.append(this.#node);
    place.after(this.#rest);
  }

  add(more: string): void {
    const taken = more.slice(0, shownMax - this.text.length);
    this.text += taken;
    this.#waiting += taken;
    this.#left += more.length - taken.length;
    this.#timer ??= setTimeout(() => this.flush(), showEveryMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting !== '') this.#node.appendData(this.#waiting);
    this.#waiting = '';
    this.#rest.hidden = this.#left === 0;
    this.#rest.textContent = `${count(this.#left)} more characters are not shown.`;
  }
}

export class Turn {
  readonly #meta = element('p', { className: 'meta soft' });
  readonly #box: HTMLElement;
  readonly #text: GrowingText;
  readonly #pictures: AnswerPictures;
  #thinking: GrowingText | undefined;
  readonly #calls: { call: ToolCall; shown: GrowingText; result: HTMLTextAreaElement }[] = [];

  constructor(role: string, pictures: readonly string[] = []) {
    const place = element('div', { className: 'text', dir: 'auto' });
    const shown = element('div', { className: 'pictures' });
    this.#box = element('article', { className: `turn ${role}`, ariaLabel: role }, [
      element('h3', {}, [role]),
      ...pictures.map((src) => element('img', { src, alt: 'Added picture' })),
      place,
      shown,
      this.#meta,
    ]);
    byId('turns').append(this.#box);
    this.#text = new GrowingText(place);
    this.#pictures = new AnswerPictures(shown);
  }

  get text(): string {
    return this.#text.text;
  }

  get calls(): ToolCall[] {
    return this.#calls.map(({ call }) => call);
  }

  /** What the customer typed as the results of calls, by the id of each. */
  get results(): { id: string; text: string }[] {
    return this.#calls.map(({ call, result }) => ({ id: call.id, text: result.value }));
  }

  add(text: string): void {
    this.#text.add(text);
  }

  addPictures(parts: readonly unknown[]): void {
    this.#pictures.add(parts);
  }

  think(text: string): void {
    if (!this.#thinking) {
      const place = element('div', { className: 'text', dir: 'auto' });
      const details = element('details', {}, [element('summary', {}, ['Reasoning']), place]);
      this.#box.querySelector('h3')?.after(details);
      this.#thinking = new GrowingText(place);
    }
    this.#thinking.add(text);
  }

  addCalls(parts: readonly ToolCallPart[]): void {
    for (const { index, id, function: called } of parts) {
      const known =
        this.#calls[index] ?? (index === this.#calls.length && index < 128 ? this.#newCall() : undefined);
      if (!known) continue;
      const { call, shown } = known;
      if (id !== undefined) call.id = id;
      if (called?.name !== undefined) {
        call.function.name += called.name;
        shown.add(`${called.name} `);
      }
      if (called?.arguments !== undefined && call.function.arguments.length < shownMax) {
        call.function.arguments += called.arguments;
        shown.add(called.arguments);
      }
    }
  }

  #newCall() {
    const place = element('pre', { className: 'call', tabIndex: 0 });
    const result = element('textarea', {
      rows: 2,
      ariaLabel: 'Result of this call',
      placeholder: 'Result of this call',
    });
    this.#meta.before(element('div', {}, [place, result]));
    const call: ToolCall = { id: '', type: 'function', function: { name: '', arguments: '' } };
    const made = { call, shown: new GrowingText(place), result };
    this.#calls.push(made);
    return made;
  }

  say(text: string): void {
    this.#meta.textContent = text;
  }

  /** Shows what still waits. */
  end(): void {
    for (const each of [this.#text, this.#thinking, ...this.#calls.map(({ shown }) => shown)]) each?.flush();
  }
}
