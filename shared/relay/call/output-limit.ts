/** The limit on output tokens of one answer: what the client asked for, else a default. */
import { ruleLimits, type RuleLimits } from '../../billing/price-rule.ts';
import { outputTokensMin } from '../../upstreams/dialects/dialects.ts';
import { logprobTokensMax } from '../../wire/chat-request.ts';
import { limitNames } from '../../upstreams/quirks.ts';
import { dialectOf } from '../../upstreams/types/channel-quirks.ts';
import type { Candidate, ChannelLimits } from './candidate.ts';
import type { ChatCall } from './chat-call.ts';

export type LimitedCall = Pick<
  ChatCall,
  'request' | 'model' | 'snapshot' | 'charges' | 'limits' | 'outputTokensAsked' | 'startedMs'
>;

/** What the rule that prices the call says of its model. */
export const ruleLimitsOf = ({
  charges,
  model,
  startedMs,
}: Pick<LimitedCall, 'charges' | 'model' | 'startedMs'>): RuleLimits =>
  ruleLimits(charges, model.base, startedMs);

export interface OutputLimit {
  /** The most that any candidate is sent when the balance pays. */
  tokens: number;
  /** The fewest for which the call is made, if the balance covers no more. */
  least: number;
  /** The client asked for this limit, so the whole of it is held if the balance covers it. */
  heldWhole: boolean;
}

const leastTokens = 1_024;
const leastTokensReasoning = 4_096;

/** Efforts that spend few tokens before the answer. */
const lowEfforts: ReadonlySet<string> = new Set(['none', 'minimal', 'low']);

function reasons({ request }: Pick<LimitedCall, 'request'>): boolean {
  const { reasoning_effort: effort } = request;
  return typeof effort === 'string' && !lowEfforts.has(effort);
}

/**
 * The limit of a call whose client sent none. Reasoning takes its tokens from it, so it is doubled then. Never more than
 * the tokens whose log probabilities the relay can hold.
 */
export function defaultOutputTokens(
  call: Pick<LimitedCall, 'request' | 'snapshot' | 'charges' | 'model' | 'startedMs'>,
): number {
  const usual = ruleLimitsOf(call).defaultOutputTokens ?? call.snapshot.settings.limits.defaultOutputTokens;
  return Math.min(reasons(call) ? 2 * usual : usual, logprobTokensMax(call.request) ?? Infinity);
}

/** What is reserved for, and sent to an upstream that the balance pays. */
export function outputLimit(call: LimitedCall): OutputLimit {
  const { maxOutputTokens = Infinity } = ruleLimitsOf(call);
  const { request, outputTokensAsked, limits: channels } = call;
  // A client may send both fields, and an upstream may follow either one.
  const fields = [request.max_completion_tokens, request.max_tokens, outputTokensAsked];
  const sent = fields.filter((limit) => typeof limit === 'number');
  const asked = sent.length > 0 ? Math.max(...sent) : undefined;
  const usual = defaultOutputTokens(call);
  const known = Math.min(channels.most, maxOutputTokens);
  return {
    tokens: Math.max(Math.min(asked ?? usual, known), channels.fewest),
    // What a row sets is sent whatever the balance covers.
    least: Math.max(reasons(call) ? leastTokensReasoning : leastTokens, channels.set),
    heldWhole: asked !== undefined && asked <= (Number.isFinite(known) ? known : usual),
  };
}

/** Of the channels of all candidates, of which there may be hundreds: to be kept. */
export function channelLimits(candidates: readonly Pick<Candidate, 'channel' | 'model'>[]): ChannelLimits {
  const most = candidates.map(({ channel }) => channel.params.max_output_tokens ?? Infinity);
  const dialects = new Set(candidates.map(({ channel, model }) => dialectOf(channel, model)));
  const sets = candidates.flatMap(({ channel: { params } }) => limitNames.map((name) => params.set[name]));
  const set = Math.max(0, ...sets.filter((limit) => typeof limit === 'number'));
  const fewest = Math.max(set, ...[...dialects].map(outputTokensMin));
  return Object.freeze({ most: Math.max(...most), fewest, set });
}
