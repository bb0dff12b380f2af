import { formatYuan } from '../../billing/amount.ts';
import { planSlots } from '../../billing/plan-slots.ts';
import { formatPrice, priceOf, type Price } from '../../billing/price.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import { inputCost, type ReserveNeed, type ReserveRefusal } from '../../billing/reservation.ts';
import type { ReservationRequest } from './reservations.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { promptTokens } from '../../billing/prompt-tokens.ts';
import { searchTokensOf } from '../search/search.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

/** What money has to know of a call. */
export type BillableCall = Pick<
  ChatCall,
  | 'identity'
  | 'request'
  | 'model'
  | 'key'
  | 'account'
  | 'snapshot'
  | 'route'
  | 'outputTokensAsked'
  | 'deadlineMs'
  | 'record'
>;

/** Upper bound of the input over its estimate: estimates are up to 16 % off. */
const inputMargin = 1.2;
const inputMarginTokens = 16;
const keyLength = 12;

export const priceOfCall = ({ snapshot, model }: BillableCall): Price =>
  priceOf(snapshot.charges, model.base);

/** What the reservations have to reserve for a call; undefined for a free call of a key without limits. */
export function reservationRequestOf(
  call: BillableCall,
  price: Price,
  nowMs: number,
): ReservationRequest | undefined {
  const { key, model, snapshot, account } = call;
  const limited = key.max_concurrency !== undefined || key.rpm !== undefined;
  const free = price.type === 'non-billing';
  if (free && !limited && !model.official) return undefined;

  const held = snapshot.settings.subscriptionEnabled ? account?.plan : undefined;
  const slots = planSlots({ plans: snapshot.plans, held, nowMs, model: model.base });
  const inputTokens = promptTokens(call.request);
  const need: ReserveNeed = {
    id: call.identity.requestId,
    price,
    slots,
    estimate: {
      inputTokens,
      inputTokensMax: Math.ceil(inputTokens * inputMargin) + inputMarginTokens + searchTokensOf(call),
      n: call.request.n ?? 1,
      outputTokensMax: outputTokensMax(call),
    },
    key: key.hash.slice(0, keyLength),
    maxConcurrency: key.max_concurrency,
    rpm: key.rpm,
    minute: Math.floor(nowMs / 60_000),
    takesNothing: free || model.official,
  };
  const entry = {
    until: Math.ceil(call.deadlineMs / 1000),
    input: need.takesNothing ? 0n : inputCost(price, inputTokens),
    key: need.key,
    model: model.base,
    price: formatPrice(price),
    busy: key.max_concurrency !== undefined,
    official: model.official,
    tombstone: false,
  };
  const refused = (plan: ReserveRefusal, item: QuotaItem): Refusal =>
    refusalOf(call, need, plan, item, nowMs);
  return { account: key.account, need, entry, refused };
}

/** Output tokens of one answer at most: what was asked for, else the default, within what every channel can. */
function outputTokensMax({ request, outputTokensAsked, route, snapshot }: BillableCall): number {
  // Both fields may be sent, and an upstream may follow either.
  const limits = [request.max_completion_tokens, request.max_tokens, outputTokensAsked];
  const sent = limits.filter((limit) => typeof limit === 'number');
  const asked = sent.length > 0 ? Math.max(...sent) : undefined;
  const wanted = asked ?? snapshot.settings.limits.defaultOutputTokens;
  const known = route.map((channel) => channel.params.max_output_tokens ?? Infinity);
  return Math.min(wanted, Math.max(...known));
}

function refusalOf(
  call: BillableCall,
  need: ReserveNeed,
  plan: ReserveRefusal,
  item: QuotaItem,
  nowMs: number,
): Refusal {
  if (plan.reason === 'quota') return quotaRefusal(call, need, plan, item);
  const seconds = plan.reason === 'rate' ? secondsOfMinuteLeft(nowMs) : 1;
  const ofRate = plan.reason === 'rate' && need.rpm !== undefined ? rateHeaders(need.rpm, 0, nowMs) : {};
  const why = {
    rate: `This API key is limited to ${need.rpm} requests a minute.`,
    concurrency: `This API key is limited to ${need.maxConcurrency} requests at the same time.`,
    open_entries: 'This account has too many requests under way.',
  }[plan.reason];
  return refuse('rate_limit_exceeded', `${why} Please try again in ${seconds}s.`, {
    headers: { 'retry-after': String(seconds), ...ofRate },
    reason: `limit_${plan.reason}`,
  });
}

/** What a key's limit of requests a minute leaves, in the words of OpenAI's headers. */
export const rateHeaders = (rpm: number, remaining: number, nowMs: number): Record<string, string> => ({
  'x-ratelimit-limit-requests': String(rpm),
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${secondsOfMinuteLeft(nowMs)}s`,
});

const secondsOfMinuteLeft = (nowMs: number): number => Math.ceil((60_000 - (nowMs % 60_000)) / 1000);

/** Says what is there, what is needed, how the plan stands, and who can help. */
function quotaRefusal(
  call: BillableCall,
  need: ReserveNeed,
  { available, need: amount }: Extract<ReserveRefusal, { reason: 'quota' }>,
  item: QuotaItem,
): Refusal {
  const { contact } = call.snapshot.settings;
  const plan = need.slots.map(
    ({ name, key, limit, resetsAtMs }) =>
      `Plan entry "${name}": ${item.plan.get(key) ?? 0} of ${limit} calls are used, it resets on ${new Date(resetsAtMs).toISOString().slice(0, 10)}.`,
  );
  const words = [
    `The balance of ${formatYuan(available)} yuan does not cover this request, which may cost up to ${formatYuan(amount)} yuan.`,
    ...(plan.length > 0 ? plan : ['No plan covers this model.']),
    ...(contact === '' ? [] : [`Contact: ${contact}`]),
  ];
  return refuse('insufficient_quota', words.join(' '), {
    headers: { 'x-should-retry': 'false' },
    reason: 'quota_insufficient',
  });
}
