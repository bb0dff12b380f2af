import { describe, expect, it } from 'vitest';
import { HealthRecorder } from '../../../../shared/relay/health/health-recorder.ts';
import type { Candidate } from '../../../../shared/relay/call/call.ts';

const recorder = (): HealthRecorder =>
  new HealthRecorder({} as ConstructorParameters<typeof HealthRecorder>[0]);
const candidate = (model: number): Candidate =>
  ({ channel: { id: 'main' }, model: `m${model}` }) as Candidate;

describe('a call that is slower than its channel and model usually are', () => {
  const roundOf = (health: HealthRecorder, models: number): void => {
    for (let model = 0; model < models; model += 1) health.paced(candidate(model), 300);
  };

  it('is found among 600 that are called in turn', () => {
    const health = recorder();
    for (let calls = 0; calls < 50; calls += 1) roundOf(health, 600);
    expect(health.paced(candidate(7), 310)).toBeUndefined();
    expect(health.paced(candidate(7), 3_000)).toBeGreaterThanOrEqual(300);
  });

  it('is found of one that is called often, whatever else comes by', () => {
    const health = recorder();
    for (let calls = 0; calls < 60; calls += 1) {
      health.paced(candidate(-1), 300);
      for (let other = 0; other < 40; other += 1) health.paced(candidate(calls * 40 + other), 300);
    }
    expect(health.paced(candidate(-1), 3_000)).toBeGreaterThanOrEqual(300);
    // The first of the others are forgotten, and nothing is said of few calls.
    expect(health.paced(candidate(0), 3_000)).toBeUndefined();
  });
});
