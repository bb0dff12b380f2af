import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import { candidatesOf } from '../../../../shared/relay/call/serving-channels.ts';
import { CandidateOrder } from '../../../../shared/relay/dispatch/candidate-order.ts';
import { HealthRecorder } from '../../../../shared/relay/health/health-recorder.ts';
import { UpstreamFailure } from '../../../../shared/upstreams/exchange.ts';
import { itemBytes } from '../../../support/item-bytes.ts';
import { MemoryHealth, type SharedItem } from '../../../support/memory-health.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const candidates = Array.from({ length: 503 }, (_, i) =>
  ChannelRow.parse({ id: `channel-${i}`, endpoint: 'https://up.test/v1', models: ['m'], state: true }),
).flatMap((row) => candidatesOf(row, 'm'));

/** The endings of a call. None has a Retry-After, so no candidate may ever be excluded. */
const outcomes = [
  undefined,
  new UpstreamFailure('status', 429),
  new UpstreamFailure('status', 500),
  new UpstreamFailure('connect'),
  new UpstreamFailure('status', 401),
  new UpstreamFailure('secret'),
  new UpstreamFailure('first_content_timeout'),
  new UpstreamFailure('status', 403),
];

const step = fc.record({
  environment: fc.nat(11),
  account: fc.constantFrom('a', 'b', 'c'),
  first: fc.nat(502),
  calls: fc.integer({ min: 1, max: 60 }),
  outcome: fc.nat(outcomes.length - 1),
  seconds: fc.nat(40),
  reads: fc.boolean(),
});

it('many environments keep the health item within two read units and never exclude a candidate', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const clock = new VirtualClock();
      const shared: SharedItem = { now: {} };
      const environments = Array.from({ length: 12 }, () => {
        const health = new MemoryHealth(clock, shared);
        // Other environments write between a read and its write.
        health.beforeWrite = () => new Promise(setImmediate);
        return { health, recorder: new HealthRecorder({ health, clock }) };
      });
      for (let i = 0; i < steps.length; i += 4) {
        await clock.run(clock.sleep((steps[i]?.seconds ?? 0) * 1000));
        const atOnce = steps
          .slice(i, i + 4)
          .flatMap(({ environment, account, first, calls, outcome, reads }) => {
            const { health, recorder } = environments[environment] ?? environments[0]!;
            if (reads) health.read();
            return Array.from({ length: calls }, async (_, call) => {
              const candidate = candidates[(first + call) % candidates.length]!;
              const failure = outcomes[outcome];
              await (failure
                ? recorder.recordFailure({
                    candidate,
                    failure,
                    secretChanged: false,
                    hasPassedRelays: false,
                    account,
                    tried: undefined,
                  })
                : recorder.recordSuccess(candidate));
            });
          });
        await Promise.all(atOnce);
        expect(itemBytes({ ...shared.now, id: 'cooldowns' })).toBeLessThanOrEqual(2 * 4096);
      }
      for (const { recorder } of environments.slice(0, 2)) {
        const standingOf = await recorder.loadHealth('a');
        const order = new CandidateOrder(candidates, { findHealth: standingOf, score: () => 1 });
        const taken = new Set<string>();
        for (let rank = order.take(); rank; rank = order.take()) taken.add(rank.candidate.id);
        expect(taken.size).toBe(candidates.length);
        expect(order.blockedUntilMs).toBeUndefined();
      }
    }),
    { numRuns: 5 },
  );
});

it('one of many environments claims a probe, and its success clears the cooldown for good', async () => {
  const clock = new VirtualClock();
  const first = new MemoryHealth(clock);
  const [candidate] = candidates;
  if (!candidate) throw new Error();
  await first.set(candidate.id, { kind: 'failing', untilMs: clock.now() - 1 });
  const environments = Array.from({ length: 20 }, () => first.inNewEnvironment());
  const recorders = environments.map((health) => new HealthRecorder({ health, clock }));
  const claims = await Promise.all(recorders.map((recorder) => recorder.claimProbe(candidate)));
  expect(claims.filter(Boolean)).toHaveLength(1);
  const prober = recorders[claims.indexOf(true)];
  await prober?.recordContent(candidate, { is: 'probe', untilMs: 0, kind: 'failing' });
  expect(first.of(candidate.id)).toBeUndefined();
});
