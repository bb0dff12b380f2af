/**
 * Registers the items of `quotas` whose images have open reservations, so that the sweeper looks at them when these
 * should have ended. An item needs one registration at a time: whoever looks at it registers what is still open.
 */
import type { OpenEntry } from '../../billing/quota-item.ts';
import type { Clock } from '../ports/clock.ts';
import type { QuotaChange } from '../ports/stores/ledger-store.ts';
import type { Lookup, OpenRegistry } from '../ports/stores/quota-store.ts';

/** A registration is made at least so long before the sweep that reads it. */
const aheadSeconds = 5;
const rememberedMax = 20_000;

/**
 * The lookup of an item with these open entries, if there are any. `dueSeconds`: what is registered for then is
 * looked at now. Reservations that ended long ago are looked at soon, not in the past, where no sweep reads.
 */
export function lookupOf(item: string, entries: readonly OpenEntry[], dueSeconds: number): Lookup[] {
  if (entries.length === 0) return [];
  const first = entries.reduce((least, { until }) => Math.min(least, until), Infinity);
  return [{ item, atSeconds: Math.max(first, dueSeconds + aheadSeconds) }];
}

/**
 * Returns a function that takes changes in any order and repeatedly. Rejects with the store's error: the changes
 * then need a retry.
 * @param graceSeconds how long after a registered time the sweeper looks at the item
 */
export function openWatch(
  { clock, registry }: { clock: Clock; registry: Pick<OpenRegistry, 'register'> },
  graceSeconds: number,
): (changes: readonly QuotaChange[]) => Promise<void> {
  /** The registered lookups of this environment. Forgetting one costs one write. */
  const remembered = new Map<string, number>();

  return async (changes) => {
    const dueSeconds = Math.floor(clock.now() / 1000) - graceSeconds;
    const isRegistered = ({ item, atSeconds }: Lookup): boolean => {
      const known = remembered.get(item);
      return known !== undefined && known <= atSeconds && known > dueSeconds + aheadSeconds;
    };
    const latest = new Map(changes.map((change) => [change.item, change]));
    const lookups = [...latest].flatMap(([item, { after }]) =>
      lookupOf(item, [...(after?.open.values() ?? [])], dueSeconds).filter((lookup) => !isRegistered(lookup)),
    );
    if (lookups.length === 0) return;
    await registry.register(lookups);
    for (const { item, atSeconds } of lookups) {
      remembered.delete(item);
      remembered.set(item, atSeconds);
    }
    for (const item of remembered.keys()) {
      if (remembered.size <= rememberedMax) break;
      remembered.delete(item);
    }
  };
}
