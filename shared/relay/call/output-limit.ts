/** The limit on output tokens of one answer: what the client asked for, else a default. */
import { ruleLimits, type RuleLimits } from '../../billing/price-rule.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { outputTokensMin } from '../../upstreams/dialects/dialects.ts';
import { logprobTokensMax } from '../../wire/chat-request.ts';
import { limitNames } from '../../upstreams/quirks.ts';
import { dialectOf } from '../../upstreams/types/channel-request.ts';
import type { ChatCall } from './chat-call.ts';

export type LimitedCall = Pick<
  ChatCall,
  'request' | 'model' | 'snapshot' | 'channels' | 'outputTokensAsked' | 'startedMs'
>;

/** What the rule that prices the call says of its model. */
export const ruleLimitsOf = ({
  snapshot,
  model,
  startedMs,
}: Pick<LimitedCall, 'snapshot' | 'model' | 'startedMs'>): RuleLimits =>
  ruleLimits(snapshot.charges, model.base, startedMs);

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
  call: Pick<LimitedCall, 'request' | 'snapshot' | 'model' | 'startedMs'>,
): number {
  const usual = ruleLimitsOf(call).defaultOutputTokens ?? call.snapshot.settings.limits.defaultOutputTokens;
  return Math.min(reasons(call) ? 2 * usual : usual, logprobTokensMax(call.request) ?? Infinity);
}

/** What is reserved for, and sent to an upstream that the balance pays. */
export function outputLimit(call: LimitedCall): OutputLimit {
  const rule = ruleLimitsOf(call);
  const { request, outputTokensAsked, channels, model } = call;
  // A client may send both fields, and an upstream may follow either one.
  const limits = [request.max_completion_tokens, request.max_tokens, outputTokensAsked];
  const sent = limits.filter((limit) => typeof limit === 'number');
  const asked = sent.length > 0 ? Math.max(...sent) : undefined;
  const usual = defaultOutputTokens(call);
  const known = Math.max(...channels.map((channel) => knownMax(channel, rule)));
  const least = channels.map((channel) => outputTokensMin(dialectOf(channel, model.base)));
  const set = channels.flatMap(limitsSet);
  return {
    tokens: Math.max(Math.min(asked ?? usual, known), ...least, ...set),
    // What a row sets is sent whatever the balance covers.
    least: Math.max(reasons(call) ? leastTokensReasoning : leastTokens, ...set),
    heldWhole: asked !== undefined && asked <= (Number.isFinite(known) ? known : usual),
  };
}

const knownMax = ({ params }: ChannelRow, { maxOutputTokens = Infinity }: RuleLimits): number =>
  Math.min(params.max_output_tokens ?? Infinity, maxOutputTokens);

/** A limit that the row sets overrides every other one. */
const limitsSet = ({ params }: ChannelRow): number[] =>
  limitNames.map((name) => params.set[name]).filter((limit) => typeof limit === 'number');
