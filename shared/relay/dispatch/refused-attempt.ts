/**
 * What an attempt throws when its upstream refuses or fails: the form in which the candidate is asked again, else the
 * refusal of the caller's request, else the failure. Loaded at the first refusal.
 */
import type { ChannelType } from '../../upstreams/channel-type.ts';
import type { Dialect } from '../../upstreams/dialect.ts';
import { defaultDialect, dialectPath } from '../../upstreams/dialects/dialects.ts';
import { withheldTexts } from '../../upstreams/errors/withheld-texts.ts';
import type { Withheld } from '../../upstreams/errors/error-text.ts';
import type { UpstreamReply } from '../../upstreams/exchange.ts';
import { failureInAnswer, readFailure, type FailureClock } from '../../upstreams/read-failure.ts';
import type { BuiltRequest } from '../../upstreams/types/channel-request.ts';
import { CallerFault, type UpstreamError, type UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { refusalOfCaller } from './failure-refusals.ts';
import { repeatFor, type OtherDialect } from './repeats.ts';
import { AskAgain, type Variant } from './variant.ts';

export interface RefusedAttempt {
  /** Undefined: nothing was sent. */
  built: BuiltRequest | undefined;
  type: Pick<ChannelType, 'alsoSpeaks' | 'ownFault'>;
  variant: Variant;
  /** The dialect that was spoken. */
  dialectName: string | undefined;
  /** Something of the answer was passed on, so the candidate is not asked again. */
  hadContent: boolean;
  hadTools: boolean;
  /** The limit that was sent is lower than the call's own, because the balance pays no more. */
  limitLowered: boolean;
}

/** The error of an answer with status 200. */
export function errorOfAnswer(error: UpstreamError, refused: RefusedAttempt): Error {
  const failure = failureInAnswer(error, withheldIn(refused), refused.type);
  const thrown = asThrown(failure);
  const status = failure.status ?? 0;
  return repeat(error, refused, { status, thrown, otherDialects: [] }) ?? thrown;
}

/** The error of a reply that is not a 2xx. Reads its body. */
export async function errorOfReply(
  reply: UpstreamReply,
  { dialect, clock, ...refused }: RefusedAttempt & { dialect: Dialect; clock: FailureClock },
): Promise<Error> {
  const withheld = withheldIn(refused);
  const failure = await readFailure(reply, { dialect, type: refused.type, withheld, clock });
  if (!(failure instanceof CallerFault)) return failure;
  const thrown = asThrown(failure);
  const otherDialects = failure.status === 400 ? nameableDialects(refused) : [];
  return repeat(failure.raw, refused, { status: failure.status, thrown, otherDialects }) ?? thrown;
}

const withheldIn = ({ built }: RefusedAttempt): Withheld[] => (built ? withheldTexts(built.known) : []);

const asThrown = (failure: CallerFault | UpstreamFailure): Error =>
  failure instanceof CallerFault ? refusalOfCaller(failure) : failure;

/**
 * Other dialects that a refusal may name by their path. None whose path the request holds: the refusal may quote the
 * caller's words.
 */
function nameableDialects({ built, type, dialectName }: RefusedAttempt): OtherDialect[] {
  if (dialectName !== defaultDialect || built === undefined) return [];
  const { body } = built.request;
  return (type.alsoSpeaks ?? []).flatMap((name) => {
    const path = name === dialectName ? undefined : dialectPath(name);
    return path === undefined || body.includes(path) ? [] : [{ name, path }];
  });
}

/** The repeat that a refusal calls for. Undefined: none, so the refusal, which is `thrown`, stands. */
function repeat(
  error: UpstreamError,
  refused: RefusedAttempt,
  {
    status,
    thrown,
    otherDialects,
  }: { status: number; thrown: Error; otherDialects: readonly OtherDialect[] },
): AskAgain | undefined {
  const { built, variant, hadContent, hadTools, limitLowered } = refused;
  if (hadContent) return undefined;
  const next = repeatFor({
    status,
    error,
    body: built?.request.body ?? '',
    sent: built?.sent ?? {},
    variant,
    otherDialects,
    hadTools,
    limitLowered,
  });
  return next && new AskAgain(next, thrown);
}
