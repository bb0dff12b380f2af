import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import { candidatesOf } from '../../../../shared/relay/call/serving-channels.ts';
import {
  CandidateOrder,
  type Rank,
  scoreDraw,
  type Score,
} from '../../../../shared/relay/dispatch/candidate-order.ts';
import type { CandidateHealth } from '../../../../shared/relay/health/health-states.ts';
import { UpstreamFailure } from '../../../../shared/upstreams/exchange.ts';

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
  return ({ share }) => scoreDraw(share, random.next() || 0.5);
}

const resting = (untilMs: number): CandidateHealth => ({ is: 'resting', untilMs, kind: 'failing' });

type First = { isFirst?: (candidate: { id: string }) => boolean };

interface Taken {
  order: CandidateOrder;
  ranks: Rank[];
}

/** All candidates of the channels in the order in which a call takes them. */
function taken(
  channels: ChannelRow[],
  score: Score,
  { standings = {}, isFirst }: { standings?: Record<string, CandidateHealth> } & First = {},
): Taken {
  const order = orderOf(channels, score, { standings, isFirst });
  const ranks: Rank[] = [];
  for (let rank = order.take(); rank; rank = order.take()) ranks.push(rank);
  return { order, ranks };
}

function orderOf(
  channels: ChannelRow[],
  score: Score,
  { standings = {}, isFirst }: { standings?: Record<string, CandidateHealth> } & First = {},
): CandidateOrder {
  const candidates = channels.flatMap((row) => candidatesOf(row, 'm'));
  return new CandidateOrder(candidates, { findHealth: ({ id }) => standings[id], score, isFirst });
}

const idsOf = ({ ranks }: Taken): string[] => ranks.map(({ candidate }) => candidate.id);

describe('the order of channels', () => {
  it('starts with the origin of the state, whatever its priority and weight, unless it is in cooldown', () => {
    const channels = [channel('a', { priority: 2 }), channel('b', { secret: ['x', 'y'], weight: 0 })];
    const isFirst = ({ id }: { id: string }) => id === 'b|y';
    expect(idsOf(taken(channels, drawn(1), { isFirst }))).toEqual(['b|y', 'a', 'b|x']);
    const standings = { 'b|y': resting(nowMs + 1) };
    expect(idsOf(taken(channels, drawn(1), { isFirst, standings }))).toEqual(['a', 'b|x', 'b|y']);
  });

  it('follows priority and has each candidate once, for any rows and health', () => {
    const row = fc.record({
      priority: fc.integer({ min: -3, max: 3 }),
      weight: fc.nat(5),
      is: fc.constantFrom(undefined, 'probe', 'last', 'resting'),
    });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 12 }), fc.nat(), (rows, seed) => {
        const channels = rows
          .map(({ priority, weight }, i) => channel(`c${i}`, { priority, weight }))
          .toSorted((a, b) => b.priority - a.priority);
        const standings = Object.fromEntries(
          rows.flatMap(({ is }, i) => (is ? [[`c${i}`, { ...resting(nowMs + i), is }]] : [])),
        );
        const { ranks } = taken(channels, drawn(seed), { standings });
        const classes = ranks.map(({ candidate }) => (standings[candidate.id] ? 1 : 0));
        const healthy = ranks.filter(({ candidate }) => !standings[candidate.id]);
        const priorities = healthy.map(({ candidate }) => candidate.channel.priority);
        expect(priorities).toEqual(priorities.toSorted((a, b) => b - a));
        expect(ranks.map(({ candidate }) => candidate.id).toSorted()).toEqual(
          channels.map(({ id }) => id).toSorted(),
        );
        if (!Object.values(standings).some(({ is }) => is === 'probe'))
          expect(classes).toEqual(classes.toSorted((a, b) => a - b));
      }),
    );
  });

  it('offers a candidate after its cooldown as a probe only if another candidate can serve', () => {
    const probe: CandidateHealth = { is: 'probe', untilMs: nowMs - 1, kind: 'failing' };
    const standingsOf = (channels: ChannelRow[]) =>
      taken(channels, drawn(1), { standings: { a: probe } }).ranks.map(({ candidate, health }) => [
        candidate.id,
        health?.is,
      ]);
    expect(standingsOf([channel('a', { priority: 1 }), channel('b')])).toEqual([
      ['a', 'probe'],
      ['b', undefined],
    ]);
    expect(standingsOf([channel('a')])).toEqual([['a', 'resting']]);
  });

  it.each<[string, UpstreamFailure, string[]]>([
    ['another of its secrets after a rate limit', new UpstreamFailure('status', 429), ['a|x', 'a|y', 'b']],
    ['another of its secrets after a rejected one', new UpstreamFailure('secret'), ['a|x', 'a|y', 'b']],
    ['another channel after a failure of the channel', new UpstreamFailure('connect'), ['a|x', 'b', 'a|y']],
  ])('goes on from a channel to %s', (_case, failure, ids) => {
    const order = orderOf(
      [channel('a', { priority: 1, secret: ['x', 'y', 'z'] }), channel('b')],
      ({ id }) => -id.charCodeAt(2),
    );
    const tried: string[] = [];
    for (let rank = order.take(); rank && tried.length < 3; rank = order.take()) {
      tried.push(rank.candidate.id);
      order.noteFailure(rank.candidate, failure);
    }
    expect(tried).toEqual(ids);
  });

  it('uses every secret of a channel that is not in cooldown', () => {
    const three = channel('a', {
      secret: ['ssm:/relay/relay/1', 'ssm:/relay/relay/2', 'ssm:/relay/relay/3'],
    });
    const standings = { 'a|ssm:/relay/relay/2': resting(nowMs + 1) };
    const used = new Set<string | undefined>();
    const score = drawn(3);
    for (let i = 0; i < 50; i += 1) used.add(taken([three], score, { standings }).ranks[0]?.candidate.secret);
    expect(used).toEqual(new Set(['ssm:/relay/relay/1', 'ssm:/relay/relay/3']));
  });
});
