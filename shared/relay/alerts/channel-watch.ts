/**
 * Looks every minute at the attempts of each channel that is on, keeps the marks for console and command line, and reports each mark
 * of a channel once a day.
 */
import { utcDay } from '../../wire/iso-time.ts';
import type { AlertStore, ChannelHours, ChannelMark } from '../ports/alerts.ts';
import type { Log } from '../ports/telemetry.ts';
import { splitIntoGroups } from './alert-pass.ts';
import { createNotice, type NoticeInput } from './balance-watch.ts';
import { buildBaseline, findMarks, formatHour, listUsualHours, type Baseline } from './channel-marks.ts';

interface ChannelWatchPorts extends NoticeInput {
  hours: ChannelHours;
  marks: Pick<AlertStore, 'marks' | 'raise'>;
  log: Log;
}

const hourMs = 3_600_000;
const keptDays = 8;

/** Goes on after a failure of one channel and finally rejects with the first one. */
export function createChannelWatch(ports: ChannelWatchPorts): () => Promise<void> {
  const { hours, clock } = ports;
  /** What is usual at an hour changes with the hour. */
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
    const hour = formatHour(nowMs);
    if (known.hour !== hour) known = { hour, baselines: new Map() };
    const found: ChannelMark[] = [];
    const look = async (channel: string): Promise<void> => {
      const recent = await hours.read(channel, formatHour(nowMs - hourMs), hour);
      if (recent.length === 0) return;
      found.push(...findMarks(channel, { recent, baseline: await findBaseline(channel, nowMs), nowMs }));
    };
    const failed = await splitIntoGroups(await hours.channels(), look).catch((error: unknown) => ({ error }));
    // An idle stack writes nothing.
    if (found.length > 0 || hadMarks) await hours.keep(found, nowMs);
    hadMarks = found.length > 0;
    await reportNew(ports, found, nowMs);
    if (failed) throw failed.error;
  };
}

async function reportNew(
  { marks, ...ports }: ChannelWatchPorts,
  found: readonly ChannelMark[],
  nowMs: number,
): Promise<void> {
  const causes = new Map(
    found.map((each) => [`channel.${each.mark}#${each.channel}#${utcDay(nowMs)}`, each] as const),
  );
  if (causes.size === 0) return;
  const reported = await marks.marks([...causes.keys()]);
  const fresh = [...causes].filter(([cause]) => !reported.has(cause));
  await splitIntoGroups(fresh, async ([cause, { mark, channel, model, now, usual }]) => {
    const facts = { channel, ...(model !== undefined && { model }), now: round(now), usual: round(usual) };
    const notice = createNotice(ports, { type: `channel.${mark}`, data: facts });
    const expires = Math.floor(nowMs / 1000) + keptDays * 24 * 3600;
    await marks.raise({ cause, seen: undefined, expires, notice });
  });
}

const round = (value: number): number => Number(value.toPrecision(3));
