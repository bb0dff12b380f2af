/** Reads closes that were not written, or came too late, from log lines in the formats of log services. */
import * as z from 'zod/mini';
import { eachPart, partCountsOf } from '../../wire/chat-response.ts';
import { parseJson } from '../../wire/json.ts';
import type { CloseRecord } from '../quota-item.ts';

/** A close that still has to be written. */
export interface LostClose {
  account: string;
  releaseSlot: boolean;
  closeRecord: CloseRecord;
}

const wholeNumber = z.string().check(z.regex(/^-?\d+$/));

/** The fields of a `settle_lost` or `settle_late` log line. They contain the complete close. */
const LossLine = z.object({
  message: z.enum(['settle_lost', 'settle_late']),
  request_id: z.string(),
  account: z.string(),
  give_back: z.boolean(),
  kind: z.enum(['settled', 'released', 'expired', 'cancelled']),
  charge_nano: wholeNumber,
  at: z.number(),
  endpoint: z.optional(z.string()),
  prompt_tokens: z.optional(z.number()),
  completion_tokens: z.optional(z.number()),
  ...eachPart('count', () => z.optional(z.number())),
  estimated: z.optional(z.boolean()),
  end: z.optional(z.string()),
  cost_nano: z.optional(wholeNumber),
  channel: z.optional(z.string()),
  upstream_model: z.optional(z.string()),
  first_content_ms: z.optional(z.number()),
  bought_nano: z.optional(wholeNumber),
  flag: z.optional(z.string()),
  price: z.optional(z.string()),
  model: z.optional(z.string()),
  alias: z.optional(z.string()),
});

/** The output of `aws logs filter-log-events`. */
const LogEvents = z.object({ events: z.array(z.object({ message: z.string() })) });

/**
 * Accepts raw lines, lines with a time before the JSON, and the output of `aws logs filter-log-events`.
 * Returns each close once.
 */
export function lossesIn(text: string): LostClose[] {
  const { data } = z.safeParse(LogEvents, parseJson(text));
  const messages = data ? data.events.map(({ message }) => message) : text.split('\n');
  const found = messages.flatMap((line) => {
    const start = line.indexOf('{');
    const parsed = start < 0 ? undefined : z.safeParse(LossLine, parseJson(line.slice(start)));
    return parsed?.success ? [lostClose(parsed.data)] : [];
  });
  return [...new Map(found.map((loss) => [loss.closeRecord.id, loss])).values()];
}

const lostClose = (line: z.infer<typeof LossLine>): LostClose => ({
  account: line.account,
  releaseSlot: line.give_back,
  closeRecord: {
    id: line.request_id,
    kind: line.kind,
    charge: BigInt(line.charge_nano),
    at: line.at,
    endpoint: line.endpoint,
    promptTokens: line.prompt_tokens,
    completionTokens: line.completion_tokens,
    cache: partCountsOf(line),
    estimated: line.estimated,
    end: line.end,
    cost: line.cost_nano === undefined ? undefined : BigInt(line.cost_nano),
    channel: line.channel,
    upstreamModel: line.upstream_model,
    firstContentMs: line.first_content_ms,
    bought: line.bought_nano === undefined ? undefined : BigInt(line.bought_nano),
    flag: line.flag,
    price: line.price,
    model: line.model,
    alias: line.alias,
  },
});
