import type { QuotaItem } from '../quota-item.ts';

/** A renewal may be this late, and clocks differ. */
const toleranceSeconds = 5;

/**
 * The calls that hold places of a key although they do not run: nothing is open under their id, or its lease
 * ended. With the end of the lease as read.
 */
export function lapsedPlaces(
  item: QuotaItem,
  key: string,
  nowSeconds: number,
): Map<string, number | undefined> {
  const lapsed = new Map<string, number | undefined>();
  for (const id of item.places.get(key) ?? []) {
    const until = item.open.get(id)?.until;
    if (until === undefined || until + toleranceSeconds < nowSeconds) lapsed.set(id, until);
  }
  return lapsed;
}

export function withoutPlaces(item: QuotaItem, key: string, ids: readonly string[]): QuotaItem {
  const left = [...(item.places.get(key) ?? [])].filter((id) => !ids.includes(id));
  return { ...item, places: new Map([...item.places, [key, new Set(left)]]) };
}
