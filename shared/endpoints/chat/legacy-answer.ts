/** Answers in OpenAI's older form of function calls, which holds one call: later parallel calls are left out. */
import type { ChatChunk, ChatCompletion, ChatDelta, FinishReason } from '../../wire/chat-response.ts';

/** A chunk with `function_call` in its deltas. */
export const legacyChunk = (chunk: ChatChunk): object => ({
  ...chunk,
  choices: chunk.choices.map((choice) => ({
    ...choice,
    delta: legacyDelta(choice.delta),
    finish_reason: legacyReason(choice.finish_reason),
  })),
});

/** A completion with `function_call` in its messages. */
export const legacyCompletion = (completion: ChatCompletion): object => ({
  ...completion,
  choices: completion.choices.map(({ message, finish_reason: reason, ...choice }) => {
    const called = message.tool_calls?.[0]?.function;
    return {
      ...choice,
      message: { ...message, tool_calls: null, ...(called && { function_call: called }) },
      finish_reason: legacyReason(reason),
    };
  }),
});

function legacyDelta({ tool_calls: pieces, ...delta }: ChatDelta): object {
  const [called] = (pieces ?? []).flatMap((piece) =>
    piece.index === 0 && piece.function ? [piece.function] : [],
  );
  return called ? { ...delta, function_call: called } : delta;
}

const legacyReason = (reason: FinishReason | null): string | null =>
  reason === 'tool_calls' ? 'function_call' : reason;
