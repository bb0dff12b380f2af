import { type Dialect } from '../../shared/upstreams/dialect.ts';
import { CallIds } from '../../shared/upstreams/call-ids.ts';
import { dialectNames, loadDialect } from '../../shared/upstreams/dialects/dialects.ts';
import { buildRequest } from '../../shared/upstreams/called-channel.ts';
import type { BillableCall } from '../../shared/relay/money/call-costs.ts';
import { computeDefaultOutputTokens } from '../../shared/relay/call/serving-channels.ts';
import type { JsonRecord } from '../../shared/wire/json.ts';
import type { CallAsked, Delivered } from '../oracle/endings.ts';
import type { Tokens } from '../oracle/price-list.ts';
import { findServiceTiers } from '../../shared/billing/tariff.ts';
import { channels, dialects, tierNames, type Model } from './accounts.ts';
import type { SeededRandom } from './seeded-random.ts';

const loaded = new Map<string, Dialect>(
  await Promise.all(dialectNames.map(async (name) => [name, await loadDialect(name)] as const)),
);

const [channel] = channels;
const callIds = new CallIds({ channel: channel.id, requestId: 'simulated' });

/** The request body of a channel for the call as JSON, and its requested service tier. */
export function bodyFor(
  call: BillableCall,
  outputTokensLimit: number | undefined,
): { body: JsonRecord; tier: string | undefined } {
  const name = dialects[call.model.base as Model];
  const dialect = loaded.get(name);
  if (!dialect) throw new Error(`no dialect ${name}`);
  const { request, sent } = buildRequest(channel, {
    dialect,
    call: { ...call, form: call.endpoint, unknown: {} },
    model: call.model.base,
    secret: undefined,
    outputTokensLimit,
    outputTokensDefault: computeDefaultOutputTokens(call),
    states: new Map(),
    callIds,
    omissions: new Set(),
    serviceTiers: findServiceTiers(call.tariff, call.model.base),
  });
  return { body: JSON.parse(request.body) as JsonRecord, tier: sent.serviceTier };
}

const limitFields = {
  chat: ['max_tokens', 'max_completion_tokens'],
  messages: ['max_tokens'],
  responses: ['max_output_tokens'],
} as const;

/** The limit of one answer as an upstream reads it. */
export function limitIn(model: Model, body: JsonRecord): number | undefined {
  const limits = limitFields[dialects[model]].map((field) => body[field]);
  const sent = limits.filter((limit) => typeof limit === 'number');
  return sent.length > 0 ? Math.min(...sent) : undefined;
}

export function withoutLimit(body: JsonRecord): JsonRecord {
  const fields = new Set<string>(Object.values(limitFields).flat());
  return Object.fromEntries(Object.entries(body).filter(([field]) => !fields.has(field)));
}

/** The length of an unlimited answer. */
const wordyTokens = 6_000;

/** The request that reached the upstream. */
export interface AskedUpstream {
  /** The limit for all answers together, if there is one. */
  outputMax: number | undefined;
  tier: string | undefined;
}

/** Chooses any ending. Sometimes the upstream writes or counts far more than requested, or serves another tier. */
export function deliver(
  random: SeededRandom,
  asked: CallAsked,
  { outputMax, tier: wanted }: AskedUpstream,
): Delivered {
  const failed = random.chance(0.3);
  const anyContent = random.chance(failed ? 0.5 : 0.95);
  const leftEarly = !failed && random.chance(0.1);
  const goesBeyond = random.chance(0.05);
  const most = (outputMax ?? wordyTokens) * (goesBeyond ? 5 : 1);
  // Answers often end at their limit.
  const outputTokens = anyContent ? (random.chance(0.4) ? most : random.integer(0, most)) : 0;
  const input = goesBeyond ? asked.inputTokens * random.integer(1, 3) : asked.inputTokens;
  const isSilent = !failed && random.chance(0.1);
  const reported = isSilent ? undefined : { ...cacheOf(random, input), input, output: outputTokens };
  const tier = random.chance(0.5) ? wanted : random.pick([undefined, 'standard', ...tierNames]);
  return { failed, anyContent, leftEarly, outputTokens, reported, tier };
}

function cacheOf(random: SeededRandom, input: number): Partial<Tokens> {
  if (random.chance(0.5)) return {};
  const cached = random.integer(0, input);
  const written = random.integer(0, input - cached);
  const writtenForHour = random.integer(0, input - cached - written);
  return { cached, written, writtenForHour };
}
