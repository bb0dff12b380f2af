/**
 * The body of POST /v1/messages: the fields that the relay needs. Unknown fields, blocks and tools are kept. Source: Anthropic's pages
 * "Messages", "Extended thinking", "Tool use" and "Prompt caching", November 2026.
 */
import * as z from 'zod/mini';
import { calledNameMax, fingerprint } from '../../wire/ids.ts';
import type { JsonRecord } from '../../wire/json.ts';

const optional = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));

/** Zero reads the input into the vendor's cache, and answers nothing [platform.claude.com, "Prompt caching", pre-warming]. */
const tokenLimit = z.int().check(z.gte(0));
const Block = z.looseObject({ type: z.string() });
const Content = z.union([z.string(), z.array(Block)]);

/** The body of a count, which has no limit on an answer. */
export const CountedRequest = z.looseObject({
  model: z.string().check(z.minLength(1)),
  // May be empty, to continue an unfinished turn of a thread.
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content: Content })),
  max_tokens: optional(tokenLimit),
  system: optional(Content),
  stream: optional(z.boolean()),
  tools: optional(z.array(z.looseObject({ type: optional(z.string()), name: optional(z.string()) }))),
  tool_choice: optional(z.looseObject({ type: z.string() })),
  stop_sequences: optional(z.array(z.string())),
  temperature: optional(z.number()),
  top_p: optional(z.number()),
  top_k: optional(z.int()),
  thinking: optional(z.looseObject({ type: z.string() })),
  output_config: optional(z.looseObject({ effort: optional(z.string()) })),
  metadata: optional(z.looseObject({ user_id: optional(z.string()) })),
  service_tier: optional(z.string()),
  official: optional(z.boolean()),
});
export type MessagesRequest = z.infer<typeof CountedRequest>;

/** Every answer needs a limit, as in Anthropic's API. */
export const AnsweredRequest = z.looseObject({ ...CountedRequest.shape, max_tokens: tokenLimit });

/** The names of tools as other vendors take them, which are shorter than what Messages allows. */
export class ToolNames {
  readonly #original = new Map<string, string>();

  constructor(tools: readonly JsonRecord[]) {
    for (const { name } of tools)
      if (typeof name === 'string') this.#original.set(this.shortenName(name), name);
  }

  shortenName(name: string): string {
    if (name.length <= calledNameMax) return name;
    const end = `_${fingerprint(name)}`;
    return name.slice(0, calledNameMax - end.length) + end;
  }

  restoreName(name: string): string {
    return this.#original.get(name) ?? name;
  }
}
