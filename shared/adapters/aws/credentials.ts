/**
 * Credentials of a process that outlives them: those that are valid are used while the next ones are asked for. Must
 * never fail a call that valid ones can sign, and never let one wait without end.
 */
import type { AwsCredentials, CredentialSource } from '../system/environment.ts';
import { within } from '../../relay/retry.ts';
import { systemClock } from '../system/node-ports.ts';
import { NoReply } from './aws-calls.ts';

/** The next ones are asked for so long before those in use expire. */
const earlyMs = 5 * 60_000;
/** Those without an end may have been replaced by now. */
const endlessMs = 15 * 60_000;
/** After a renewal that failed, while those in use are valid. */
const retryMs = 1_000;
/** A renewal that takes longer is given up: the next call begins another. */
const renewalMsMax = 10_000;
/** A service that refuses all credentials must not make each call ask for new ones. */
const dropPauseMs = 10_000;

/** `forceRefresh`: those that it gave before are to be replaced. */
type CredentialProvider = (options?: { forceRefresh?: boolean }) => Promise<AwsCredentials>;

interface CachedCredentials {
  value: AwsCredentials;
  untilMs: number;
  renewsMs: number;
}

export function createCredentialSource(provide: CredentialProvider): CredentialSource {
  let cached: CachedCredentials | undefined;
  let renewal: Promise<AwsCredentials> | undefined;
  let wasGiven = false;
  let droppedMs = -Infinity;

  const keep = (value: AwsCredentials): void => {
    const nowMs = Date.now();
    const untilMs = value.expiration?.getTime() ?? Infinity;
    wasGiven = true;
    const renewsMs = untilMs === Infinity ? nowMs + endlessMs : Math.max(untilMs - earlyMs, nowMs + retryMs);
    cached = { value, untilMs, renewsMs };
  };

  /** One renewal at a time. */
  const renew = (): Promise<AwsCredentials> => {
    if (renewal) return renewal;
    // What the provider itself remembers may be what is to be replaced.
    const asked = provide({ forceRefresh: wasGiven });
    renewal = asked;
    const endRenewal = (): void => {
      clearTimeout(timer);
      if (renewal === asked) renewal = undefined;
    };
    const timer = setTimeout(endRenewal, renewalMsMax);
    timer.unref();
    asked.then(
      (value) => {
        endRenewal();
        keep(value);
      },
      () => {
        endRenewal();
        if (cached) cached.renewsMs = Date.now() + retryMs;
      },
    );
    return asked;
  };

  return {
    current(waitMsMax) {
      const nowMs = Date.now();
      if (!cached || nowMs >= cached.untilMs) return inTime(waitMsMax, renew());
      if (nowMs >= cached.renewsMs) void renew().catch(() => undefined);
      return cached.value;
    },
    drop(refused) {
      if (cached?.value !== refused) return true;
      if (Date.now() - droppedMs < dropPauseMs) return false;
      droppedMs = Date.now();
      cached = undefined;
      return true;
    },
  };
}

/** Throws NoReply. */
async function inTime(waitMsMax: number, asked: Promise<AwsCredentials>): Promise<AwsCredentials> {
  const work = asked.catch(() => undefined);
  const found = await within(systemClock, waitMsMax, { work, late: undefined });
  if (!found) throw new NoReply('ECREDENTIALS', { sent: false });
  return found;
}
