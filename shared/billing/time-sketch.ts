/**
 * A sketch of times with quantiles that are off by at most 5 %: counts in bins that grow by a constant factor. Sketches merge by adding
 * their counts, so a table can add to one without reading it. Source: Masson, Rim, Lee, "DDSketch", VLDB 2019.
 */

const relativeError = 0.05;
const factor = (1 + relativeError) / (1 - relativeError);
const lowestMs = 10;
/** Calls last 890 s at most. Longer times, of background runs, count in the last bin. */
const highestMs = 900_000;
const lastBin = Math.ceil(Math.log(highestMs / lowestMs) / Math.log(factor));

export type TimeBin = `fc_${number}`;

const buildName = (bin: number): TimeBin => `fc_${bin}`;

/** Names of attributes of `daily`: short, because an item has up to 116 of them. */
export const timeBins: readonly TimeBin[] = Array.from({ length: lastBin + 1 }, (_, bin) => buildName(bin));

/** Bin 0 counts all times up to 10 ms, bin n those up to 10 ms * factor ** n. */
export function findBin(milliseconds: number): TimeBin {
  const bin = Math.ceil(Math.log(Math.max(milliseconds, lowestMs) / lowestMs) / Math.log(factor));
  return buildName(Math.min(bin, lastBin));
}

/** For each bin the time that is within 5 % of every time in it. */
const binMiddles = timeBins.map((_, bin) => (2 * lowestMs * factor ** bin) / (factor + 1));

type Counts = Readonly<Partial<Record<string, number>>>;

/**
 * Returns the quantile: the time that is not exceeded by this share of all times, in whole milliseconds. Times below 10 ms count as 10 ms.
 * @param share such as 0.95
 */
export function findQuantile(counts: Counts, share: number): number | undefined {
  const all = timeBins.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
  if (all === 0) return undefined;
  const rank = Math.max(1, Math.ceil(share * all));
  let seen = 0;
  const bin = timeBins.findIndex((name) => (seen += counts[name] ?? 0) >= rank);
  return Math.round(binMiddles[bin] ?? highestMs);
}
