import { describe, expect, it } from 'vitest';
import { createChannelWatch } from '../../../../shared/relay/alerts/channel-watch.ts';
import type { ChannelMark, HourSum } from '../../../../shared/relay/ports/alerts.ts';
import type { Notice } from '../../../../shared/wire/public-api.ts';
import { beginMs, SimulatedChannels } from '../../../simulation/simulated-channels.ts';
import { buildBaseline, findMarks } from '../../../../shared/relay/alerts/channel-marks.ts';
import { utcHour } from '../../../../shared/wire/iso-time.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

describe('a simulated channel', () => {
  const at = beginMs + 7 * dayMs + 13 * 60 * minuteMs + 7 * minuteMs;
  const happen = (channel: string, incident: object) => ({ channel, fromMs: at, minutes: 50, ...incident });
  const found = new SimulatedChannels(7, [
    happen('main', { slowdown: 10 }),
    happen('fast', { failing: 0.6 }),
    happen('backup', { failing: 1 }),
    happen('cheap', { dearer: 2 }),
  ]).run(7.6);

  it.each([
    ['gets ten times slower', 'main', 'slower', 10],
    ['fails more than half of its calls', 'fast', 'failing', 10],
    ['stalls, so that every call fails', 'backup', 'failing', 10],
    ['costs twice as much', 'cheap', 'costlier', 60],
  ] as const)('that %s is marked once, for all its models', (_what, channel, mark, minutes) => {
    const [first, ...others] = found.filter((each) => each.channel === channel && each.mark === mark);
    expect(first?.model).toBeUndefined();
    expect(first?.atMs).toBeGreaterThan(at);
    expect(first?.atMs).toBeLessThanOrEqual(at + minutes * minuteMs);
    expect(others).toEqual([]);
  });

  it('with its usual figures gets no mark', () => {
    expect(found.filter(({ channel }) => channel === 'far' || channel === 'rare')).toEqual([]);
  });
});

// Sums written by hand.

const nowMs = Date.parse('2026-11-25T09:05:00Z');
const hour = (atMs: number, model: string, counts: Record<string, number>): HourSum => ({
  hour: utcHour(atMs),
  model,
  figures: { counts, amounts: {} },
});
const slotOf = (answered: number, ms: number, failed = 0) => ({
  s0_answered: answered,
  s0_failed: failed,
  s0_log: Math.round(100 * answered * Math.log(ms)),
});
const usualHours = (model: string): HourSum[] =>
  [1, 2, 3, 4, 5, 6, 7].map((days) => hour(nowMs - days * dayMs, model, slotOf(100, 500, 1)));
const marksOf = (recent: HourSum[], usual: HourSum[]): ChannelMark[] =>
  findMarks('main', { recent, baseline: buildBaseline(usual, nowMs), nowMs });

describe('a mark', () => {
  it('names the model when the other models behave as usual', () => {
    const recent = [hour(nowMs, 'a', slotOf(30, 5000)), hour(nowMs, 'b', slotOf(300, 500))];
    expect(marksOf(recent, [...usualHours('a'), ...usualHours('b')])).toMatchObject([
      {
        channel: 'main',
        model: 'a',
        mark: 'slower',
        now: expect.closeTo(5000, -1),
        usual: expect.closeTo(500, -1),
      },
    ]);
  });

  it('is not caused by more calls to a slow model', () => {
    const slow = [1, 2, 3].map((days) => hour(nowMs - days * dayMs, 'slow', slotOf(100, 9000)));
    const recent = [hour(nowMs, 'slow', slotOf(500, 9000)), hour(nowMs, 'a', slotOf(3, 500))];
    expect(marksOf(recent, [...slow, ...usualHours('a')])).toEqual([]);
  });

  it('is not caused by a few slow calls, nor by a new channel that answers', () => {
    expect(marksOf([hour(nowMs, 'a', slotOf(3, 60_000, 2))], usualHours('a'))).toEqual([]);
    expect(marksOf([hour(nowMs, 'a', slotOf(50, 60_000, 1))], [])).toEqual([]);
  });

  it('covers two hours of a channel with less than one call a minute, but spares a busy one that recovered', () => {
    const slowBefore = hour(nowMs - 60 * minuteMs, 'a', slotOf(6, 5000));
    expect(marksOf([slowBefore, hour(nowMs, 'a', slotOf(4, 5000))], usualHours('a'))).toMatchObject([
      { mark: 'slower', now: expect.closeTo(5000, -1) },
    ]);
    expect(
      marksOf(
        [
          { ...slowBefore, figures: hour(nowMs, 'a', slotOf(60, 5000)).figures },
          hour(nowMs, 'a', slotOf(9, 500)),
        ],
        usualHours('a'),
      ),
    ).toEqual([]);
  });

  it('is set for a new channel that fails', () => {
    expect(marksOf([hour(nowMs, 'a', slotOf(10, 500, 40))], [])).toMatchObject([
      { mark: 'failing', now: 0.8 },
    ]);
  });
});

describe('the channel watch', () => {
  const watch = (failsFor?: string) => {
    const raised = new Map<string, Notice>();
    const kept: (readonly ChannelMark[])[] = [];
    let clockMs = nowMs;
    const look = createChannelWatch({
      clock: { now: () => clockMs },
      ids: { next: () => `n${raised.size}` },
      log: undefined as never,
      marks: {
        marks: async (causes) =>
          new Map(
            causes.flatMap((cause) => (raised.has(cause) ? [[cause, { open: true, changes: 1 }]] : [])),
          ),
        raise: async ({ cause, notice }) => (raised.set(cause, notice), true),
      },
      hours: {
        channels: async () => ['away', 'main', 'idle'],
        read: async (channel, from, to) => {
          if (channel === failsFor) throw new Error('throttled');
          if (channel === 'idle') return [];
          const all = [hour(nowMs, 'a', slotOf(5, 500, 95)), hour(nowMs + dayMs, 'a', slotOf(5, 500, 95))];
          return [...all, ...usualHours('a')].filter((each) => each.hour >= from && each.hour <= to);
        },
        keep: async (marks) => void kept.push(marks),
      },
    });
    return { look, raised, kept, later: (ms: number) => (clockMs += ms) };
  };

  it('reports a mark once a day, and saves it for the operator', async () => {
    const { look, raised, kept, later } = watch();
    await look();
    await look();
    expect([...raised.keys()]).toEqual([
      'channel.failing#away#2026-11-25',
      'channel.failing#main#2026-11-25',
    ]);
    expect([...raised.values()].at(-1)).toMatchObject({
      type: 'channel.failing',
      data: { channel: 'main', now: 0.95, usual: 0.0099 },
    });
    expect(kept.at(-1)).toHaveLength(2);
    later(60 * minuteMs);
    await look();
    expect(kept.at(-1)).toEqual([]);
    later(23 * 60 * minuteMs);
    await look();
    expect(raised.size).toBe(4);
  });

  it('checks the other channels when one is unreadable, and then fails', async () => {
    const { look, raised } = watch('away');
    await expect(look()).rejects.toThrow('throttled');
    expect([...raised.keys()]).toEqual(['channel.failing#main#2026-11-25']);
  });
});
