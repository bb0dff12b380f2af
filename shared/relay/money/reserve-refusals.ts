/** The refusals of a reserve. Loaded by the first call that is refused. */
import { formatYuan, larger } from '../../billing/money.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import { shareNeed } from '../../billing/shares.ts';
import {
  endlessBalance,
  isForMoney,
  isRefusal,
  leasesMax,
  planReservation,
  type ReserveNeed,
  type ReserveRefusal,
} from '../../billing/reservation.ts';
import type { ChatCall } from '../call/call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { rateHeaders, secondsOfMinuteLeft } from '../http/http.ts';
import { toRefusal, refuse, type Refusal } from '../http/refusal.ts';
import type { Budget, ReserveFailure, ReserveStep, SpentBudget } from './open-reservation.ts';

export interface RefusedReserve {
  call: Pick<ChatCall, 'snapshot' | 'key'>;
  /** With the limits of the whole account. */
  need: ReserveNeed;
  reason: ReserveFailure;
  /** The account's item at the time of the refusal. */
  item: QuotaItem;
  nowMs: number;
  /** The path of content whose size nobody knows, so that no balance covers it. */
  unknownPart?: string | undefined;
  /** The call is not read: the need is that of any call that is not free. */
  isLeast?: true;
}

export function refuseReserve(refused: RefusedReserve): Refusal {
  const { call, need, reason, nowMs, unknownPart } = refused;
  if ('need' in reason && unknownPart !== undefined) return refuseUnknownContent(unknownPart);
  switch (reason.reason) {
    case 'quota':
      return refuseForQuota(refused, reason);
    case 'reserved':
      return refuseForReserved(refused, reason);
    case 'budget':
      return refuseForBudget(refused, reason);
    case 'contended':
      return refuse(
        'unavailable',
        'The account is very busy at the moment. Nothing was charged; try again.',
        {
          headers: soon,
          reason: 'reserve_contended',
        },
      );
    case 'out_of_time':
      return refuse('unavailable', 'The request ran out of time before it could start; try again.', {
        headers: soon,
        reason: 'reserve_out_of_time',
      });
    case 'rate':
    case 'search_rate':
    case 'concurrency':
    case 'account_rpm':
    case 'account_tpm':
    case 'account_waiting':
    case 'open_entries':
      return refuseForLimit(call.key, { need, reason: reason.reason, nowMs });
    default:
      return reason satisfies never;
  }
}

type Limit = Exclude<ReserveRefusal['reason'], 'quota' | 'reserved' | 'budget'>;

/** @param need absent: the limit is the key's own */
export function refuseForLimit(
  key: ChatCall['key'],
  { reason, nowMs, need }: { reason: Limit; nowMs: number; need?: ReserveNeed },
): Refusal {
  const isOfMinute = reason !== 'concurrency' && reason !== 'open_entries';
  const seconds = isOfMinute ? secondsOfMinuteLeft(nowMs) : 1;
  const ofRate = reason === 'rate' && key.rpm !== undefined ? rateHeaders(key.rpm, 0, nowMs) : {};
  const [most, who, what] = {
    rate: [key.rpm, 'API key', 'requests a minute'],
    search_rate: [need?.searchRpm, 'API key', 'web searches a minute'],
    concurrency: [key.max_concurrency, 'API key', 'requests at the same time'],
    account_rpm: [need?.accountRpm, 'account', 'requests a minute'],
    account_tpm: [need?.accountTpm, 'account', 'tokens a minute'],
    account_waiting: [leasesMax, 'account', 'waiting calls'],
    open_entries: [need?.accountConcurrency, 'account', 'requests at the same time'],
  }[reason];
  const message = `This ${who} is limited to ${most} ${what}. Please try again in ${seconds}s.`;
  return refuse('rate_limit_exceeded', message, {
    headers: { 'retry-after': String(seconds), ...ofRate },
    reason: `limit_${reason}`,
    facts: { limit: reason, most },
  });
}

type ShortOfMoney = Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }>;
const soon = { 'retry-after': '1' };
const never = { 'x-should-retry': 'false' };

/** The message contains the balance, the need, the state of the plan, and the contact. */
function refuseForQuota(
  { call, need, item, isLeast }: RefusedReserve,
  { available, need: amount }: ShortOfMoney,
): Refusal {
  const { contact } = call.snapshot.settings;
  const plan = need.slots.map(
    ({ name, key, limit, resetsAtMs }) =>
      `Plan entry "${name}": ${item.plan.get(key) ?? 0} of ${limit} calls are used; it resets on ${new Date(resetsAtMs).toISOString().slice(0, 10)}.`,
  );
  const words = [
    isLeast
      ? `The balance of ${formatYuan(available)} yuan is too low for requests that cost money.`
      : `The balance of ${formatYuan(available)} yuan does not cover this request, which needs at least ${formatYuan(amount)} yuan.`,
    ...(plan.length > 0 || isLeast ? plan : ['No plan covers this model.']),
    ...(contact === '' ? [] : [`Contact: ${contact}`]),
  ];
  return refuse('insufficient_quota', words.join(' '), {
    headers: never,
    reason: 'quota_insufficient',
    facts: { needed: formatYuan(amount), free: formatYuan(available) },
  });
}

/** Held amounts of running calls come back; what was spent does only with the next period. */
function refuseForBudget({ call }: RefusedReserve, { budget, left, need, isShared }: SpentBudget): Refusal {
  if (!budget) throw new Error('the refusal of a budget does not name the budget');
  const { period, most, resetsAtMs } = budget;
  const resets = isoTime(resetsAtMs);
  const words =
    `${describePayer(budget)} may spend ${formatYuan(most)} yuan a ${period}, and ${formatYuan(larger(left, 0n))} yuan are left; ` +
    `this request needs at least ${formatYuan(need)} yuan. The budget resets at ${resets} (midnight in ${call.snapshot.settings.timeZone}).`;
  const facts = {
    needed: formatYuan(need),
    free: formatYuan(larger(left, 0n)),
    budget: period,
    by: budget.of?.by,
  };
  if (!isShared || most < need)
    return refuse('insufficient_quota', words, { headers: never, reason: 'budget_spent', facts });
  const message = `${words} Requests in flight reserve part of it. Please try again in 1s.`;
  return refuse('balance_reserved', message, { headers: soon, reason: 'budget_reserved', facts });
}

function describePayer({ of }: Budget): string {
  if (!of) return 'This API key';
  const { by, name } = of;
  const [kind, tag] = by.split(':');
  if (tag === undefined) return name === '' ? 'Requests without an end user' : `The end user "${name}"`;
  return name === '' ? `Requests without the ${kind} ${tag}` : `Requests with the ${kind} ${tag}=${name}`;
}

const refuseUnknownContent = (path: string): Refusal =>
  toRefusal(
    new InvalidRequest(
      'unsupported_content',
      path,
      `The balance pays for this request, but ${path} has a type whose cost is not known in advance. ` +
        'Supported types: text, image_url, file, input_audio (wav, mp3).',
    ),
  );

/** Running calls settle within seconds, so the client's own retry is the right answer. */
function refuseForReserved({ isLeast }: RefusedReserve, { available, need }: ShortOfMoney): Refusal {
  const message =
    `This request needs ${isLeast ? 'some' : formatYuan(need)} yuan, but requests in flight reserve the balance: ${formatYuan(available)} yuan are available. ` +
    'What they do not use is released when they end. Please try again in 1s, or send fewer requests at the same time.';
  return refuse('balance_reserved', message, {
    headers: soon,
    reason: 'balance_reserved',
    facts: { needed: formatYuan(need), free: formatYuan(available) },
  });
}

/**
 * Others took each time what this call was to have. `item`: what the last try was made on. Money that they hold comes
 * back, so that is what the caller gets.
 */
export async function refuseContended(step: ReserveStep, item: QuotaItem): Promise<Refusal> {
  const { request, sums = item } = step;
  const short = planReservation(shareNeed(step.needWithRoom(item), item), { ...item, available: -1n });
  // An estimate says nothing about what others hold.
  const isShort = isRefusal(short) && isForMoney(short) && sums.available < endlessBalance;
  return request.createRefusal(
    isShort ? { reason: 'reserved', available: sums.available, need: short.need } : { reason: 'contended' },
    sums,
  );
}
