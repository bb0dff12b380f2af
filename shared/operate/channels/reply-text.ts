/** Reads what an upstream's answer to a test says, leniently: it is shown to a person and never billed. */
import * as z from 'zod/mini';

export interface ReplyText {
  model: string;
  text: string;
  /** `finish_reason`, or that there was none. */
  ending: string;
}

const Part = z.nullish(
  z.object({ content: z.nullish(z.string()), reasoning_content: z.nullish(z.string()) }),
);
const Reply = z.object({
  model: z.nullish(z.string()),
  choices: z.array(z.object({ delta: Part, message: Part, finish_reason: z.nullish(z.string()) })),
});

/** Reads a chat completion, streamed or not; undefined when the body is neither. */
export function firstWords(body: string): ReplyText | undefined {
  const replies = [body, ...eventData(body)].map(parseReply).filter((reply) => reply !== undefined);
  if (replies.length === 0) return undefined;
  const choices = replies.flatMap((reply) => reply.choices.slice(0, 1));
  const textOf = (field: 'content' | 'reasoning_content'): string =>
    choices.map((choice) => (choice.message ?? choice.delta)?.[field] ?? '').join('');
  return {
    model: replies.find((reply) => reply.model)?.model ?? 'model not named',
    text: textOf('content') || textOf('reasoning_content'),
    ending: choices.findLast((choice) => choice.finish_reason)?.finish_reason ?? 'no finish_reason',
  };
}

function eventData(body: string): string[] {
  return body
    .split(/\r\n|\r|\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length));
}

function parseReply(text: string): z.infer<typeof Reply> | undefined {
  try {
    const parsed = z.safeParse(Reply, JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
