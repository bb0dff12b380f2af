import * as z from 'zod/mini';
import { flag, integer, number, text, textList } from './cells.ts';

const seconds = number.check(z.gt(0), z.lte(900));

/** A row of the table `channels`: one upstream, what it serves and how it is called. */
export const ChannelRow = z.strictObject({
  id: text,
  name: z._default(text, ''),
  type: z._default(z.enum(['openai']), 'openai'),
  /** The base address including `/v1`. */
  endpoint: z.url(),
  /** References such as `ssm:/relay/<stack>/name`. Absent: no credentials are sent. */
  secret: z.optional(z.union([text, textList])),
  models: textList,
  /** Public model name -> the upstream's. */
  mapper: z._default(z.record(z.string(), text), {}),
  priority: z._default(integer, 0),
  weight: z._default(number.check(z.gte(0)), 1),
  /** Only an explicit true enables a channel; what cannot be read counts as off. */
  state: z.catch(z._default(flag, false), false),
  connect_seconds: z._default(seconds, 5),
  first_content_seconds: z._default(seconds, 60),
  idle_seconds: z._default(seconds, 60),
  total_seconds: z._default(seconds, 600),
  params: z._default(
    z.strictObject({
      /** Fields put into every request, over what the client sent. */
      set: z._default(z.record(z.string(), z.unknown()), {}),
      /** Fields that this upstream must not see. */
      drop: z._default(textList, []),
      max_output_tokens: z.optional(integer.check(z.gte(1))),
      /** false: `stream: true` is never sent; the upstream's JSON answer is streamed on. */
      stream: z._default(flag, true),
      /** false: `stream_options.include_usage` is not sent. */
      include_usage: z._default(flag, true),
    }),
    { set: {}, drop: [], stream: true, include_usage: true },
  ),
  /** The field in which a converted or lowered token limit is sent. */
  max_tokens_field: z.optional(z.enum(['max_tokens', 'max_completion_tokens'])),
});
export type ChannelRow = z.infer<typeof ChannelRow>;
