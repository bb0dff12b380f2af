/**
 * A double of Anthropic's message threads: holds conversations under the ids of its answers, and counts all held
 * content.
 */

interface Held {
  messages: unknown[];
  tools: unknown;
  isContinued: boolean;
}

export interface ThreadReply {
  status: number;
  body: Record<string, unknown>;
}

export interface ThreadAnswer {
  text: string;
  /** The tokens that the model read: the whole conversation. */
  input: number;
  output: number;
}

const refusal = (status: number, type: string, code: string): ThreadReply => ({
  status,
  body: {
    type: 'error',
    error: { type, message: `${code}.`, details: { error_code: code } },
    request_id: 'req_1',
  },
});

/** Tokens of a text by this double's count. */
export const countTokens = (messages: unknown[]): number => Math.ceil(JSON.stringify(messages).length / 3);

export class ThreadUpstream {
  readonly answers: ThreadAnswer[] = [];
  readonly #held = new Map<string, Held>();

  /** Forgets all threads, like the vendor after some minutes. */
  expire(): void {
    this.#held.clear();
  }

  answer(body: Record<string, unknown>): ThreadReply {
    const { thread, messages, tools } = body as {
      thread?: Record<string, unknown>;
      messages: unknown[];
      tools?: unknown;
    };
    const previous = thread?.['type'] === 'continue' ? String(thread['previous_message_id']) : undefined;
    const held = previous === undefined ? undefined : this.#held.get(previous);
    if (previous !== undefined && !held) return refusal(404, 'not_found_error', 'thread_not_found');
    if (held?.isContinued) return refusal(400, 'invalid_request_error', 'thread_already_continued');
    if (held && ('system' in body || 'tools' in body))
      return refusal(400, 'invalid_request_error', 'thread_fingerprint_mismatch');
    if (held) held.isContinued = true;
    const all = [...(held?.messages ?? []), ...messages];
    const words = JSON.stringify(all).match(/secret word is (\w+)/)?.[1] ?? 'unknown';
    const text = `The word is ${words}.`;
    const content = [{ type: 'text', text }];
    const id = `msg_vendor${this.answers.length + 1}`;
    const counts = { input: countTokens(all), output: 5 };
    this.answers.push({ text, ...counts });
    if (thread)
      this.#held.set(id, {
        messages: [...all, { role: 'assistant', content }],
        tools: tools ?? held?.tools,
        isContinued: false,
      });
    return {
      status: 200,
      body: {
        id,
        type: 'message',
        role: 'assistant',
        model: body['model'],
        content,
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: counts.input, output_tokens: counts.output },
      },
    };
  }
}
