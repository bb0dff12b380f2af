/**
 * Measures choosing a channel among 503 channels that each serve 300 models: from the model's name to the first
 * candidate. `node test/bench/choosing.ts` prints it.
 */
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import type { Snapshot } from '../../shared/config/snapshot.ts';
import { defaultSettings } from '../../shared/config/settings.ts';
import { selectModel, ServingChannels } from '../../shared/relay/call/serving-channels.ts';
import { CandidateOrder, type Rank, scoreOf } from '../../shared/relay/dispatch/candidate-order.ts';
import { HealthRecorder } from '../../shared/relay/health/health-recorder.ts';
import type { ChatRequest } from '../../shared/wire/canonical-call.ts';
import { keyRow } from '../support/core-rig.ts';
import { MemoryHealth } from '../support/memory-health.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

export const channelCount = 503;
export const modelNames = Array.from({ length: 300 }, (_, i) => `vendor/model-${i}`);

/** @param priorities how many the channels have */
export function snapshotOf(priorities = 1): Snapshot {
  const channels = Array.from({ length: channelCount }, (_, i) =>
    ChannelRow.parse({
      id: `channel-${i}`,
      endpoint: `https://upstream-${i}.test/v1`,
      secret: `ssm:/relay/relay/channel-${i}`,
      models: [...modelNames],
      weight: 1 + (i % 3),
      priority: priorities - 1 - Math.floor((i * priorities) / channelCount),
      state: true,
    }),
  );
  const charges = modelNames.map((model, i) => ({
    id: i + 1,
    type: 'token-billing' as const,
    models: [model],
    input: 0.01,
    output: 0.03,
  }));
  // Parsed from text, as in a function.
  return JSON.parse(
    JSON.stringify({
      publishedAt: 1,
      channels,
      charges,
      plans: [],
      settings: defaultSettings,
      models: modelNames,
    }),
  ) as Snapshot;
}

/** A coding agent's first call. */
export const longRequest = (conversation: number): ChatRequest => ({
  model: 'm',
  tools: [{ type: 'function', function: { name: 'run' } }],
  messages: [
    { role: 'system', content: 'You are a coding agent. '.repeat(2_000) },
    { role: 'user', content: `Repair number ${conversation}. ${'The log says nothing. '.repeat(500)}` },
  ],
});

/** One environment. */
class Chooser {
  readonly #clock = new VirtualClock();
  readonly #recorder = new HealthRecorder({ health: new MemoryHealth(this.#clock), clock: this.#clock });
  readonly #serving = new ServingChannels();
  readonly #key = keyRow();

  async first(snapshot: Snapshot, model: string, request: ChatRequest): Promise<Rank | undefined> {
    const found = this.#serving.find({ snapshot, startedMs: this.#clock.now() }, model);
    const capable = selectModel({ base: model, web: false, official: false }, found, request);
    if ('reason' in capable) return undefined;
    return new CandidateOrder(capable.candidates, {
      findHealth: await this.#recorder.loadHealth(this.#key.account),
      score: scoreOf({ key: this.#key, request }),
    }).take();
  }
}

/** The fastest of many rounds of ten, in microseconds for one run: on a busy machine, the round without interruptions. */
async function fastest(work: (i: number) => unknown, rounds = 400): Promise<number> {
  let best = Infinity;
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now();
    for (let i = 0; i < 10; i += 1) await work(10 * round + i);
    best = Math.min(best, performance.now() - startedMs);
  }
  return best * 100;
}

async function print(name: string, microseconds: Promise<number>): Promise<void> {
  console.log(`${(await microseconds).toFixed(1).padStart(8)} us  ${name}`);
}

if (import.meta.main) {
  const requests = Array.from(
    { length: 100 },
    (_, i) => JSON.parse(JSON.stringify(longRequest(i))) as ChatRequest,
  );
  const short: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hello.' }] };
  const chooser = new Chooser();
  const one = snapshotOf();
  const five = snapshotOf(5);
  const longOf = (i: number): ChatRequest => requests[i % 100] ?? short;
  const modelOf = (i: number): string => modelNames[i % 300] ?? '';
  await print(
    'a long prompt, one priority',
    fastest((i) => chooser.first(one, modelOf(i), longOf(i)), 2_000),
  );
  await print(
    'a short prompt, one priority',
    fastest((i) => chooser.first(one, modelOf(i), short)),
  );
  await print(
    'a long prompt, five priorities',
    fastest((i) => chooser.first(five, modelOf(i), longOf(i))),
  );
  const fresh = Array.from({ length: 20 }, () => snapshotOf());
  await print(
    'the first call to a model of a snapshot',
    fastest((i) => chooser.first(fresh[i % 20] ?? one, modelOf(i), short), 20),
  );
}
