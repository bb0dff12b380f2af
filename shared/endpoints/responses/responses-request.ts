import * as z from 'zod/mini';

/**
 * The body of POST /v1/responses. Known fields are checked as far as the conversion needs them; unknown and
 * null fields are ignored, because coding agents send many. The conversion checks items and their parts one
 * by one, so that errors name the item. Source: the relay's client contract, "Responses request".
 */
const optional = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));

/** A tool never causes a refusal: tools that chat upstreams do not support are left out. */
export const ResponsesTool = z.looseObject({ type: optional(z.string()) });
export type ResponsesTool = z.infer<typeof ResponsesTool>;

export const InputItem = z.looseObject({ type: optional(z.string()), role: optional(z.string()) });
export type InputItem = z.infer<typeof InputItem>;

export const ResponsesRequest = z.looseObject({
  model: z.string().check(z.minLength(1)),
  input: z.union([z.string().check(z.minLength(1)), z.array(InputItem).check(z.minLength(1))]),
  instructions: optional(z.string()),
  max_output_tokens: optional(z.int().check(z.gte(1))),
  temperature: optional(z.number()),
  top_p: optional(z.number()),
  stream: optional(z.boolean()),
  tools: optional(z.array(ResponsesTool)),
  tool_choice: optional(z.unknown()),
  parallel_tool_calls: optional(z.boolean()),
  text: optional(z.looseObject({ format: optional(z.looseObject({ type: z.string() })) })),
  reasoning: optional(z.looseObject({ effort: optional(z.string()) })),
  include: optional(z.unknown()),
  top_logprobs: optional(z.unknown()),
  prompt: optional(z.unknown()),
  previous_response_id: optional(z.string()),
  conversation: optional(z.unknown()),
  official: optional(z.boolean()),
  /** Fields of Chat Completions that clients send here, too. An answer has room for one choice. */
  stop: optional(z.union([z.string(), z.array(z.string())])),
  n: optional(z.int().check(z.gte(1))),
});
export type ResponsesRequest = z.infer<typeof ResponsesRequest>;
