import type { NanoYuan } from './amount.ts';
import { costOf, type Price, type TokenCounts } from './price.ts';

/** The facts about an answer that decide its charge. */
export interface AnswerOutcome {
  /** The upstream failed, refused, or was cut off before the answer was complete. */
  failed: boolean;
  /** The client received some content. */
  anyContent: boolean;
  /** The upstream's token counts; if it reported none, the relay's estimate of input and streamed output. */
  usage: TokenCounts;
}

/**
 * The charge for a call. A call that failed without output is free, even if the upstream reported usage. Any
 * other call is charged for its usage, even above the reserved amount. A price per call is charged once, if
 * the client received content.
 */
export function chargeOf(price: Price, outcome: AnswerOutcome): NanoYuan {
  if (costsNothing(outcome)) return 0n;
  if (price.type === 'times-billing' && !outcome.anyContent) return 0n;
  return costOf(price, outcome.usage);
}

/** Whether the call is treated as not made: nothing is charged, and its plan slot is released. */
export const costsNothing = ({ failed, anyContent }: AnswerOutcome): boolean => failed && !anyContent;
