/**
 * Decides whether a refused request is sent once more to the same candidate in another form.
 * Free text of an upstream decides two things, neither of which cools, bills or changes the candidate: another dialect,
 * and no limit.
 */
import type { Repeat, SentBody } from '../../upstreams/dialect.ts';
import type { UpstreamError } from '../../upstreams/upstream-failure.ts';
import type { LimitRefusal, Variant } from './variant.ts';

export interface OtherDialect {
  name: string;
  path: string;
}

export interface RefusedForm {
  error: UpstreamError;
  sent: Pick<SentBody, 'outputTokensMax' | 'limitIsLeast' | 'carriesItems'>;
  variant: Variant;
  /** Other dialects that the channel's type may speak and that this refusal may ask for. */
  otherDialects: readonly OtherDialect[];
  hadTools: boolean;
  /** The limit that was sent is lower than the call's own, because the balance pays no more. */
  limitLowered: boolean;
}

/** The next form; each is tried once. Undefined: the refusal stands. */
export function repeatFor(refused: RefusedForm): Variant | undefined {
  const { variant } = refused;
  const limitRefusal = refusedLimit(refused);
  if (limitRefusal) return withoutLimit(refused, limitRefusal);
  const repeat = refusedPart(refused);
  if (repeat !== undefined) return without(variant, repeat);
  const dialect = wantedDialect(refused);
  return dialect === undefined ? undefined : { ...variant, dialect };
}

const without = (variant: Variant, repeat: Repeat): Variant | undefined =>
  variant.without.has(repeat) ? undefined : { ...variant, without: new Set([...variant.without, repeat]) };

function refusedPart({ error: { code, param }, sent }: RefusedForm): Repeat | undefined {
  if (refusedState.has(textOf(code) ?? '')) return 'state';
  if (/^include(\[|$)/.test(textOf(param) ?? '')) return 'include';
  // Older models do not know the newest items, which come back with each turn of their client.
  if (sent.carriesItems === true && textOf(param)?.startsWith('input[')) return 'items';
  return echoedField.test(textOf(param) ?? '') ? 'state' : undefined;
}

/**
 * No model has a smaller maximum, so a smaller limit was refused for another reason: it may be below the model's least.
 * A caller must not teach, with a limit of 1, that all callers' limits are refused.
 */
const leastMaximum = 256;

/** The limit that was refused for being too large. */
function refusedLimit({ error, sent }: RefusedForm): LimitRefusal | undefined {
  const message = textOf(error.message) ?? '';
  const { outputTokensMax: tokens, limitIsLeast = false } = sent;
  if (tokens === undefined || tokens < leastMaximum || limitIsLeast) return undefined;
  if (!limitName.test(message) || !tooLarge.test(message)) return undefined;
  return { tokens, overContext: /\bcontext\b/i.test(message) };
}

/**
 * The model's own maximum is below the limit, so an answer without one stays below what is reserved. A limit that was
 * lowered to the balance must hold: it is only lowered further, to the maximum that the refusal names.
 */
function withoutLimit(
  { error, variant, limitLowered }: RefusedForm,
  limitRefusal: LimitRefusal,
): Variant | undefined {
  if (!limitLowered) {
    const next = without(variant, 'limit');
    return next && { ...next, limitRefusal };
  }
  const limitMost = namedMaximum(textOf(error.message) ?? '', limitRefusal);
  if (limitMost === undefined || variant.limitMost !== undefined) return undefined;
  return { ...variant, limitMost };
}

/** The largest number of the sentence below the limit; numbers inside names do not count. */
function namedMaximum(message: string, { tokens, overContext }: LimitRefusal): number | undefined {
  if (overContext) return undefined;
  const numbers = [...message.matchAll(/(?<![\w.-])\d{1,9}(?![\w-]|\.\d)/g)].map(([number]) =>
    Number(number),
  );
  const below = numbers.filter((number) => number > 0 && number < tokens);
  return below.length > 0 ? Math.max(...below) : undefined;
}

/** A message's field that its client got from another upstream and that this one does not take. */
const echoedField = /\b(reasoning_content|reasoning_details|extra_content)\b/;

const refusedState = new Set([
  'invalid_encrypted_content',
  'encrypted_content_invalid',
  'thinking_signature_invalid',
  'invalid_thought_signature',
]);

const limitName = /\bmax_?(completion_|output_|new_)?tokens\b|\bmaxOutputTokens\b/i;
/** The sentences of OpenAI, Anthropic, Google and DeepSeek about a limit above the model's maximum. */
const tooLarge = /too large|at most|maximum|exceed|supported range|valid range|less than or equal|<=|> \d/i;

/** The dialect whose path the refusal names. */
function wantedDialect({ error, variant, otherDialects, hadTools }: RefusedForm): string | undefined {
  if (variant.dialect !== undefined || !hadTools) return undefined;
  const message = textOf(error.message) ?? '';
  return otherDialects.find(({ path }) => message.includes(`/v1${path}`))?.name;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
