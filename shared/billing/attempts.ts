/**
 * Encodes the attempts of a call for its close record and ledger row, and decides which of them count as failures of their channel. A call
 * has at most three attempts; the first adds about 40 bytes to a record, each other one 60.
 */
import { fingerprint } from '../wire/ids.ts';
import { listIn, parseJson, textIn } from '../wire/json.ts';
import type { CloseRow } from './ledger-row.ts';

/** Times are in milliseconds since the start of the attempt. */
export interface CallAttempt {
  channel: string;
  model: string;
  /** A hash of the secret's reference; empty if the channel has no secret. */
  secret: string;
  /** Empty if the channel answered, else `refused`, `under_way`, `internal`, or the reason of the failure. */
  outcome: string;
  contentMs: number | undefined;
  endMs: number | undefined;
}

/** Four characters are enough to distinguish the secrets of a channel. The reference itself stays out of the sums. */
export const hashSecret = (reference: string): string => fingerprint(reference).slice(-4);

const attemptsMax = 3;

/** @param served the channel and model of the record, which are not repeated */
export const formatAttempts = (
  attempts: readonly CallAttempt[],
  served: Pick<CallAttempt, 'channel' | 'model'>,
): string =>
  JSON.stringify(
    attempts.map(({ channel, model, secret, outcome, contentMs, endMs }) => [
      outcome.replace(/^answered$|^upstream_/, ''),
      contentMs ?? -1,
      endMs ?? -1,
      secret,
      channel === served.channel ? '' : channel,
      model === served.model ? '' : model,
    ]),
  );

type AttemptedRow = Pick<CloseRow, 'end' | 'model' | 'channel' | 'first_content_ms' | 'tried'>;

/** A row of a version that did not record attempts yields one attempt, at the row's channel. */
export function readAttempts(row: AttemptedRow): CallAttempt[] {
  const { channel, model, tried, end, first_content_ms: contentMs } = row;
  // A call that expired before its late charge has no channel.
  if (channel === undefined) return [];
  if (tried !== undefined) return parseAttempts(tried).map((one) => fillAttempt(one, { channel, model }));
  const outcome = end === 'failed' ? 'unknown' : '';
  return [{ channel, model, secret: '', outcome, contentMs, endMs: undefined }];
}

const fillAttempt = (
  [outcome, contentMs, endMs, secret, channel, model]: unknown[],
  served: { channel: string; model: string },
): CallAttempt => ({
  channel: textIn(channel) || served.channel,
  model: textIn(model) || served.model,
  secret: textIn(secret),
  outcome: textIn(outcome),
  contentMs: readTime(contentMs),
  endMs: readTime(endMs),
});

/** Somebody may have edited the row. An invalid text counts as no attempt, and must not block the call's row. */
const parseAttempts = (text: string): unknown[][] =>
  listIn(parseJson(text))
    .filter((one) => Array.isArray(one))
    .slice(0, attemptsMax);

const readTime = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;

export const failureCauses = [
  'timeout',
  'rate_limit',
  'credentials',
  'server',
  'connection',
  'answer',
  'rejected',
  'other',
] as const;
export type FailureCause = (typeof failureCauses)[number];

/** Outcomes that are not the channel's fault: a rejected request of the caller, a client that left, a fault of the relay. */
const harmlessOutcomes = new Set(['', 'refused', 'under_way', 'internal', 'secret_store']);

const causePatterns: readonly (readonly [FailureCause, RegExp])[] = [
  ['connection', /^connect|^reset/],
  ['timeout', /timeout$|^deadline/],
  ['rate_limit', /^status_429/],
  ['credentials', /^status_40[123]|^secret/],
  ['server', /^status_5/],
  ['rejected', /^status_4/],
  ['answer', /^(?:cut|empty|html|junk|encoding|error_in_answer|too_large)/],
];

/** @param all all attempts of the call: the last one is not blamed for the time that the others took */
export function findCause(attempt: CallAttempt, all: readonly CallAttempt[]): FailureCause | undefined {
  const { outcome, endMs = 0 } = attempt;
  if (harmlessOutcomes.has(outcome)) return undefined;
  const spentMs = all.reduce((sum, each) => sum + (each.endMs ?? 0), 0);
  if (outcome === 'deadline' && 2 * endMs < spentMs) return undefined;
  return causePatterns.find(([, pattern]) => pattern.test(outcome))?.[0] ?? 'other';
}
