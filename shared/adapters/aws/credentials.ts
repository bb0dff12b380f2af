/**
 * Renews the credentials of a process that outlives them, while valid ones stay in use. A renewal must never fail a call
 * that valid credentials can sign, nor make it wait forever.
 */
import type { AwsCredentials, CredentialSource } from '../system/environment.ts';
import { within } from '../../relay/retry.ts';
import { systemClock } from '../system/node-ports.ts';
import { NoReply } from './aws-calls.ts';

/** Renewal starts this long before credentials expire. */
const earlyMs = 5 * 60_000;
/** Credentials without an expiry may be replaced at any time. */
const endlessMs = 15 * 60_000;
/** Pause after a failed renewal, while the old credentials are valid. */
const retryMs = 1_000;
/** The next call abandons a slower renewal and starts another. */
const renewalMsMax = 10_000;
/** Keeps a service that refuses all credentials from causing a renewal for each call. */
const dropPauseMs = 10_000;

/** `forceRefresh`: do not return cached credentials. */
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

  const renew = (): Promise<AwsCredentials> => {
    if (renewal) return renewal;
    // The provider's cache may hold the credentials that must be replaced.
    const request = provide({ forceRefresh: wasGiven });
    renewal = request;
    const endRenewal = (): void => {
      clearTimeout(timer);
      if (renewal === request) renewal = undefined;
    };
    const timer = setTimeout(endRenewal, renewalMsMax);
    timer.unref();
    request.then(
      (value) => {
        endRenewal();
        keep(value);
      },
      () => {
        endRenewal();
        if (cached) cached.renewsMs = Date.now() + retryMs;
      },
    );
    return request;
  };

  return {
    current(waitMsMax) {
      const nowMs = Date.now();
      if (!cached || nowMs >= cached.untilMs) return waitForCredentials(waitMsMax, renew());
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

async function waitForCredentials(
  waitMsMax: number,
  asked: Promise<AwsCredentials>,
): Promise<AwsCredentials> {
  const work = asked.catch(() => undefined);
  const found = await within(systemClock, waitMsMax, { work, late: undefined });
  if (!found) throw new NoReply('ECREDENTIALS', { sent: false });
  return found;
}
