/**
 * Turns the refusal of an upstream into the form in which the candidate is asked again, else into the refusal of the caller's
 * request, else into the failure.
 */
import {
  CallerFault,
  type UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamReply,
  type UpstreamError,
} from '../../upstreams/exchange.ts';
import { loopHeader } from '../../wire/ids.ts';
import { refuse, Refusal } from '../http/refusal.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import { noCompaction, type CannotCarry, type Omission } from '../../upstreams/dialect.ts';
import { defaultDialect, dialectPathOf } from '../../upstreams/dialects/dialects.ts';
import { listWithheldTexts } from '../../upstreams/error-text.ts';
import {
  contextTooLong,
  customerRefused,
  readErrorInAnswer,
  readFailure,
  type FailureClock,
} from '../../upstreams/read-failure.ts';
import { findErrorMeaning, findUnknownWord } from '../../upstreams/vocabulary.ts';
import type { BuiltRequest } from '../../upstreams/called-channel.ts';
import type { Quirks } from '../../upstreams/quirks.ts';
import { findLesson, findRefusedFields, systemInMiddle } from './lessons.ts';
import { listIn, recordsIn } from '../../wire/json.ts';

const defaultRetrySeconds = 5;
const timeUps = new Set<UpstreamFailureKind>(['first_content_timeout', 'timeout', 'deadline']);

/** Kinds of failure for which the upstream cannot have charged: it was not reached, or refused the request. */
const chargedNothing = new Set<UpstreamFailureKind>(['connect', 'secret', 'secret_store', 'status', 'loop']);

const mayHaveCharged = (failures: readonly UpstreamFailure[]): boolean =>
  failures.some(({ kind }) => !chargedNothing.has(kind));

const isLimit = ({ kind, status }: UpstreamFailure): boolean => kind === 'status' && status === 429;

const isLoad = ({ kind, status }: UpstreamFailure): boolean =>
  kind === 'status' && (status === 429 || status === 529);

/** Our account at the upstream: a repeat within minutes cannot help. */
const isOfAccount = ({ kind, status }: UpstreamFailure): boolean =>
  kind === 'secret' || (kind === 'status' && (status === 401 || status === 402));

/**
 * Refuses a call that no candidate answered. The refusal names the true cause: a rate limit if one ends by itself and nothing
 * but our account at other upstreams failed beside it, our account if every failure was of it, otherwise the last other
 * failure. Sends `x-should-retry: false` when an upstream may have charged, because SDKs retry by default. Without failures
 * all candidates are blocked.
 * @param hadContent one of the failed answers had content, so its upstream has charged
 * @param blockedMs in what time a candidate that was not asked, because its upstream said so, may be asked again
 */
export function refuseAfterFailures(
  failures: readonly UpstreamFailure[],
  { hadContent, blockedMs = Infinity }: { hadContent: boolean; blockedMs?: number | undefined },
): Refusal {
  const causes = failures.map(({ reason }) => reason).join(' ') || 'all_channels_cooling';
  const headers: Record<string, string> =
    hadContent || mayHaveCharged(failures) ? { 'x-should-retry': 'false' } : {};
  const limits = failures.filter(isLimit);
  const isOverloaded = failures.every(isLoad);
  const others = failures.filter((failure) => !isLimit(failure) && failure.kind !== 'secret_store');
  // No upstream failed: the relay could not read what it needs to ask one.
  if (others.length === 0 && failures.some(({ kind }) => kind === 'secret_store')) {
    const words = 'The relay cannot read its secrets right now. Nothing was charged; try again.';
    return refuse('unavailable', words, { reason: causes, headers: { 'retry-after': '2', ...headers } });
  }
  if (others.every(isOfAccount) && (limits.length > 0 || blockedMs < Infinity)) {
    const stated = limits.map(({ statedRetrySeconds }) => statedRetrySeconds ?? defaultRetrySeconds);
    const seconds = Math.max(1, Math.ceil(Math.min(...stated, blockedMs / 1000)));
    // Coding agents parse the seconds from this message.
    const words = `The upstream of this model is rate-limited. Please try again in ${seconds}s.`;
    const more = { 'retry-after': String(seconds), ...headers };
    return refuse('rate_limit_exceeded', words, { reason: causes, headers: more, isOverloaded });
  }
  if (failures.every(isOfAccount)) {
    const words =
      "The relay's own account at the upstream of this model does not work at the moment; your key and your balance " +
      'are not the cause. Tell the operator, or use another model.';
    return refuse('upstream_unavailable', words, { reason: `upstream_account ${causes}`, headers });
  }
  const failure = others.findLast((one) => !isOfAccount(one));
  if (failure && timeUps.has(failure.kind)) {
    const words = 'The upstream of this model did not answer in time.';
    return refuse('upstream_timeout', words, { reason: causes, headers });
  }
  if (failure?.kind === 'loop') {
    const words =
      'A channel of this model leads back to the relay. Nothing was charged. Only the operator can correct it.';
    const looped = { ...headers, [loopHeader]: '1', 'x-should-retry': 'false' };
    return refuse('relay_loop', words, { reason: causes, headers: looped });
  }
  const words = 'The upstream of this model failed to answer. Try again, or use another model.';
  return refuse('upstream_unavailable', words, { reason: causes, headers, isOverloaded });
}

/**
 * Refuses a call whose thread is lost: its one candidate did not answer, or is gone. The client then sends the whole conversation
 * and another candidate may answer. Undefined if an upstream may have charged: then the failure is shown.
 */
export function refuseLostThread(
  failures: readonly UpstreamFailure[],
  { param, message }: CannotCarry,
): Refusal | undefined {
  const reason = failures.map((failure) => failure.reason).join(' ') || undefined;
  return mayHaveCharged(failures) ? undefined : refuse('thread_not_found', message, { param, reason });
}

interface LimitRefusal {
  /** The limit that was sent. */
  tokens: number;
  /** The prompt and the limit together are more than the model's context; a shorter prompt may have this limit. */
  overContext: boolean;
  /** Tokens of the context that the prompt leaves, if the relay itself added the limit. */
  room?: number | undefined;
}

/** How an attempt differs from the usual one. */
export interface Variant {
  /** Overrides the channel's dialect. */
  readonly dialect?: string | undefined;
  readonly without: ReadonlySet<Omission>;
  /** How the model differs from what its name and its row say, because its refusals said so. */
  readonly quirks: Partial<Quirks>;
  /** Limits from this one on are not sent, because the model refused it. */
  readonly refusedLimit?: number | undefined;
  readonly refusedFeatures?: readonly string[] | undefined;
  /** The model's maximum as its refusal named it. */
  readonly limitMost?: number | undefined;
  readonly limitRefusal?: LimitRefusal | undefined;
}

/** The form in which the candidate is to be asked again, and what the refusal comes to if that cannot be sent. */
export interface Repeated {
  variant: Variant;
  refusal: Error;
}

export interface RefusedAttempt {
  built: BuiltRequest;
  type: Pick<ChannelType, 'alsoSpeaks'>;
  variant: Variant;
  /** The dialect that was spoken. */
  dialectName: string;
  /** Something of the answer was passed on, so the candidate is not asked again. */
  hadContent: boolean;
  hadTools: boolean;
  /** The limit that was sent is lower than the call's own, because the balance pays no more. */
  limitLowered: boolean;
  /** The client sent no limit, or a higher one. */
  isLimitAdded?: boolean | undefined;
  /** Called with a word of the error that the vocabulary lacks. */
  noteUnknownWord?: ((word: string) => void) | undefined;
}

const readingOf = ({ built }: Pick<RefusedAttempt, 'built'>) => ({
  withheld: listWithheldTexts(built.known),
  words: built.quirks.words,
  sentBody: built.request.body,
});

export function readAnswerError(error: UpstreamError, refused: RefusedAttempt): Error | Repeated {
  const failure = readErrorInAnswer(error, readingOf(refused));
  return repeatOrRefuse(failure, { ...refused, error, status: failure.status ?? 0 });
}

/** The error of a reply that is not a 2xx. Reads its body. */
export async function readReplyError(
  reply: UpstreamReply,
  { clock, ...refused }: RefusedAttempt & { clock: FailureClock },
): Promise<Error | Repeated> {
  const { namesCustomer } = refused.built;
  const failure = await readFailure(reply, { ...readingOf(refused), namesCustomer, clock });
  if (failure instanceof CallerFault && failure.code === customerRefused)
    return omitDeniedFeatures(failure, refused) ?? refuseCaller(failure);
  if (!(failure instanceof CallerFault))
    return (
      omitDeniedFeatures(failure, refused) ??
      repeatWithoutPath(failure, refused) ??
      repeatWithSystemFirst(failure, refused) ??
      failure
    );
  return repeatOrRefuse(failure, { ...refused, error: failure.raw, status: failure.status });
}

/** The caller asked for features that our account may not use, so they cause no cooldown of the channel. */
function omitDeniedFeatures(
  failure: UpstreamFailure | CallerFault,
  { built, variant }: Pick<RefusedAttempt, 'built' | 'variant'>,
): Repeated | undefined {
  const { body, headers } = built.request;
  const wasSent = (name: string): boolean =>
    body.includes(`"${name}":`) || Object.values(headers).some((value) => value.includes(name));
  const features = (built.sent.features ?? []).filter(wasSent);
  const isDenied = failure.status === 403 && features.length > 0 && !variant.refusedFeatures;
  const refusal = failure instanceof CallerFault ? refuseCaller(failure) : failure;
  return isDenied ? { variant: { ...variant, refusedFeatures: features }, refusal } : undefined;
}

/** Statuses of upstreams that lack the path. */
const noPath = new Set([404, 405, 501]);

/** A server without compaction answers with any page. */
const repeatWithoutPath = (
  refusal: UpstreamFailure,
  { built, variant }: RefusedAttempt,
): Repeated | undefined =>
  built.sent.path !== undefined && noPath.has(refusal.status ?? 0)
    ? { variant: compactInWords(variant), refusal }
    : undefined;

/** True if a system message follows another message. Some models' templates reject that with a 500. */
function hasLateSystem({ built }: Pick<RefusedAttempt, 'built'>): boolean {
  const { isNative, body } = built.sent;
  const { messages = body['input'] } = body;
  if (isNative || built.quirks.systemPosition !== 'anywhere') return false;
  return recordsIn(messages).some(({ role }, i) => i > 0 && (role === 'system' || role === 'developer'));
}

function repeatWithSystemFirst(refusal: UpstreamFailure, refused: RefusedAttempt): Repeated | undefined {
  const { variant, built, hadContent } = refused;
  const [words = ''] = systemInMiddle.exec(textOf(refusal.raw?.message) ?? '') ?? [];
  const isOfTemplate = words !== '' && !built.request.body.includes(words) && hasLateSystem(refused);
  if (hadContent || !isOfTemplate) return undefined;
  return { variant: { ...variant, quirks: { ...variant.quirks, systemPosition: 'first' } }, refusal };
}

const compactInWords = (variant: Variant): Variant => ({
  ...variant,
  quirks: { ...variant.quirks, supportsCompaction: false },
});

function repeatOrRefuse(failure: CallerFault | UpstreamFailure, refused: RefusedForm): Error | Repeated {
  const variant = refused.hadContent ? undefined : findRepeat(refused);
  if (!variant) noteUnknown(failure, refused);
  const refusal = failure instanceof CallerFault ? refuseCaller(failure) : failure;
  return variant ? { variant, refusal } : refusal;
}

/** Counts an unknown word of an error, which the relay had to classify by its status. */
function noteUnknown(
  failure: CallerFault | UpstreamFailure,
  { error, built, noteUnknownWord }: RefusedForm,
): void {
  const isTaken =
    failure instanceof CallerFault ? failure.code !== contextTooLong : failure.kind === 'error_in_answer';
  const word = isTaken ? findUnknownWord(error, built.quirks.words) : undefined;
  if (word !== undefined) noteUnknownWord?.(word);
}

function refuseCaller({ status, message, param, code, details }: CallerFault): Refusal {
  if (code === customerRefused) {
    const words = `The provider of this model refuses your account: ${message}`;
    return refuse(customerRefused, words, { reason: 'upstream_refused_customer', details });
  }
  const error = { message, type: 'invalid_request_error', param, code } as const;
  return new Refusal(status, error, { reason: `upstream_refused_${status}`, details });
}

// Decides whether a refused request is sent once more to the same candidate in another form.
// Free text of an upstream decides some things, none of which cools, bills or changes the candidate: another dialect, no
// limit, and what replaces the state of earlier turns. It may quote what the caller wrote, so a sentence counts only where
// the request does not hold it.

export interface RefusedForm extends RefusedAttempt {
  /** The status of the reply, or the one that the error in an answer names. */
  status: number;
  error: UpstreamError;
}

/** Finds the next form to try. Each is tried once. */
export function findRepeat(refused: RefusedForm): Variant | undefined {
  const { variant } = refused;
  const limitRefusal = findRefusedLimit(refused);
  if (limitRefusal) return omitLimit(refused, limitRefusal);
  if (lacksCompaction(refused)) return compactInWords(variant);
  const quirks = findTaughtQuirks(refused);
  if (quirks) return { ...variant, quirks: { ...variant.quirks, ...quirks } };
  const repeat = findRefusedPart(refused);
  if (repeat !== undefined) return without(variant, repeat);
  const dialect = findWantedDialect(refused);
  if (dialect !== undefined) return { ...variant, dialect };
  const refusedFeatures = findUnknownFeatures(refused);
  return refusedFeatures && { ...variant, refusedFeatures };
}

/** How Anthropic and Bedrock refuse a feature of the API [anthropics/claude-code 13770]. Bedrock names none. */
const unknownBeta = /-beta\b.{0,8} header\b|\binvalid beta flag\b/i;

/** The features to leave out: those that the refusal names, or all, or the field that the upstream does not know. */
function findUnknownFeatures({ status, error, built, variant }: RefusedForm): string[] | undefined {
  const { features: sent = [] } = built.sent;
  const message = textOf(error.message) ?? '';
  if (status !== 400 || variant.refusedFeatures || sent.length === 0) return undefined;
  const field = sent.find((each) => message.includes(`${each}: Extra inputs are not permitted`));
  if (field !== undefined) return [field];
  if (!unknownBeta.test(message)) return undefined;
  const named = sent.filter((each) => message.includes(each));
  return named.length > 0 ? named : [...sent];
}

const without = (variant: Variant, repeat: Omission): Variant | undefined =>
  variant.without.has(repeat) ? undefined : { ...variant, without: new Set([...variant.without, repeat]) };

function findRefusedPart(refused: RefusedForm): Omission | undefined {
  const { code, param } = refused.error;
  const field = textOf(param) ?? '';
  if (refusedState.has(textOf(code) ?? '') || says(refused, foreignState)) return 'state';
  if (/^include(\[|$)/.test(field)) return 'include';
  const { isNative, body } = refused.built.sent;
  const hasStops = !isNative && ('stop' in body || 'stop_sequences' in body);
  if (hasStops && (stopField.test(field) || says(refused, refusedStops))) return 'stop';
  // Older models do not know the newest items, which come back with each turn of their client.
  if (refused.built.sent.carriesItems === true && field.startsWith('input[')) return 'items';
  return echoedField.test(field) ? 'echoes' : undefined;
}

const stopField = /^stop(?:_sequences)?(?:$|[.[])/;
/** How vendors refuse more stop sequences than they take, or longer ones [continuedev/continue 2461, BerriAI/litellm 18921]. */
const refusedStops = /'(?:\$\.)?stop'|\bstop_?sequences\b(?!")/i;

/**
 * True if the upstream can't compact: it lacks the path, does not know the item that asks for it (the last one where there is no
 * path), or answered with something else. No other item and no field of the caller's must teach that.
 */
function lacksCompaction({ status, error, built }: RefusedForm): boolean {
  if (!built.sent.compacts) return false;
  const field = textOf(error.param) ?? '';
  if (error.code === noCompaction) return true;
  if (built.sent.path !== undefined)
    return field === '' && error.code !== 'model_not_found' && noPath.has(status);
  const [, place] = /^input\[(\d+)\](?:\.type)?$/.exec(field) ?? [];
  return Number(place) === listIn(built.sent.body['input']).length - 1;
}

/**
 * How vendors say that a turn came back with state that is not theirs: Claude [anthropics/claude-code 63155, 2026-05-28;
 * pydantic/pydantic-ai 7989, 2026-09-02], Gemini [ai.google.dev, "Thought signatures"; RooCodeInc/Roo-Code 10554] and OpenAI
 * [openai/codex 8137].
 */
const foreignState =
  /Invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block|The block is bound to a different conversation|\bthinking\.signature: Field required|(?:Corrupted t|T)hought signature|Encrypted content could not be|'reasoning' was provided without its required/i;

function findTaughtQuirks(refused: RefusedForm): Partial<Quirks> | undefined {
  const { error, built } = refused;
  if (!isOfRequest(refused)) return undefined;
  const asked = {
    field: `${textOf(error.code)} ${textOf(error.param)}`,
    message: textOf(error.message) ?? '',
    says: (sentence: RegExp) => says(refused, sentence),
    sent: built.sent.body,
    inForce: built.quirks,
  };
  const taught = findLesson(asked);
  // A body in the client's own form goes up as it came, except for optional fields and the state of its turns.
  const isLearned = taught !== undefined && (!built.sent.isNative || taught.wantsBack !== undefined);
  return isLearned ? taught : findRefusedFields(asked, error.unknownFields ?? []);
}

/** True if the request is at fault: a 400 or 422 whose machine-readable fields name no other cause. */
const isOfRequest = ({ status, error: { message: _text, ...words } }: RefusedForm): boolean =>
  [status, findErrorMeaning(words) ?? 400].every((each) => each === 400 || each === 422);

const says = (refused: RefusedForm, sentence: RegExp): boolean =>
  isOfRequest(refused) &&
  sentence.test(textOf(refused.error.message) ?? '') &&
  !sentence.test(refused.built.request.body) &&
  // Quotation marks stand in the body behind backslashes. A pattern takes five times as long in 30 MB of them.
  !sentence.test(refused.built.request.body.split('\\').join(''));

/**
 * No model has a smaller maximum, so a smaller limit was refused for another reason: it may be below the model's least.
 * A caller must not teach, with a limit of 1, that all callers' limits are refused.
 */
const leastMaximum = 256;

/** The limit that was refused for being too large. */
function findRefusedLimit({ error, built, isLimitAdded }: RefusedForm): LimitRefusal | undefined {
  const message = textOf(error.message) ?? '';
  const { outputTokensMax: tokens, isLimitLowest = false } = built.sent;
  if (tokens === undefined || tokens < leastMaximum) return undefined;
  if (!limitName.test(message) || !tooLarge.test(message)) return undefined;
  const overContext = /\bcontext\b/i.test(message);
  const room = overContext ? readRoom(message, tokens) : undefined;
  // The prompt alone is too long, or leaves no room for an answer.
  if (room !== undefined && room < leastMaximum) return undefined;
  const canLower = room !== undefined && isLimitAdded === true;
  return isLimitLowest && !canLower ? undefined : { tokens, overContext, room: canLower ? room : undefined };
}

/**
 * The model's own maximum is below the limit, so an answer without one stays below what is reserved. A limit that was
 * lowered to the balance must hold, and some APIs need one: it is only lowered further, to the maximum that the refusal names
 * or to what the prompt leaves of the context.
 */
function omitLimit(
  { error, built, variant, limitLowered }: RefusedForm,
  { room, ...limitRefusal }: LimitRefusal,
): Variant | undefined {
  if (!limitLowered && !(room !== undefined && built.sent.isLimitLowest)) {
    const next = without(variant, 'limit');
    return next && { ...next, limitRefusal };
  }
  const limitMost = room ?? readNamedMaximum(textOf(error.message) ?? '', limitRefusal);
  if (limitMost === undefined || variant.limitMost !== undefined) return undefined;
  return { ...variant, limitMost };
}

/** Reads the model's maximum: the largest number in the sentence that is below the limit. */
function readNamedMaximum(message: string, { tokens, overContext }: LimitRefusal): number | undefined {
  if (overContext) return undefined;
  const below = readNumbers(message).filter((number) => number > 0 && number < tokens);
  return below.length > 0 ? Math.max(...below) : undefined;
}

/** Numbers inside names do not count. */
const readNumbers = (message: string): number[] =>
  [...message.matchAll(/(?<![\w.-])\d{1,9}(?![\w-]|\.\d)/g)].map(([number]) => Number(number));

/**
 * Computes the context minus the prompt if the sentence names both: "prompt + limit > context", or the context and then either the
 * prompt or the total of prompt and limit.
 */
function readRoom(message: string, limit: number): number | undefined {
  const [, sent, extra, most] = /(\d+) \+ (\d+) > (\d+)/.exec(message) ?? [];
  if (Number(extra) === limit) return Number(most) - Number(sent);
  const [, named] = /\bcontext (?:length|window|size|limit)\D{0,24}(\d+)/i.exec(message) ?? [];
  const context = Number(named);
  const others = readNumbers(message).filter((number) => number !== limit && number !== context);
  const total = Math.max(...others.filter((number) => number > context));
  const room = context - (total > 0 ? total - limit : Math.max(...others));
  return Number.isFinite(room) ? room : undefined;
}

/** A message's field that its client got from another upstream and that this one does not take. */
const echoedField = /\b(reasoning_content|reasoning_details|extra_content)\b/;

const refusedState = new Set([
  'invalid_encrypted_content',
  'encrypted_content_invalid',
  'thinking_signature_invalid',
  'invalid_thought_signature',
]);

const limitName =
  /\bmax_?(completion_|output_|new_)?tokens\b|\bmaxOutputTokens\b|\b(?:output|completion) tokens\b|\b(?:in|for) the completion\b/i;
/** The sentences of OpenAI, Anthropic, Google and DeepSeek about a limit above the model's maximum. */
const tooLarge = /too large|at most|maximum|exceed|supported range|valid range|less than|<=|> \d/i;

/**
 * The dialect whose path the refusal names. None whose path the request holds: the refusal may quote the caller's words.
 */
function findWantedDialect(refused: RefusedForm): string | undefined {
  const { status, error, built, type, variant, dialectName, hadTools } = refused;
  if (variant.dialect !== undefined || !hadTools || status !== 400 || dialectName !== defaultDialect)
    return undefined;
  return type.alsoSpeaks?.find((name) => {
    const path = dialectPathOf(name);
    if (name === dialectName || path === undefined || built.request.body.includes(path)) return false;
    return (textOf(error.message) ?? '').includes(`/v1${path}`);
  });
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
