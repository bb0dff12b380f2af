import type { ScriptCall, Turn } from './script.ts';

/** Counts of one answer. What is read from the cache and written to it is not in `input`. */
export interface Counts {
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
  /** The part of `output` that the model thought. */
  thinking: number;
}

/** Four characters are a token of a prompt. */
export const promptTokens = (text: string): number => Math.ceil(text.length / 4);

/** Up to four characters of a word, with the space before them, are a token of an answer; joined they are the text. */
export const wordsOf = (text: string): string[] => text.match(/\s*\S{1,4}\s*$|\s*\S{1,4}|\s+$/gu) ?? [];

export const callTokens = ({ input }: ScriptCall): number => 5 + Math.ceil(input.length / 4);

/** Pieces of some characters that never part a pair of surrogates. */
export function piecesOf(text: string, size = 7): string[] {
  const characters = Array.from(text);
  const count = Math.ceil(characters.length / size);
  return Array.from({ length: count }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}

export const outputTokens = ({ thinking, text, calls }: Turn): number =>
  wordsOf(thinking).length + wordsOf(text).length + calls.reduce((sum, call) => sum + callTokens(call), 0);

/**
 * The turn as far as `limit` tokens go: thinking first, then text, then calls, of which the last may be cut
 * inside its input.
 */
export function limited(turn: Turn, limit: number): Turn {
  if (outputTokens(turn) <= limit) return turn;
  const thought = wordsOf(turn.thinking).slice(0, limit);
  const words = wordsOf(turn.text).slice(0, limit - thought.length);
  let left = limit - thought.length - words.length;
  const calls: ScriptCall[] = [];
  for (const call of turn.calls) {
    if (left < 5) break;
    calls.push({ ...call, input: call.input.slice(0, 4 * (left - 5)) });
    left -= callTokens(call);
  }
  return { ...turn, thinking: thought.join(''), text: words.join(''), calls, finish: 'length' };
}
