/** View: when channels were last called and last failed, by the sums of what was served. Nothing of it is on rows. */
import { rowsIn } from '../ledger/sum-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { DayRange, ServedDay } from '../sum-reader.ts';
import { utcDay } from '../../wire/iso-time.ts';

const daysBack = 14;
/** A channel that is on and was not called for so long is idle, or for longer. */
const idleDays = 10;
const dayMs = 24 * 60 * 60 * 1000;

/** Of the last days. A call counts for the channel that was tried last. */
export interface ChannelActivity {
  calls: number;
  failures: number;
  /** `2026-11-22`, in UTC. Undefined: none in these days. */
  lastCall: string | undefined;
  lastFailure: string | undefined;
  /** Calls of the last day that had some, if all of them failed; else 0. */
  failing: number;
}

export const noActivity: ChannelActivity = {
  calls: 0,
  failures: 0,
  lastCall: undefined,
  lastFailure: undefined,
  failing: 0,
};

/** By id of the channel, of an id beyond 200 characters these. Pure. */
export function activityOf(served: readonly ServedDay[]): Map<string, ChannelActivity> {
  const found = new Map<string, ChannelActivity>();
  for (const { day, channel, figures } of served) {
    const { calls = 0, failures = 0 } = figures.counts;
    if (channel === undefined || calls === 0) continue;
    const known = found.get(channel) ?? noActivity;
    // Rows are sorted by day, and a day has one for each model.
    const before = known.lastCall === day ? known.failing : 0;
    const allFailed = failures === calls && (known.lastCall !== day || known.failing > 0);
    found.set(channel, {
      failing: allFailed ? before + calls : 0,
      calls: known.calls + calls,
      failures: known.failures + failures,
      lastCall: later(known.lastCall, day),
      lastFailure: failures > 0 ? later(known.lastFailure, day) : known.lastFailure,
    });
  }
  return found;
}

const later = (a: string | undefined, b: string): string => (a === undefined || a < b ? b : a);

/** A channel that is on and whose last calls all failed. */
export const isFailing = ({ state }: { state: string }, { failing }: ChannelActivity): boolean =>
  state === 'on' && failing > 0;

/**
 * Undefined: nobody knows, because there are no sums of earlier days: the relay is young, was upgraded, or nobody called any
 * channel.
 */
export function isIdle(
  state: string,
  { calls }: ChannelActivity,
  { since, days }: Pick<ActivityView, 'since' | 'days'>,
): boolean | undefined {
  if (state !== 'on' || calls > 0) return false;
  const isKnown = since !== undefined && Date.parse(days.to) - Date.parse(since) >= idleDays * dayMs;
  return isKnown ? true : undefined;
}

export interface ActivityView {
  days: DayRange;
  /** The first day of these with a call of any channel. Undefined: there is none. */
  since: string | undefined;
  channels: Map<string, ChannelActivity>;
  /** Sums that cannot be read. */
  problems: string[];
}

/** Of 300 models on two channels, 14 days are some 3 MB. */
export async function channelActivity({
  clock,
  ledger,
}: Pick<OperatorPorts, 'clock' | 'ledger'>): Promise<ActivityView> {
  const days = { from: utcDay(clock.now() - daysBack * dayMs), to: utcDay(clock.now()) };
  const { rows, problems } = await rowsIn(ledger.served(days));
  // Sorted by day.
  return { days, since: rows[0]?.day, channels: activityOf(rows), problems };
}
