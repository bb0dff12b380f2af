import type { NanoYuan } from '../amount.ts';
import { costOf, type Price, type TokenCounts } from '../price.ts';

/** The facts about an answer that decide its charge. */
export interface AnswerOutcome {
  /** The upstream failed, refused, or was cut off before the answer was complete. */
  failed: boolean;
  /** Content was passed on: pieces of a stream, or the whole of a JSON answer. */
  anyContent: boolean;
  /** The client had left before the first content was passed on. Absent: it had not. */
  leftEarly?: boolean;
  /** The upstream's counts where they are plausible, else the relay's estimates. */
  usage: TokenCounts;
}

/**
 * The charge for a call. A call that failed without output is free, even if the upstream reported usage. Any
 * other call is charged for its usage, even above the reserved amount and if the client has left: the upstream
 * wrote on. A price per call is charged once, if the client received content.
 */
export function chargeOf(price: Price, outcome: AnswerOutcome): NanoYuan {
  if (costsNothing(outcome)) return 0n;
  if (price.type === 'times-billing' && (!outcome.anyContent || outcome.leftEarly)) return 0n;
  return costOf(price, outcome.usage);
}

/** Whether the call is treated as not made: nothing is charged, and its plan slot is released. */
export const costsNothing = ({ failed, anyContent }: Pick<AnswerOutcome, 'failed' | 'anyContent'>): boolean =>
  failed && !anyContent;
