/** The forms in which one candidate is asked: the usual one, and repeats of a refused request. */
import type { Repeat } from '../../upstreams/dialect.ts';
import type { Quirks } from '../../upstreams/quirks.ts';

export interface LimitRefusal {
  /** The limit that was sent. */
  tokens: number;
  /** The prompt and the limit together are more than the model's context; a shorter prompt may have this limit. */
  overContext: boolean;
}

/** How an attempt differs from the usual one. */
export interface Variant {
  /** Overrides the channel's dialect. */
  readonly dialect?: string | undefined;
  readonly without: ReadonlySet<Repeat>;
  /** How the model differs from what its name and its row say, because its refusals said so. */
  readonly quirks: Partial<Quirks>;
  /** Limits from this one on are not sent, because the model refused it. Undefined: none is known. */
  readonly refusedLimit?: number | undefined;
  /** The model's maximum as its refusal named it. */
  readonly limitMost?: number | undefined;
  /** The refusal of a limit that led to this form. */
  readonly limitRefusal?: LimitRefusal | undefined;
}

export const usual: Variant = { without: new Set(), quirks: {} };

/** The same candidate is to be asked again. Nothing of the refused answer was passed on. */
export class AskAgain extends Error {
  override readonly name = 'AskAgain';
  readonly variant: Variant;
  /** What the refusal comes to if the other form cannot be sent. */
  readonly refusal: Error;

  constructor(variant: Variant, refusal: Error) {
    super('the same candidate is asked again');
    this.variant = variant;
    this.refusal = refusal;
  }
}
