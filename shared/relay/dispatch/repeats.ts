/**
 * Decides whether a refused request is sent once more to the same candidate in another form.
 * Free text of an upstream decides two things, neither of which cools, bills or changes the candidate: another dialect,
 * and no limit.
 */
import type { Repeat, SentBody } from '../../upstreams/dialect.ts';
import type { UpstreamError } from '../../upstreams/upstream-failure.ts';
import type { Variant } from './variant.ts';

export interface OtherDialect {
  name: string;
  path: string;
}

export interface RefusedForm {
  error: UpstreamError;
  sent: Pick<SentBody, 'outputTokensMax' | 'limitIsLeast'>;
  variant: Variant;
  /** Other dialects that the channel's type may speak and that this refusal may ask for. */
  otherDialects: readonly OtherDialect[];
  hadTools: boolean;
  /** The limit that was sent is the balance's, which must hold. */
  limitIsBalance: boolean;
}

/** The next form; each is tried once. Undefined: the refusal stands. */
export function repeatFor(refused: RefusedForm): Variant | undefined {
  const { variant } = refused;
  const repeat = refusedPart(refused);
  if (repeat !== undefined)
    return variant.without.has(repeat)
      ? undefined
      : { ...variant, without: new Set([...variant.without, repeat]) };
  const dialect = wantedDialect(refused);
  return dialect === undefined ? undefined : { ...variant, dialect };
}

function refusedPart({ error, sent, limitIsBalance }: RefusedForm): Repeat | undefined {
  const { code, param } = error;
  if (refusedState.has(textOf(code) ?? '')) return 'state';
  if (/^include(\[|$)/.test(textOf(param) ?? '')) return 'include';
  if (echoedField.test(textOf(param) ?? '')) return 'state';
  const message = textOf(error.message) ?? '';
  const isLimit = limitName.test(message) && tooLarge.test(message);
  const isLowered = sent.outputTokensMax !== undefined && sent.limitIsLeast !== true;
  return isLowered && !limitIsBalance && isLimit ? 'limit' : undefined;
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
