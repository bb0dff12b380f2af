/** Compares the options of a file with those of the deployed stack. */
import { isDeepStrictEqual } from 'node:util';
import type { PublishedOptions } from '../stack/options/published-options.ts';

export interface Comparison {
  /** One line an option that is not the same. */
  differences: readonly string[];
  /** Options that the stack has, the file has not, and nobody accepted to lose. */
  refused: readonly string[];
}

/** @param accepted names of options that may be dropped; of a map also the whole: `memory` for `memory.chat` */
export function compareOptions(
  deployed: PublishedOptions,
  wanted: PublishedOptions,
  accepted: readonly string[],
): Comparison {
  const isAccepted = (name: string): boolean =>
    accepted.some((each) => name === each || name.startsWith(`${each}.`));
  const dropped = Object.keys(deployed).filter((name) => !Object.hasOwn(wanted, name));
  const lines = Object.entries(wanted).flatMap(([name, value]) => {
    if (!Object.hasOwn(deployed, name)) return [`${name}: new, ${JSON.stringify(value)}`];
    const before = deployed[name];
    return isDeepStrictEqual(before, value)
      ? []
      : [`${name}: ${JSON.stringify(before)} becomes ${JSON.stringify(value)}`];
  });
  const lost = dropped.map((name) => {
    const how = isAccepted(name) ? 'dropped, as accepted' : 'would be dropped';
    return `${name}: ${how}, the stack has ${JSON.stringify(deployed[name])}`;
  });
  return { differences: [...lines, ...lost], refused: dropped.filter((name) => !isAccepted(name)) };
}
