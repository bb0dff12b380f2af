/** Stop sequences, and which of them the relay looks for itself. */
import type { ChatRequest } from '../wire/chat-request.ts';
import { CannotCarry } from './dialect.ts';

/** More and longer ones than any vendor takes: what is held of an answer is as long as one. */
const sequencesMax = 16;
const lengthMax = 256;

export const stopSequences = ({ stop }: Pick<ChatRequest, 'stop'>): string[] =>
  (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((each) => each !== '');

/** Those that the upstream has no field for, to be cut by the relay. Undefined: there are none. Throws CannotCarry. */
export function cutHere(sequences: readonly string[]): readonly string[] | undefined {
  if (sequences.length > sequencesMax || sequences.some(({ length }) => length > lengthMax)) {
    const message = `This model takes at most ${sequencesMax} stop sequences of ${lengthMax} characters.`;
    throw new CannotCarry('stop', message);
  }
  return sequences.length > 0 ? sequences : undefined;
}
