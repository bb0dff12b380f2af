/**
 * Reads the text of an upstream's answer to a test. Parsing is lenient, because the text is shown and never
 * billed.
 */
import * as z from 'zod/mini';
import { parseJson } from '../../wire/json-record.ts';

export interface ReplyText {
  model: string;
  text: string;
  /** `finish_reason`, or a note that it is missing. */
  ending: string;
}

const Part = z.nullish(
  z.object({ content: z.nullish(z.string()), reasoning_content: z.nullish(z.string()) }),
);
const Reply = z.object({
  model: z.nullish(z.string()),
  choices: z.array(z.object({ delta: Part, message: Part, finish_reason: z.nullish(z.string()) })),
});

/** Parses a chat completion, streamed or not; undefined: the body is neither. */
export function firstWords(body: string): ReplyText | undefined {
  const events = body.split(/\r\n|\r|\n/).filter((line) => line.startsWith('data:'));
  const replies = [body, ...events.map((line) => line.slice('data:'.length))].flatMap(
    (text) => z.safeParse(Reply, parseJson(text)).data ?? [],
  );
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
