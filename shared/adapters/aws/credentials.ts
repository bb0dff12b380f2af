/**
 * Credentials of a process that outlives them: those that are valid are used while the next ones are asked for. Must
 * never fail a call that valid ones can sign, and never let one wait without end.
 */
import type { AwsCredentials, CredentialSource } from '../system/environment.ts';
import { within } from '../../relay/money/backoff.ts';
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

interface Kept {
  value: AwsCredentials;
  untilMs: number;
  renewsMs: number;
}

export class RenewedCredentials implements CredentialSource {
  readonly #provide: CredentialProvider;
  #kept: Kept | undefined;
  #renewal: Promise<AwsCredentials> | undefined;
  #wasGiven = false;
  #droppedMs = -Infinity;

  constructor(provide: CredentialProvider) {
    this.#provide = provide;
  }

  /** Throws NoReply. */
  current(waitMsMax: number): AwsCredentials | Promise<AwsCredentials> {
    const kept = this.#kept;
    const nowMs = Date.now();
    if (!kept || nowMs >= kept.untilMs) return inTime(waitMsMax, this.#renewed());
    if (nowMs >= kept.renewsMs) void this.#renewed().catch(() => undefined);
    return kept.value;
  }

  drop(refused: AwsCredentials): boolean {
    if (this.#kept?.value !== refused) return true;
    if (Date.now() - this.#droppedMs < dropPauseMs) return false;
    this.#droppedMs = Date.now();
    this.#kept = undefined;
    return true;
  }

  /** One renewal at a time. */
  #renewed(): Promise<AwsCredentials> {
    if (this.#renewal) return this.#renewal;
    // What the provider itself remembers may be what is to be replaced.
    const asked = this.#provide({ forceRefresh: this.#wasGiven });
    this.#renewal = asked;
    const over = (): void => {
      clearTimeout(timer);
      if (this.#renewal === asked) this.#renewal = undefined;
    };
    const timer = setTimeout(over, renewalMsMax);
    timer.unref();
    asked.then(
      (value) => {
        over();
        this.#keep(value);
      },
      () => {
        over();
        if (this.#kept) this.#kept.renewsMs = Date.now() + retryMs;
      },
    );
    return asked;
  }

  #keep(value: AwsCredentials): void {
    const nowMs = Date.now();
    const untilMs = value.expiration?.getTime() ?? Infinity;
    this.#wasGiven = true;
    const renewsMs = untilMs === Infinity ? nowMs + endlessMs : Math.max(untilMs - earlyMs, nowMs + retryMs);
    this.#kept = { value, untilMs, renewsMs };
  }
}

async function inTime(waitMsMax: number, asked: Promise<AwsCredentials>): Promise<AwsCredentials> {
  const work = asked.catch(() => undefined);
  const found = await within(systemClock, waitMsMax, { work, late: undefined });
  if (!found) throw new NoReply('ECREDENTIALS', { sent: false });
  return found;
}
