import { accountRate, type QuotaItem, type RateCount } from '../quota-item.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import type { MovedCalls, PartChange, PartsWrite } from './parts-write.ts';
import { evenly, shareOf } from './shares.ts';
import { wholeOf } from './whole.ts';

const partsMax = 64;
/** More entries than this in one part cost a second unit of every write. */
const openMax = 8;
/** A part holds at least so many typical reserves: money spread thinner refuses what the sum covers. */
const reservesMin = 8n;

/** The number of parts that the traffic needs which an image of one part shows; the present number: no more. */
export function wantedParts({ open, parts }: QuotaItem, nowMs: number): number {
  if (open.size <= openMax) return parts;
  const bySize = (open.size / openMax) * parts;
  const starts = [...open.keys()].flatMap((id) => requestTimeMs(id) ?? []);
  const spanSeconds = Math.max(nowMs - Math.min(...starts, nowMs), 20) / 1000;
  // Many calls within a second are the start of more. A call of some seconds keeps that many entries open.
  const byRate = starts.length > openMax && spanSeconds < 1 ? (starts.length / spanSeconds) * 0.5 : 0;
  const wanted = 2 ** Math.ceil(Math.log2(Math.max(parts, bySize, byRate)));
  return Math.min(partsMax, wanted);
}

/** At most so many parts that each holds some reserves of the usual size; at least the present number. */
export function affordableParts(images: readonly QuotaItem[], wanted: number): number {
  const amounts = images.flatMap(({ open }) =>
    [...open.values()].map(({ amount }) => amount).filter((amount) => amount > 0n),
  );
  const present = images[0]?.parts ?? 1;
  if (amounts.length === 0) return wanted;
  const typical = amounts.reduce((sum, amount) => sum + amount, 0n) / BigInt(amounts.length);
  const available = images.reduce((sum, item) => sum + item.available, 0n);
  let count = wanted;
  while (count > present && available < BigInt(count) * reservesMin * typical) count /= 2;
  return Math.max(count, present);
}

/**
 * Shares out money and counted plan calls evenly over `to` parts. Undefined: there is nothing to share out.
 * @param images the parts that exist, of those below `to`
 * @param limits limits of plan slots, as far as known. A slot of unknown limit must not be counted up meanwhile.
 */
export function splitWrite(
  images: readonly QuotaItem[],
  to: number,
  limits: ReadonlyMap<string, number | null>,
): PartsWrite | undefined {
  const [first] = images;
  if (!first || first.part !== 0 || to <= first.parts) return undefined;
  const byPart = new Map(images.map((item) => [item.part, item]));
  const available = images.reduce((sum, item) => sum + item.available, 0n);
  const shares = evenly(available, to);
  const plans = sharedPlans(images, to, limits);
  const minutes = sharedMinute(images, to);
  const changes = Array.from({ length: to }, (_, part): PartChange => {
    const item = byPart.get(part);
    // An account in debt has nothing to share out.
    const moved = available > 0n ? (shares[part] ?? 0n) - (item?.available ?? 0n) : 0n;
    const counted = part < first.parts ? undefined : minutes(part);
    const minute = counted && { seen: item?.rate.get(accountRate), counted };
    return { part, seenParts: item?.parts, moved, plan: plans(part), minute };
  });
  // A debt stays where it is, so every part is to say that there is one.
  const isOverdrawn = available < 0n || images.some((item) => item.overdraft);
  const overdraft = isOverdrawn ? 'begins' : 'none';
  return { account: first.account, parts: to, made: Math.max(first.made, to), overdraft, changes };
}

/**
 * Parts that calls did not use start with their share of what the others counted in this minute, which keep their
 * counts: so a split admits no more than the account's limits, and may admit less until the minute ends.
 */
function sharedMinute(images: readonly QuotaItem[], to: number): (part: number) => RateCount | undefined {
  const [first, ...others] = images.filter(({ part, parts }) => part < parts);
  const sum = first && wholeOf([first, ...others]).rate.get(accountRate);
  if (!sum) return () => undefined;
  const { minute, count, tokens = 0 } = sum;
  const share = (whole: number, part: number): number => shareOf(whole, to, part - first.parts);
  return (part) => ({ minute, count: share(count, part), tokens: share(tokens, part) });
}

/** Counts are moved relatively, so calls that are counted meanwhile stay counted. */
function sharedPlans(
  images: readonly QuotaItem[],
  to: number,
  limits: ReadonlyMap<string, number | null>,
): (part: number) => ReadonlyMap<string, MovedCalls> {
  const sums = new Map([...limits.keys()].map((key) => [key, 0]));
  const counts = new Map(images.map(({ part, plan }) => [part, plan]));
  for (const { plan } of images) for (const [key, count] of plan) sums.set(key, (sums.get(key) ?? 0) + count);
  return (part) => {
    const moves = new Map<string, MovedCalls>();
    for (const [key, sum] of sums) {
      const counted = counts.get(part)?.get(key) ?? 0;
      const calls = shareOf(sum, to, part) - counted;
      const limit = limits.get(key);
      const room =
        limit === null ? Infinity : limit === undefined ? counted : shareOf(limit, to, part) - calls;
      if (calls !== 0 || counted > 0 || limit !== undefined)
        moves.set(key, { calls, countedMax: Math.max(counted, room) });
    }
    return moves;
  };
}
