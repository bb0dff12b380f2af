import { describe, expect, it } from 'vitest';
import { Refusal } from '../../shared/relay/http/refusal.ts';
import { ServingChannels } from '../../shared/relay/call/serving-channels.ts';
import { CandidateOrder, scoreOf } from '../../shared/relay/dispatch/candidate-order.ts';
import { keyRow } from '../support/core-rig.ts';
import { channelCount, longRequest, modelNames, snapshotOf } from './choosing.ts';

const request = longRequest(1);
const [first = '', second = ''] = modelNames;

/** The snapshot, and how often the models of its channels were read. */
function counted(): { snapshot: ReturnType<typeof snapshotOf>; reads: () => number } {
  let reads = 0;
  const snapshot = snapshotOf();
  for (const channel of snapshot.channels) {
    const { models } = channel;
    Object.defineProperty(channel, 'models', {
      get: () => {
        reads += 1;
        return models;
      },
    });
  }
  return { snapshot, reads: () => reads };
}

describe('choosing among 503 channels that each serve 300 models', () => {
  it('looks at the channels at the first call to a model of a snapshot, and never for names that nobody serves', () => {
    const { snapshot, reads } = counted();
    const serving = new ServingChannels();
    const { candidates } = serving.findOrRefuse({ snapshot, startedMs: 1 }, first);
    expect(candidates).toHaveLength(channelCount);
    expect(reads()).toBe(channelCount);
    expect(serving.findOrRefuse({ snapshot, startedMs: 2 }, first).candidates).toBe(candidates);
    expect(() => serving.findOrRefuse({ snapshot, startedMs: 1 }, 'nobody/serves-this')).toThrow(Refusal);
    expect(reads()).toBe(channelCount);
    serving.findOrRefuse({ snapshot, startedMs: 1 }, second);
    expect(reads()).toBe(2 * channelCount);
  });

  it('scores each once, and asks for the health of no other than is taken', () => {
    const { candidates } = new ServingChannels().findOrRefuse(
      { snapshot: snapshotOf(5), startedMs: 1 },
      first,
    );
    const score = scoreOf({ key: keyRow(), request });
    const scored: string[] = [];
    const looked: string[] = [];
    const order = new CandidateOrder(candidates, {
      score: (candidate) => {
        scored.push(candidate.id);
        return score(candidate);
      },
      standingOf: ({ id }) => {
        looked.push(id);
        return undefined;
      },
    });
    const taken = Array.from({ length: 3 }, () => order.take()?.candidate.id);
    expect(scored.toSorted()).toEqual(candidates.map(({ id }) => id).toSorted());
    expect(looked).toEqual(taken);
  });
});
