/**
 * Requests in the log: the conditions of a search, the points from counts, and the looks of a watch on a growing and
 * late log.
 */
import { describe, expect, it } from 'vitest';
import type { LineCount, LogSearch, OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import {
  requestSearch,
  viewRequests,
  estimateWatchBytes,
  watchRequests,
} from '../../../shared/operate/requests/list-requests.ts';

const nowMs = Date.parse('2026-11-27T12:00:30Z');
const hourMs = 3_600_000;

interface Ended {
  id: string;
  atMs: number;
  outcome?: string;
  /** The time when the log finds it. */
  foundMs?: number;
}

/** A log that answers like CloudWatch and records its searches. */
function logged(local = true) {
  const clock = { ms: nowMs };
  const lines: Ended[] = [];
  const searches: LogSearch[] = [];
  const within = ({ fromMs, toMs }: LogSearch) =>
    lines.filter(({ atMs, foundMs = atMs }) => atMs >= fromMs && atMs <= toMs && foundMs <= clock.ms);
  const ports = {
    target: { stack: 'relay', local },
    clock: { now: () => clock.ms },
    log: {
      async search(search: LogSearch) {
        searches.push(search);
        const found = within(search)
          .toSorted((a, b) => a.atMs - b.atMs)
          .slice(-search.limit);
        return {
          lines: found.map(({ id, atMs, outcome = 'completed' }) => ({
            atMs,
            fields: { request_id: id, outcome },
          })),
          scannedBytes: 1000,
        };
      },
      async counts(search: LogSearch, { stepMs }: { stepMs: number }) {
        searches.push(search);
        const counts = within(search).map(({ atMs, outcome = 'completed' }): LineCount => ({
          startMs: Math.floor(atMs / stepMs) * stepMs,
          value: outcome,
          count: 1,
        }));
        return { counts, scannedBytes: 1000 };
      },
    },
  } as unknown as OperatorPorts;
  return { ports, clock, lines, searches };
}

const nothing = { account: undefined, model: undefined, channel: undefined, key_hint: undefined };
const lastHour = { ...nothing, status: undefined, fromMs: nowMs - hourMs, toMs: nowMs, limit: 100 };
const idsOf = (requests: readonly { line: { request_id?: string } }[]) =>
  requests.map(({ line }) => line.request_id);

describe('a search of requests', () => {
  it.each([
    [{ status: '429' as const }, { field: 'status', is: 429 }],
    [{ status: 'failed' as const }, { field: 'outcome', isOneOf: ['failed', 'limited'] }],
    [{ key_hint: 'sk-AbCd...wXyZ' }, { field: 'key_hint', isOneOf: ['sk-AbCd...wXyZ'] }],
    [{ tags: { team: 'search' } }, { field: 'tags.team', isOneOf: ['search'] }],
  ])('for %j filters by %j', (filter, condition) => {
    expect(requestSearch({ ...lastHour, ...filter }).conditions).toEqual([
      { field: 'message', isOneOf: ['request'] },
      condition,
    ]);
  });

  it('counts requests by outcome in each step of its time, and lists the newest first', async () => {
    const { ports, lines } = logged();
    lines.push(
      { id: 'a', atMs: nowMs - hourMs + 1, outcome: 'refused' },
      { id: 'b', atMs: nowMs - 70_000, outcome: 'limited' },
      { id: 'c', atMs: nowMs - 60_000, outcome: 'client_gone' },
    );
    const { requests, points } = await viewRequests(ports, requestSearch(lastHour));
    expect(idsOf(requests)).toEqual(['c', 'b', 'a']);
    expect(points).toHaveLength(61);
    expect(points[0]).toEqual({
      startMs: Date.parse('2026-11-27T11:00Z'),
      answered: 0,
      refused: 1,
      failed: 0,
    });
    expect(points.at(-2)).toMatchObject({ answered: 1, failed: 1 });
  });
});

describe('a watch', () => {
  it('lists each request once, also a late one, and keeps the counts of its hour', async () => {
    const { ports, clock, lines } = logged();
    const watch = watchRequests(ports, lastHour, nowMs);
    lines.push({ id: 'before', atMs: nowMs - 50 * 60_000 });
    expect((await watch.look()).requests).toEqual([]);
    lines.push({ id: 'a', atMs: nowMs + 500 }, { id: 'late', atMs: nowMs + 600, foundMs: nowMs + 4_000 });
    const seen: (string | undefined)[] = [];
    let last;
    for (let look = 0; look < 8; look += 1) {
      clock.ms += watch.everyMs;
      last = await watch.look();
      seen.push(...idsOf(last.requests));
    }
    expect(seen).toEqual(['a', 'late']);
    expect(last?.points.reduce((sum, { answered }) => sum + answered, 0)).toBe(3);
    // Requests older than an hour are no longer counted.
    clock.ms += 11 * 60_000;
    expect((await watch.look()).points.reduce((sum, { answered }) => sum + answered, 0)).toBe(2);
  });

  it('lists at most a hundred at once, counts all, and never reads back further than its first look', async () => {
    const { ports, clock, lines, searches } = logged(false);
    const watch = watchRequests(ports, lastHour, nowMs);
    await watch.look();
    for (let at = 0; at < 10_000; at += 1) lines.push({ id: `r${at}`, atMs: nowMs + at });
    searches.splice(0);
    clock.ms += watch.everyMs;
    const { requests, points } = await watch.look();
    expect(idsOf(requests)).toEqual(Array.from({ length: 100 }, (_, at) => `r${9_999 - at}`));
    expect(points.reduce((sum, { answered }) => sum + answered, 0)).toBe(10_000);
    for (const { fromMs, toMs } of searches) expect(toMs - fromMs).toBeLessThan(6 * 60_000);
    expect(searches).toHaveLength(2);
  });

  it('estimates on AWS in advance how much an hour of it reads', () => {
    const { ports } = logged(false);
    const kept = (bytes: number) => ({ groups: ['g'], kept: [{ bytes, sinceMs: nowMs - 10 * hourMs }] });
    // 1 MB in 4 minutes: 240 looks per hour read twice as much each, and four times the whole hour.
    expect(estimateWatchBytes(ports, kept(150e6), lastHour)).toBeCloseTo(240 * 2 * 1e6 + 4 * 15e6, -3);
    expect(estimateWatchBytes(ports, { groups: ['g'] }, lastHour)).toBeUndefined();
  });
});
