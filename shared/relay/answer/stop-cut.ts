/**
 * Ends the visible text of an answer at a stop sequence that its upstream has no field for. What the upstream writes after
 * it is read to its end and charged, and no client sees it. Reasoning and calls are not searched: vendors do not either.
 */
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatDelta, ChunkChoice } from '../../wire/chat-response.ts';

export class StopCut implements Machine<ChatChunk, ChatChunk> {
  readonly #sequences: () => readonly string[] | undefined;
  readonly #choices = new Map<number, StopSearch>();

  /** @param sequences known once there is a chunk; undefined: the upstream stops by itself */
  constructor(sequences: () => readonly string[] | undefined) {
    this.#sequences = sequences;
  }

  /** The first choice was ended here, so the upstream's state of the turn is about a longer one. */
  get ended(): boolean {
    return this.endedAt !== undefined;
  }

  /** The sequence at which the first choice was ended. */
  get endedAt(): string | undefined {
    return this.#choices.get(0)?.found;
  }

  push(chunk: ChatChunk): ChatChunk[] {
    const sequences = this.#sequences();
    if (!sequences || chunk.choices.length === 0) return [chunk];
    return chunk.choices.flatMap((choice) => {
      const search = this.#choices.get(choice.index) ?? new StopSearch(sequences);
      this.#choices.set(choice.index, search);
      return shownOf(choice, search).map((shown) => Object.assign({}, chunk, { choices: [shown] }));
    });
  }

  /** Returns no chunks, because the finish chunk has released all text. */
  end(): ChatChunk[] {
    return [];
  }
}

function shownOf(choice: ChunkChoice, search: StopSearch): ChunkChoice[] {
  const { delta, finish_reason: reason } = choice;
  const { content, ...beside } = delta;
  if (search.found !== undefined)
    return reason === null ? [] : [{ ...choice, delta: {}, finish_reason: 'stop' }];
  const isLast = reason !== null || endsText(delta);
  if (!content) {
    const rest = isLast ? search.takeOpenText() : '';
    const held = { index: choice.index, delta: { content: rest }, logprobs: null, finish_reason: null };
    return rest === '' ? [choice] : [held, choice];
  }
  const text = search.push(content) + (isLast && search.found === undefined ? search.takeOpenText() : '');
  // The probabilities of a text that is cut name what is cut off.
  if (search.found !== undefined)
    return [{ ...choice, delta: { ...selectBefore(delta), content: text }, logprobs: null }];
  const shown =
    text === '' && Object.keys(beside).length > 0 && !delta.role ? beside : { ...beside, content: text };
  return text === '' && Object.keys(beside).length === 0 && choice.logprobs === null
    ? []
    : [{ ...choice, delta: shown }];
}

/** True if text after this delta is a new text. */
const endsText = ({
  tool_calls: calls,
  reasoning_content: reasoning,
  refusal,
  images,
  phase,
}: ChatDelta): boolean => [calls, reasoning, refusal, images, phase].some((each) => each !== undefined);

/** The parts of a delta that come before its text. */
const selectBefore = ({ role, reasoning_content: reasoning, phase }: ChatDelta): ChatDelta => ({
  ...(role && { role }),
  ...(reasoning !== undefined && { reasoning_content: reasoning }),
  ...(phase !== undefined && { phase }),
});

/** Looks for the first sequence that becomes complete, over any cutting of the text. */
class StopSearch {
  /** The sequence that became complete; of several that end at once, the longest. */
  found: string | undefined;
  readonly #sequences: Sequence[];
  /** The end of the text so far, as far as it may be the beginning of a sequence. */
  #openText = '';

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.map((text) => new Sequence(text));
  }

  /** Returns the text that can be shown so far. */
  push(piece: string): string {
    const text = this.#openText + piece;
    for (let at = this.#openText.length; at < text.length; at += 1) {
      const ends = this.#sequences.filter((each) => each.completes(text[at] ?? ''));
      if (ends.length === 0) continue;
      const [longest] = ends.map((each) => each.text).toSorted((a, b) => b.length - a.length);
      this.found = longest ?? '';
      this.#openText = '';
      return text.slice(0, at + 1 - this.found.length);
    }
    const shown = text.length - Math.max(...this.#sequences.map(({ matched }) => matched));
    this.#openText = text.slice(shown);
    return text.slice(0, shown);
  }

  /** The text ends here. */
  takeOpenText(): string {
    const held = this.#openText;
    this.#openText = '';
    for (const each of this.#sequences) each.matched = 0;
    return held;
  }
}

/** Knuth, Morris and Pratt's search: each character of a text costs the same, whatever the sequence. */
class Sequence {
  /** How much of it the end of the text is. */
  matched = 0;
  readonly text: string;
  /** By the length that matched before a character that does not: what of it can still be the beginning. */
  readonly #shorter: number[] = [0];

  constructor(text: string) {
    this.text = text;
    for (let at = 1; at < text.length; at += 1)
      this.#shorter.push(this.#after(this.#shorter[at - 1] ?? 0, text[at] ?? ''));
  }

  get length(): number {
    return this.text.length;
  }

  completes(character: string): boolean {
    this.matched = this.#after(this.matched, character);
    return this.matched === this.length;
  }

  #after(matched: number, character: string): number {
    let length = matched;
    while (length > 0 && this.text[length] !== character) length = this.#shorter[length - 1] ?? 0;
    return this.text[length] === character ? length + 1 : 0;
  }
}
