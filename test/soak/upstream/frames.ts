/** The frames of a soak's upstream: chat completions as OpenAI streams them. */
import type { Tokens } from '../../oracle/price-list.ts';

const chunkOf = (choices: object[], more: object = {}): object => ({
  id: 'chatcmpl-soak',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'soak-upstream',
  choices,
  ...more,
});

export const dataOf = (value: object | string): string =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

export const wordFrame = (content: string): string =>
  dataOf(chunkOf([{ index: 0, delta: { content }, finish_reason: null }]));

export const finishFrame = dataOf(chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]));

export const usageOf = ({ input, output }: Tokens): object => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

export const usageFrame = (usage: object): string => dataOf(chunkOf([], { usage }));

export const doneFrame = dataOf('[DONE]');

export const errorOf = (
  message: string,
  type: string,
  code: string,
  param: string | null = null,
): object => ({
  error: { message, type, param, code },
});
