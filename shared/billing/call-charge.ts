import type { NanoYuan } from './amount.ts';
import { costOf, type Price, type TokenCounts } from './price.ts';

/** How an answer ended, as far as money is concerned. */
export interface AnswerOutcome {
  /** The upstream failed, refused, or was cut off before the answer was whole. */
  failed: boolean;
  /** The client received some content. */
  anyContent: boolean;
  /** The upstream's counts, else the relay's estimate of input and streamed output. */
  usage: TokenCounts;
}

/**
 * What a call costs. An upstream that failed without output costs nothing, even if it reported usage; everything
 * else costs what was used, also above what was reserved. A price per call is due once, with the first content.
 */
export function chargeOf(price: Price, outcome: AnswerOutcome): NanoYuan {
  if (costsNothing(outcome)) return 0n;
  if (price.type === 'times-billing' && !outcome.anyContent) return 0n;
  return costOf(price, outcome.usage);
}

/** Whether the call counts as not made: nothing is charged, and its plan slot is released. */
export const costsNothing = ({ failed, anyContent }: AnswerOutcome): boolean => failed && !anyContent;
