/** The parts of upstream scripts: chunks as OpenAI sends them. */

export const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** A chunk with one choice, as OpenAI streams it. */
export function chunk(delta: object, finishReason: string | null = null, more: object = {}): object {
  return chunkOf([{ index: 0, delta, logprobs: null, finish_reason: finishReason }], more);
}

export const chunkOf = (choices: object[], more: object = {}): object => ({
  id: 'chatcmpl-upstream',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'upstream-model',
  choices,
  ...more,
});

/** The chunk with the usage, after the last choice. */
export const usageChunk = (values: object = usage): object => chunkOf([], { usage: values });

export const toolDelta = (index: number, piece: object): object => ({ tool_calls: [{ index, ...piece }] });
