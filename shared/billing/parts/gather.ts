import { largestFirst, smaller, type NanoYuan } from '../amount.ts';
import { accountRate, type QuotaItem } from '../quota-item.ts';
import type { PartChange, PartsWrite } from './parts-write.ts';
import { evenly } from './shares.ts';
import { wholeOf, type AccountParts } from './whole.ts';

const giversMax = 20;
const noCalls: PartChange['plan'] = new Map();

/** Moves money from the richest parts to one, so that it has `amount`. Undefined: they do not have it. */
export function gatherWrite(
  images: readonly QuotaItem[],
  to: QuotaItem,
  amount: NanoYuan,
): PartsWrite | undefined {
  const changes: PartChange[] = [];
  let missing = amount - to.available;
  const richest = images
    .filter(({ part, available }) => part !== to.part && available > 0n)
    .toSorted((a, b) => largestFirst(a.available, b.available));
  for (const { part, parts, available } of richest.slice(0, giversMax)) {
    if (missing <= 0n) break;
    const given = smaller(missing, available);
    changes.push({ part, seenParts: parts, moved: -given, plan: noCalls });
    missing -= given;
  }
  if (missing > 0n || changes.length === 0) return undefined;
  const moved = changes.reduce((sum, change) => sum - change.moved, 0n);
  changes.push({ part: to.part, seenParts: to.parts, moved, plan: noCalls });
  return { account: to.account, changes };
}

/** Shares out what an overdrawn account has, so that no part is below zero. Undefined: the account is. */
export function settleWrite(images: AccountParts): PartsWrite | undefined {
  const sum = images.reduce((all, { available }) => all + available, 0n);
  if (sum < 0n) return undefined;
  const shares = evenly(sum, images.length);
  const changes = images.map(({ part, parts, available }, at): PartChange => {
    const moved = (shares[at] ?? 0n) - available;
    return { part, seenParts: parts, moved, plan: noCalls };
  });
  return { account: images[0].account, overdraft: 'ends', changes };
}

/**
 * Gives everything back to part 0, debts too, which calls use alone from then on. Undefined: other parts still have open
 * entries, or the account has one part.
 */
export function joinWrite(images: readonly QuotaItem[]): PartsWrite | undefined {
  const [first, ...others] = images;
  if (!first || first.part !== 0 || first.parts === 1 || others.some(({ open }) => open.size > 0))
    return undefined;
  const received = new Map<string, number>();
  const changes = others.map((item): PartChange => {
    for (const [key, count] of item.plan) received.set(key, (received.get(key) ?? 0) + count);
    return {
      part: item.part,
      seenParts: item.parts,
      moved: -item.available,
      plan: new Map([...item.plan].map(([key, count]) => [key, { calls: -count, countedMax: count }])),
      settledBefore: item.settled,
    };
  });
  const sum = others.reduce((all, { available }) => all + available, 0n);
  const plan = new Map([...received].map(([key, calls]) => [key, { calls, countedMax: Infinity }]));
  const seen = first.rate.get(accountRate);
  const counted = wholeOf([first, ...others]).rate.get(accountRate);
  const minute = counted && counted !== seen ? { seen, counted } : undefined;
  changes.unshift({ part: 0, seenParts: first.parts, moved: sum, plan, minute });
  return { account: first.account, parts: 1, made: first.made, changes };
}
