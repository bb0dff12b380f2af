/**
 * Checks the attempts of each enabled channel every minute, stores the marks for the console and the command line, and reports each mark of
 * a channel once a day.
 */
import { dayMs, hourMs, utcDay, utcHour } from '../../wire/iso-time.ts';
import type { AlertStore, ChannelHours, ChannelMark } from '../ports/alerts.ts';
import type { Log } from '../ports/telemetry.ts';
import { workOnEach } from '../retry.ts';
import { tellNew } from './alert-pass.ts';
import type { NoticeInput } from './balance-watch.ts';
import { buildBaseline, findMarks, listUsualHours, type Baseline } from './channel-marks.ts';

interface ChannelWatchPorts extends NoticeInput {
  hours: ChannelHours;
  marks: Pick<AlertStore, 'marks' | 'raise'>;
  log: Log;
}

const keptDays = 8;

/** Continues after a failure of one channel, and finally rejects with the first one. */
export function createChannelWatch(ports: ChannelWatchPorts): () => Promise<void> {
  const { hours, clock } = ports;
  /** Each hour has a baseline of its own. */
  let known = { hour: '', baselines: new Map<string, Baseline>() };
  const findBaseline = async (channel: string, nowMs: number): Promise<Baseline> => {
    const found = known.baselines.get(channel);
    if (found) return found;
    const ranges = listUsualHours(nowMs).map(([from, to]) => hours.read(channel, from, to));
    const baseline = buildBaseline((await Promise.all(ranges)).flat(), nowMs);
    known.baselines.set(channel, baseline);
    return baseline;
  };
  let hadMarks = false;
  return async () => {
    const nowMs = clock.now();
    const hour = utcHour(nowMs);
    if (known.hour !== hour) known = { hour, baselines: new Map() };
    const found: ChannelMark[] = [];
    const look = async (channel: string): Promise<void> => {
      const recent = await hours.read(channel, utcHour(nowMs - hourMs), hour);
      if (recent.length === 0) return;
      found.push(...findMarks(channel, { recent, baseline: await findBaseline(channel, nowMs), nowMs }));
    };
    const failed = await workOnEach(await hours.channels(), look).catch((error: unknown) => ({ error }));
    // Write only if there are marks, or were: an idle stack must write nothing.
    if (found.length > 0 || hadMarks) await hours.keep(found, nowMs);
    hadMarks = found.length > 0;
    await reportNew(ports, found, nowMs);
    if (failed) throw failed.error;
  };
}

/** Reports one mark of each kind for a channel, however many of its models have it. */
function reportNew(ports: ChannelWatchPorts, found: readonly ChannelMark[], nowMs: number): Promise<void> {
  const expires = Math.floor((nowMs + keptDays * dayMs) / 1000);
  const causes = found.map(({ mark, channel, model, now, usual }) => {
    const cause = `channel.${mark}#${channel}#${utcDay(nowMs)}`;
    const data = {
      channel,
      ...(model !== undefined && { model }),
      now: roundFigure(now),
      usual: roundFigure(usual),
    };
    return [cause, { type: `channel.${mark}` as const, data, cause, expires }] as const;
  });
  return tellNew(ports, [...new Map(causes).values()]);
}

const roundFigure = (value: number): number => Number(value.toPrecision(3));
