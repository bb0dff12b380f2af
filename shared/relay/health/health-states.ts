/**
 * The state machine of one candidate's health, and what it means for a call. Pure.
 *
 *     healthy --3 failures in a row, of two accounts--> cooldown --its time is over--> one probe --> healthy, or cooldown again
 *             --429, refused or unpaid secret---------> cooldown
 *             --3 failures in a row, of one account---> last for the calls of that account
 */
import {
  expiryMsOf,
  probeMs,
  type FailureRun,
  type HealthEntry,
  type Cooldown,
  type CooldownKind,
} from '../ports/runtime-stores.ts';
import type { UpstreamFailure, UpstreamFailureKind } from '../../upstreams/exchange.ts';

/** The cooldown after a rate limit, unless the upstream's Retry-After is longer. */
const rateLimitMs = 15_000;
/** The cooldown of a refused or unpaid secret. Long, because an operator has to act. */
const credentialsMs = 5 * 60_000;
/** A cooldown is not written again unless it lasts longer by this part of its length. */
const extensionMin = 1 / 3;
const accountsMax = 2;

export type HealthEvent =
  /** `restSeconds`: the upstream's Retry-After, at most a day. `statedSeconds`: the same as it was said. */
  | { type: 'rate_limited'; cooldownSeconds?: number | undefined; statedSeconds?: number | undefined }
  | { type: 'credentials_refused' }
  /** `account`: a hash. `succeededMs`: when this environment last saw the candidate answer. */
  | { type: 'failed'; account: string; succeededMs?: number | undefined }
  | { type: 'succeeded' }
  /** The upstream refused the caller's request: it is reached, and may or may not be able to answer. */
  | { type: 'refused_caller' }
  | { type: 'probe_claimed' }
  /** The probe ended with something that says nothing about the candidate. */
  | { type: 'probe_released' };

/** Returns the same object when nothing changes, and nothing for a healthy candidate. */
export function nextHealth(
  entry: HealthEntry | undefined,
  event: HealthEvent,
  nowMs: number,
): HealthEntry | undefined {
  const known = entry && expiryMsOf(entry) > nowMs ? entry : undefined;
  const cooldown = known && known.kind !== 'failures' ? known : undefined;
  if (event.type === 'rate_limited') {
    const { cooldownSeconds = 0, statedSeconds } = event;
    const untilMs = nowMs + Math.max(cooldownSeconds * 1000, rateLimitMs);
    const stated = statedSeconds ? { statedUntilMs: nowMs + statedSeconds * 1000 } : {};
    return lengthenCooldown(known, { kind: 'rate_limit', untilMs, ...stated }, nowMs);
  }
  if (event.type === 'credentials_refused')
    return lengthenCooldown(known, { kind: 'credentials', untilMs: nowMs + credentialsMs }, nowMs);
  if (event.type === 'failed' && !cooldown)
    return countFailure(known?.kind === 'failures' ? known : undefined, event, nowMs);
  // A success may be older than a cooldown that still runs.
  if (!cooldown) return event.type === 'succeeded' && known ? undefined : entry;
  return cooldown.untilMs > nowMs ? entry : endCooldown(cooldown, event, nowMs);
}

/** The time of the cooldown is over, so the next outcome ends it or begins another one. */
function endCooldown(cooldown: Cooldown, event: HealthEvent, nowMs: number): Cooldown | undefined {
  const { probeUntilMs, statedUntilMs: _over, ...known } = cooldown;
  const { type } = event;
  // One account alone must not prolong a cooldown for others.
  if (type === 'failed')
    return event.account === cooldown.failedBy
      ? cooldown
      : { kind: 'failing', untilMs: nowMs + failingMs, failedBy: event.account };
  if (type === 'succeeded' || type === 'refused_caller') return undefined;
  if (type === 'probe_claimed')
    return (probeUntilMs ?? 0) > nowMs ? cooldown : { ...known, probeUntilMs: nowMs + probeMs };
  return probeUntilMs === undefined ? cooldown : { ...known, untilMs: nowMs };
}

const isLonger = (ms: number, knownMs: number, fromMs: number): boolean =>
  ms - knownMs > (ms - fromMs) * extensionMin;

/** The longer cooldown counts. A time that the upstream named is never lost to one that we chose. */
function lengthenCooldown(known: HealthEntry | undefined, wanted: Cooldown, nowMs: number): HealthEntry {
  const running = known && known.kind !== 'failures' && known.untilMs > nowMs ? known : undefined;
  if (!running) return wanted;
  const statedUntilMs = Math.max(wanted.statedUntilMs ?? 0, running.statedUntilMs ?? 0);
  const says = isLonger(statedUntilMs, Math.max(running.statedUntilMs ?? 0, nowMs), nowMs);
  const lasts = isLonger(wanted.untilMs, running.untilMs, nowMs);
  if (!says && !lasts) return running;
  return {
    kind: says || wanted.untilMs > running.untilMs ? wanted.kind : running.kind,
    untilMs: Math.max(wanted.untilMs, running.untilMs),
    ...(statedUntilMs > 0 && { statedUntilMs }),
  };
}

/** A run ends with a success; one that another environment saw counts if it is known here or was written. */
function countFailure(
  run: FailureRun | undefined,
  { account, succeededMs = 0 }: Extract<HealthEvent, { type: 'failed' }>,
  nowMs: number,
): HealthEntry {
  const goesOn = run && succeededMs <= run.lastMs ? run : undefined;
  if (!goesOn) return { kind: 'failures', count: 1, accounts: [account], lastMs: nowMs };
  const accounts = goesOn.accounts.includes(account) ? goesOn.accounts : [...goesOn.accounts, account];
  const count = Math.min(goesOn.count + 1, failuresInARow);
  if (count >= failuresInARow && accounts.length >= accountsMax)
    return { kind: 'failing', untilMs: nowMs + failingMs };
  // It is last for this account already.
  const isKnown = goesOn.count >= failuresInARow && nowMs - goesOn.lastMs < failingMs * extensionMin;
  return isKnown ? goesOn : { kind: 'failures', count, accounts, lastMs: nowMs };
}

// The health of a candidate as one call sees it.

const failuresInARow = 3;
/** How long a candidate that fails comes last. */
const failingMs = 30_000;

/**
 * The health of a candidate for a call. `probe`: its cooldown is over and nobody has tried it. `last`: it failed for this
 * account alone, or this account's probe failed. `blocked`: the upstream said when it may be asked again.
 */
export interface CandidateHealth {
  is: 'probe' | 'last' | 'resting' | 'blocked';
  /** When that ends. */
  untilMs: number;
  kind: CooldownKind;
}

/** `account` is a hash. */
export function findHealth(
  entry: HealthEntry | undefined,
  account: string,
  nowMs: number,
): CandidateHealth | undefined {
  if (!entry || expiryMsOf(entry) <= nowMs) return undefined;
  if (entry.kind === 'failures') {
    const untilMs = entry.lastMs + failingMs;
    const isLast =
      entry.count >= failuresInARow && entry.accounts.length === 1 && entry.accounts[0] === account;
    return isLast && untilMs > nowMs ? { is: 'last', untilMs, kind: 'failing' } : undefined;
  }
  const { kind, untilMs, statedUntilMs = 0, probeUntilMs = 0, failedBy } = entry;
  if (untilMs > nowMs)
    return statedUntilMs > nowMs
      ? { is: 'blocked', untilMs: statedUntilMs, kind }
      : { is: 'resting', untilMs, kind };
  if (probeUntilMs > nowMs) return { is: 'resting', untilMs, kind };
  return { is: failedBy === account ? 'last' : 'probe', untilMs, kind };
}

const worstFirst: readonly CandidateHealth['is'][] = ['blocked', 'resting', 'last', 'probe'];

/** Chooses the state that blocks the candidate for the longest time. */
export function chooseWorstHealth(
  states: readonly (CandidateHealth | undefined)[],
): CandidateHealth | undefined {
  const [first] = states
    .filter((one) => one !== undefined)
    .toSorted((a, b) => worstFirst.indexOf(a.is) - worstFirst.indexOf(b.is) || b.untilMs - a.untilMs);
  return first;
}

// Decides by the kind of failure alone what a failed attempt says about its candidate: nothing that one caller's call can
// bring about may cool a candidate for others.

/** Statuses and kinds of failure that say nothing about the channel: one caller's call can bring them about. */
const harmless = new Set([400, 403, 413, 422]);
const harmlessKinds = new Set<UpstreamFailureKind>([
  'deadline',
  'first_content_timeout',
  // A failure to reach the secret store is local to this environment.
  'secret_store',
]);

export interface FailedCall extends Omit<Extract<HealthEvent, { type: 'failed' }>, 'type'> {
  /** A second read of the refused secret returned a new value, so there is no reason for a cooldown. */
  secretChanged: boolean;
  /** The call came from another relay, or says so: a loop may then be of the caller's making. */
  hasPassedRelays: boolean;
  /** It asked for a service tier, whose limits vendors keep apart: they say nothing of calls without one. */
  isOfTier?: boolean;
}

export function eventOfFailure(
  { kind, status, retryAfterSeconds: cooldownSeconds, statedRetrySeconds: statedSeconds }: UpstreamFailure,
  { account, succeededMs, secretChanged, hasPassedRelays, isOfTier }: FailedCall,
): HealthEvent | undefined {
  if (kind === 'status' && harmless.has(status ?? 0)) return undefined;
  if (harmlessKinds.has(kind) || secretChanged) return undefined;
  if ((kind === 'loop' && hasPassedRelays) || (status === 429 && isOfTier)) return undefined;
  if (status === 429) return { type: 'rate_limited', cooldownSeconds, statedSeconds };
  if (status === 401 || status === 402 || kind === 'secret') return { type: 'credentials_refused' };
  return { type: 'failed', account, succeededMs };
}
