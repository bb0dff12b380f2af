/**
 * Decides whether a refused request is sent once more to the same candidate in another form.
 * Free text of an upstream decides some things, none of which cools, bills or changes the candidate: another dialect, no
 * limit, and what replaces the state of earlier turns. It may quote what the caller wrote, so a sentence counts only where
 * the request does not hold it.
 */
import type { Repeat, SentBody } from '../../upstreams/dialect.ts';
import { statusOfError } from '../../upstreams/errors/error-statuses.ts';
import { effortScale, type Quirks } from '../../upstreams/quirks.ts';
import type { UpstreamError } from '../../upstreams/upstream-failure.ts';
import type { LimitRefusal, Variant } from './variant.ts';

export interface OtherDialect {
  name: string;
  path: string;
}

export interface RefusedForm {
  /** Of the reply, or what the error in an answer says. */
  status: number;
  error: UpstreamError;
  /** The body that was sent. */
  body: string;
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
  const quirks = taughtQuirks(refused);
  if (quirks) return { ...variant, quirks: { ...variant.quirks, ...quirks } };
  const dialect = wantedDialect(refused);
  return dialect === undefined ? undefined : { ...variant, dialect };
}

const without = (variant: Variant, repeat: Repeat): Variant | undefined =>
  variant.without.has(repeat) ? undefined : { ...variant, without: new Set([...variant.without, repeat]) };

function refusedPart(refused: RefusedForm): Repeat | undefined {
  const { code, param } = refused.error;
  if (refusedState.has(textOf(code) ?? '') || says(refused, foreignState)) return 'state';
  if (/^include(\[|$)/.test(textOf(param) ?? '')) return 'include';
  // Older models do not know the newest items, which come back with each turn of their client.
  if (refused.sent.carriesItems === true && textOf(param)?.startsWith('input[')) return 'items';
  return echoedField.test(textOf(param) ?? '') ? 'echoes' : undefined;
}

/**
 * How vendors say that a turn came back with state that is not theirs: Claude [anthropics/claude-code 63155, 2026-05-28;
 * pydantic/pydantic-ai 7989, 2026-09-02] and Gemini [ai.google.dev, "Thought signatures"].
 */
const foreignState =
  /Invalid `?signature`? in `?thinking`? block|The block is bound to a different conversation|Thought signature is not valid/;

/** How they say that a turn came back without its state, and what they want then. */
const lostStates: readonly [RegExp, Quirks['wantsBack']][] = [
  // Gemini [ai.google.dev, "Thought signatures", 2026-06-22]
  [/\bmissing a thought_signature\b/, 'thought_signature'],
  // DeepSeek [api-docs.deepseek.com, "Thinking mode", 2026-05-25] and Kimi [MoonshotAI/kimi-cli 2141]
  [/`?reasoning_content`? in the thinking mode must be passed back/, 'reasoning_content'],
  [/\breasoning_content is missing in assistant tool call message\b/, 'reasoning_content'],
  // DeepSeek in Anthropic's form [decolua/9router 2397, 2026-07-05], Claude ["Extended thinking", November 2026]
  [/`?content\[\]\.thinking`? in the thinking mode must be passed back/, 'thinking'],
  [/\bmust start with a thinking block\b/, 'thinking'],
];

/** What a refusal says of how the model differs from what is known of it. Undefined: nothing, or what was sent is so. */
function taughtQuirks(refused: RefusedForm): Partial<Quirks> | undefined {
  const { error, variant } = refused;
  const [, wantsBack] = lostStates.find(([sentence]) => says(refused, sentence)) ?? [];
  if (wantsBack) return variant.quirks.wantsBack === wantsBack ? undefined : { wantsBack };
  const isOfEffort = error.code === 'unsupported_value' && effortFields.has(textOf(error.param) ?? '');
  if (!isOfEffort || variant.quirks.efforts || !says(refused, /Supported values are/)) return undefined;
  const efforts = namedEfforts(textOf(error.message) ?? '');
  return efforts.length === 0 ? undefined : { efforts };
}

/** OpenAI's form: the field and the code are machine-readable, the values are named after them. */
const effortFields = new Set(['reasoning_effort', 'reasoning.effort']);

function namedEfforts(message: string): string[] {
  const named = new Set(message.slice(message.indexOf('Supported values are')).match(/[a-z]+/g));
  return effortScale.filter((effort) => named.has(effort));
}

/** Only a 400 counts, whose machine-readable fields say nothing else. */
const says = ({ status, error, body }: RefusedForm, sentence: RegExp): boolean =>
  status === 400 &&
  (statusOfError(error) ?? 400) === 400 &&
  sentence.test(textOf(error.message) ?? '') &&
  !sentence.test(body);

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
