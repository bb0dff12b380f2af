/**
 * The parts of a call's input that have prices of their own, as one table: the price in rows, the count in usage, ledger and
 * sums, and how people are told of it. Whatever names such a part goes through this table, so that a new one is a line here,
 * beside what reads it from upstreams. A part without a price costs what input costs. A line at the end changes no text and no
 * list that is stored; one before another would.
 */
export const inputParts = [
  {
    name: 'cachedInput',
    price: 'cached_input',
    count: 'cached_tokens',
    reported: 'cached',
    label: 'cached',
    words: 'cached',
  },
  {
    name: 'cacheWrite',
    price: 'cache_write',
    count: 'cache_write_tokens',
    reported: 'written',
    label: 'cache write',
    words: 'written to the cache',
  },
  {
    name: 'cacheWrite1h',
    price: 'cache_write_1h',
    count: 'cache_write_1h_tokens',
    reported: 'writtenForHour',
    label: 'write for 1 h',
    words: 'written to it for an hour',
  },
] as const;

type InputPart = (typeof inputParts)[number];
export type PartName = InputPart['name'];
export type PartPrice = InputPart['price'];
export type PartCount = InputPart['count'];
/** As upstreams report them, in one meaning for all. */
export type ReportedPart = InputPart['reported'];

/** A value for each part, under one of its names. */
export const eachPart = <Key extends 'name' | 'price' | 'count', Value>(
  key: Key,
  valueOf: (part: InputPart) => Value,
): Record<InputPart[Key], Value> =>
  Object.fromEntries(inputParts.map((part) => [part[key], valueOf(part)])) as Record<InputPart[Key], Value>;

export const partPrices = inputParts.map(({ price }) => price);
export const partCounts = inputParts.map(({ count }) => count);

/** The parts that lists of a fixed order have in their middle. Those that came later stand at the end of such lists. */
const firstParts = 3;
export const laterParts: readonly InputPart[] = inputParts.slice(firstParts);
export const firstCounts = partCounts.slice(0, firstParts);
export const laterCounts = partCounts.slice(firstParts);
export const firstPrices = partPrices.slice(0, firstParts);
export const laterPrices = partPrices.slice(firstParts);

/** Tokens of a prompt by their part, together never more than it. The rest is in none. */
export type PartCounts = Partial<Record<PartCount, number | undefined>>;

/** The counts above zero: most calls have none, and rows stay short. Undefined: there are none, or nobody knows. */
export function partCountsOf(counts: PartCounts = {}): PartCounts | undefined {
  const some = partCounts.filter((name) => (counts[name] ?? 0) > 0);
  return some.length > 0 ? Object.fromEntries(some.map((name) => [name, counts[name]])) : undefined;
}

/** What clients are shown: what was read and written always, of other parts what there is. */
export type ShownCounts = { cached_tokens: number; cache_write_tokens: number } & Partial<
  Record<PartCount, number>
>;

export const shownCounts = (counts: Partial<Record<PartCount, number>> = {}): ShownCounts => ({
  cached_tokens: 0,
  cache_write_tokens: 0,
  ...partCountsOf(counts),
});
