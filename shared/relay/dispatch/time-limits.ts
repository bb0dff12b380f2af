/** Decides how long an attempt may take. Source of the figures: gateways' measurements of thinking models. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { usualFirstContentSeconds } from '../../config/snapshot.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { WatchdogLimits } from './watchdog.ts';

/** Models that think answer 200 at once and write after 94 s in one of a hundred calls. */
const firstContentMs = 120_000;
/** Long prompts take time to read: 1 s for each 1,000 tokens of about 4 bytes, at most as long again. */
const perByteMs = 0.25;
const readingMaxMs = 120_000;
const longEfforts = new Set(['high', 'xhigh', 'max']);
/** How long a finished answer waits for the upstream to report its usage. */
const graceMs = 2_000;

/** `bodyLength`: of the request, in UTF-16 code units. A time-out that the row sets is taken as it is. */
export function timeLimits(channel: ChannelRow, call: ChatCall, bodyLength: number): WatchdogLimits {
  const { idle_seconds: idle } = channel;
  const totalMs = totalOf(channel, call);
  const ownSeconds = ownFirstContentSeconds(channel);
  return {
    firstContentMs: ownSeconds === undefined ? usualMs(channel, call, bodyLength) : ownSeconds * 1000,
    idleMs: idle * 1000,
    totalMs,
    graceMs,
  };
}

/** Longer than a host lets a run live: it ends by its own time, with what it has by then. */
const runMs = 20 * 60 * 1000;

const totalOf = ({ total_seconds: total }: ChannelRow, { isRun }: ChatCall): number =>
  isRun ? Math.max(runMs, total * 1000) : total * 1000;

/** An answer that is not streamed sends no byte until it is whole, so it has the time of the whole answer. */
function usualMs(channel: ChannelRow, call: ChatCall, bodyLength: number): number {
  if (!channel.params.stream) return totalOf(channel, call);
  const effort = call.request.reasoning_effort ?? '';
  const thinkingMs = firstContentMs * (longEfforts.has(effort) ? 2 : 1);
  return thinkingMs + Math.min(bodyLength * perByteMs, readingMaxMs);
}

/** Undefined: the row has none. A snapshot of the version before this one does not say whether a number is the row's. */
function ownFirstContentSeconds({
  first_content_seconds: seconds,
  own_first_content: own = false,
}: ChannelRow): number | undefined {
  return own || !usualFirstContentSeconds.includes(seconds ?? NaN) ? seconds : undefined;
}
