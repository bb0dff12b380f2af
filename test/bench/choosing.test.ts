import { describe, expect, it } from 'vitest';
import { ServingChannels } from '../../shared/relay/call/serving-channels.ts';
import { CandidateOrder, scoreOf } from '../../shared/relay/dispatch/candidate-order.ts';
import { keyRow } from '../support/core-rig.ts';
import { channelCount, longRequest, modelNames, snapshotOf } from './choosing.ts';

const request = longRequest(1);
const [first = '', second = ''] = modelNames;

/** The snapshot, and the number of reads of its channels' models. */
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
  it('reads the channels only at the first call to a model of a snapshot, and never for unknown models', () => {
    const { snapshot, reads } = counted();
    const serving = new ServingChannels();
    const found = serving.find({ snapshot, startedMs: 1 }, first);
    const candidates = 'candidates' in found ? found.candidates : [];
    expect(candidates).toHaveLength(channelCount);
    expect(reads()).toBe(channelCount);
    const again = serving.find({ snapshot, startedMs: 2 }, first);
    expect('candidates' in again && again.candidates).toBe(candidates);
    const unknown = { reason: 'model_not_found', model: 'nobody/serves-this', why: 'no_channel' };
    expect(serving.find({ snapshot, startedMs: 1 }, 'nobody/serves-this')).toEqual(unknown);
    expect(reads()).toBe(channelCount);
    serving.find({ snapshot, startedMs: 1 }, second);
    expect(reads()).toBe(2 * channelCount);
  });

  it('scores each once, and reads the health only of the chosen one', () => {
    const found = new ServingChannels().find({ snapshot: snapshotOf(5), startedMs: 1 }, first);
    const candidates = 'candidates' in found ? found.candidates : [];
    const score = scoreOf({ key: keyRow(), request });
    const scored: string[] = [];
    const looked: string[] = [];
    const order = new CandidateOrder(candidates, {
      score: (candidate) => {
        scored.push(candidate.id);
        return score(candidate);
      },
      findHealth: ({ id }) => {
        looked.push(id);
        return undefined;
      },
    });
    const taken = Array.from({ length: 3 }, () => order.take()?.candidate.id);
    expect(scored.toSorted()).toEqual(candidates.map(({ id }) => id).toSorted());
    expect(looked).toEqual(taken);
  });
});
