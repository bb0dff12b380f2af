import type { ChatContentPart, ChatMessage, ChatToolCall } from '../../wire/chat-request.ts';
import type { SealedState } from '../endpoint.ts';
import { contentOfParts, partsOfContent } from './read-content.ts';

/** An output that is not assigned to a call yet. */
export interface CallOutput {
  callId: string;
  parts: ChatContentPart[];
  param: string;
}

/** Outputs by call id. */
export type OutputQueues = ReadonlyMap<string, CallOutput[]>;

/**
 * Assistant messages, calls and reasoning that stand together in the input. They are one turn of the model, in any
 * order, because clients change it.
 */
export class Turn {
  readonly #said: ChatMessage[] = [];
  readonly #calls: ChatToolCall[] = [];
  #sealed: SealedState | undefined;

  say(message: ChatMessage): void {
    this.#said.push(message);
  }

  call(call: ChatToolCall): void {
    this.#calls.push(call);
  }

  /** The last state counts: it is the whole one. */
  seal(sealed: SealedState | undefined): void {
    this.#sealed = sealed ?? this.#sealed;
  }

  /**
   * The turn as chat messages: one assistant message if it has calls or a state, then a tool message for each call that
   * has an output. Adds the state to `sealed`.
   */
  messages(queues: OutputQueues, sealed: Map<ChatMessage, SealedState>): ChatMessage[] {
    const whole = this.#calls.length > 0 || (this.#sealed !== undefined && this.#said.length > 0);
    if (!whole) return this.#said;
    const message = this.#message();
    if (this.#sealed) sealed.set(message, this.#sealed);
    const results = this.#calls.flatMap(({ id }): ChatMessage[] => {
      const output = queues.get(id ?? '')?.shift();
      return output
        ? [{ role: 'tool', tool_call_id: id, content: contentOfParts(output.parts, 'tool') }]
        : [];
    });
    return [message, ...results];
  }

  #message(): ChatMessage {
    const parts = this.#said.flatMap(({ content }) => partsOfContent(content));
    const content = this.#sealed ? exactContent(parts) : contentOfParts(parts);
    // A state has the phases of the earlier ones.
    const { phase } = this.#said.at(-1) ?? {};
    return {
      ...this.#said[0],
      ...(phase !== undefined && { phase }),
      role: 'assistant',
      content: content === '' ? null : content,
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    };
  }
}

/** The texts as the model wrote them: a state counts their characters, and vendors compare them. */
function exactContent(parts: ChatContentPart[]): string | ChatContentPart[] {
  if (parts.some(({ type }) => type !== 'text')) return parts;
  return parts.map(({ text }) => text ?? '').join('');
}
