import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import { candidatesOf } from '../../../../shared/relay/call/serving-channels.ts';
import {
  orderCandidates,
  type OrderPorts,
  type Rank,
} from '../../../../shared/relay/dispatch/candidate-order.ts';
import { shareOfDraw, type Score } from '../../../../shared/relay/dispatch/conversation-rank.ts';
import { MemoryHealth } from '../../../support/memory-health.ts';

const nowMs = 1_000_000;
const channel = (id: string, more: object = {}): ChannelRow =>
  ChannelRow.parse({ id, endpoint: 'https://up.test/v1', models: ['m'], state: true, ...more });

/** Numbers in [0, 1) from a seed. */
function seeded(seed: number): { next(): number } {
  let state = seed;
  return {
    next: () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    },
  };
}

/** A score that draws for each candidate. */
function drawn(seed: number): Score {
  const random = seeded(seed);
  return ({ share }) => shareOfDraw(share, random.next() || 0.5);
}

interface Order {
  candidates: (Rank['candidate'] & Pick<Rank, 'probe'>)[];
  soonestMs: number | undefined;
}

function order(channels: ChannelRow[], ports: OrderPorts): Order {
  const candidates = channels.flatMap((row) => candidatesOf(row, 'm'));
  const { ranks, soonestMs } = orderCandidates(candidates, ports);
  return { candidates: ranks.map(({ candidate, probe }) => Object.assign({ probe }, candidate)), soonestMs };
}

describe('the order in which channels are tried', () => {
  it('begins with the origin of state, whatever its priority and weight, unless it cools', async () => {
    const channels = [channel('a', { priority: 2 }), channel('b', { secret: ['x', 'y'], weight: 0 })];
    const health = new MemoryHealth();
    const isFirst = ({ id }: { id: string }) => id === 'b|y';
    const ids = () =>
      order(channels, { health, score: drawn(1), nowMs, isFirst }).candidates.map(({ id }) => id);
    expect(ids()).toEqual(['b|y', 'a']);
    await health.cool('b|y', nowMs + 1);
    expect(ids()).toEqual(['a', 'b|x']);
  });

  it('goes by priority and holds each channel at most once, whatever the rows', () => {
    const row = fc.record({ priority: fc.integer({ min: -3, max: 3 }), weight: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 12 }), fc.nat(), (rows, seed) => {
        const channels = rows
          .map((more, i) => channel(`c${i}`, more))
          .toSorted((a, b) => b.priority - a.priority);
        const { candidates } = order(channels, {
          health: new MemoryHealth(),
          score: drawn(seed),
          nowMs,
        });
        const priorities = candidates.map((candidate) => candidate.channel.priority);
        expect(priorities).toEqual(priorities.toSorted((a, b) => b - a));
        expect(new Set(candidates.map(({ id }) => id))).toEqual(new Set(channels.map(({ id }) => id)));
        expect(candidates).toHaveLength(channels.length);
      }),
    );
  });

  it('puts siblings first as often as their weights say, over many draws', () => {
    const channels = [
      channel('a', { weight: 1 }),
      channel('b', { weight: 3 }),
      channel('c', { weight: 6 }),
      channel('never', { weight: 0 }),
    ];
    const score = drawn(7);
    const first: Record<string, number> = {};
    const draws = 20_000;
    for (let i = 0; i < draws; i += 1) {
      const { candidates } = order(channels, { health: new MemoryHealth(), score, nowMs });
      expect(candidates.at(-1)?.id).toBe('never');
      const id = candidates[0]?.id ?? '';
      first[id] = (first[id] ?? 0) + 1;
    }
    expect((first['a'] ?? 0) / draws).toBeCloseTo(0.1, 1);
    expect((first['b'] ?? 0) / draws).toBeCloseTo(0.3, 1);
    expect((first['c'] ?? 0) / draws).toBeCloseTo(0.6, 1);
    expect(first['never']).toBeUndefined();
  });

  it('leaves out candidates in cooldown and returns when the first of them ends', () => {
    const health = new MemoryHealth();
    health.known.set('a', { coolUntilMs: nowMs + 9_000, failures: 0 });
    health.known.set('b', { coolUntilMs: nowMs + 4_000, failures: 0 });
    const { candidates, soonestMs } = order([channel('a'), channel('b')], {
      health,
      score: drawn(1),
      nowMs,
    });
    expect(candidates).toEqual([]);
    expect(soonestMs).toBe(nowMs + 4_000);
  });

  it('offers a candidate whose cooldown is over as a probe, and nobody else while the probe runs', () => {
    const health = new MemoryHealth();
    health.known.set('a', { coolUntilMs: nowMs - 1, failures: 0 });
    expect(order([channel('a')], { health, score: drawn(1), nowMs }).candidates).toMatchObject([
      { id: 'a', probe: true },
    ]);
    health.known.set('a', { coolUntilMs: nowMs - 1, probeUntilMs: nowMs + 5, failures: 0 });
    expect(order([channel('a')], { health, score: drawn(1), nowMs })).toEqual({
      candidates: [],
      soonestMs: nowMs + 5,
    });
  });

  it('uses the secrets of a channel that are not in cooldown, each in turn', () => {
    const health = new MemoryHealth();
    const three = channel('a', {
      secret: ['ssm:/relay/relay/1', 'ssm:/relay/relay/2', 'ssm:/relay/relay/3'],
    });
    health.known.set('a|ssm:/relay/relay/2', { coolUntilMs: nowMs + 1, failures: 0 });
    const used = new Set<string | undefined>();
    const score = drawn(3);
    for (let i = 0; i < 50; i += 1) used.add(order([three], { health, score, nowMs }).candidates[0]?.secret);
    expect(used).toEqual(new Set(['ssm:/relay/relay/1', 'ssm:/relay/relay/3']));
  });
});
