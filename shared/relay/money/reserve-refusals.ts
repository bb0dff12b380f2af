/** The refusals of a reserve, and the headers of a key's rate limit. */
import { formatYuan } from '../../billing/amount.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveNeed, ReserveRefusal } from '../../billing/reservation.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

export interface RefusedReserve {
  call: Pick<ChatCall, 'snapshot'>;
  need: ReserveNeed;
  reason: ReserveRefusal;
  /** The account's item at the time of the refusal. */
  item: QuotaItem;
  nowMs: number;
}

export function reserveRefusal(refused: RefusedReserve): Refusal {
  const { need, reason, nowMs } = refused;
  if (reason.reason === 'quota') return quotaRefusal(refused, reason);
  if (reason.reason === 'reserved') return reservedRefusal(reason);
  const seconds = reason.reason === 'rate' ? secondsOfMinuteLeft(nowMs) : 1;
  const ofRate = reason.reason === 'rate' && need.rpm !== undefined ? rateHeaders(need.rpm, 0, nowMs) : {};
  const why = {
    rate: `This API key is limited to ${need.rpm} requests a minute.`,
    concurrency: `This API key is limited to ${need.maxConcurrency} requests at the same time.`,
    open_entries: 'This account has too many requests under way.',
  }[reason.reason];
  return refuse('rate_limit_exceeded', `${why} Please try again in ${seconds}s.`, {
    headers: { 'retry-after': String(seconds), ...ofRate },
    reason: `limit_${reason.reason}`,
  });
}

/** A key's limit and remaining requests per minute, under OpenAI's header names. */
export const rateHeaders = (rpm: number, remaining: number, nowMs: number): Record<string, string> => ({
  'x-ratelimit-limit-requests': String(rpm),
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${secondsOfMinuteLeft(nowMs)}s`,
});

const secondsOfMinuteLeft = (nowMs: number): number => Math.ceil((60_000 - (nowMs % 60_000)) / 1000);

/** The message contains the balance, the need, the state of the plan, and the contact. */
function quotaRefusal(
  { call, need, item }: RefusedReserve,
  { available, need: amount }: Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }>,
): Refusal {
  const { contact } = call.snapshot.settings;
  const plan = need.slots.map(
    ({ name, key, limit, resetsAtMs }) =>
      `Plan entry "${name}": ${item.plan.get(key) ?? 0} of ${limit} calls are used, it resets on ${new Date(resetsAtMs).toISOString().slice(0, 10)}.`,
  );
  const words = [
    `The balance of ${formatYuan(available)} yuan does not cover this request, which needs at least ${formatYuan(amount)} yuan.`,
    ...(plan.length > 0 ? plan : ['No plan covers this model.']),
    ...(contact === '' ? [] : [`Contact: ${contact}`]),
  ];
  return refuse('insufficient_quota', words.join(' '), {
    headers: { 'x-should-retry': 'false' },
    reason: 'quota_insufficient',
  });
}

/** Running calls settle within seconds, so the client's own retry is the right answer. */
function reservedRefusal({
  available,
  need,
}: Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }>): Refusal {
  const message =
    `This request needs ${formatYuan(need)} yuan, but running requests hold the balance: ${formatYuan(available)} yuan are free. ` +
    'What they do not use becomes free when they end. Please try again in 1s, or send fewer requests at the same time.';
  return refuse('balance_reserved', message, { headers: { 'retry-after': '1' }, reason: 'balance_reserved' });
}
