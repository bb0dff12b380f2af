/** Some minutes in the life of a relay on this machine: two upstreams, one of which breaks, and clients of every kind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type Script } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';

export interface Traffic {
  fromMs: number;
  untilMs: number;
  /** Every line that the functions wrote. */
  lines: string[];
}

const models = ['atlas', 'atlas-mini'];
const requestsPerSecond = 5;
/** Before the picture begins, so that it does not show how sixteen processes start on one machine. */
const warmUpMs = 15_000;
const spread = (least: number, most: number): number => least + (most - least) * Math.random() ** 2;

interface Temper {
  firstMs: [least: number, most: number];
  tellsUsage: boolean;
  /** Seconds of the run in which it answers 500. */
  broken: [from: number, until: number][];
}

const tempers: Record<'north' | 'south', Temper> = {
  north: { firstMs: [80, 320], tellsUsage: true, broken: [[60, 105]] },
  south: { firstMs: [300, 900], tellsUsage: false, broken: [[84, 92]] },
};

const answering =
  ({ firstMs, tellsUsage, broken }: Temper, seconds: () => number): Script =>
  async (_call, reply) => {
    if (broken.some(([from, until]) => seconds() >= from && seconds() < until))
      return reply.json(500, { error: { message: 'broken', type: 'server_error' } });
    await sleep(spread(...firstMs));
    const words = Math.round(spread(15, 90));
    for (let word = 0; word < words; word += 1) {
      await reply.data(chunk({ content: `word${word} ` }));
      await sleep(30);
    }
    const counts = { prompt_tokens: 40, completion_tokens: words * 2, total_tokens: 40 + words * 2 };
    await reply.data(chunk({}, 'stop'), ...(tellsUsage ? [usageChunk(counts)] : []), '[DONE]');
    reply.end();
  };

/** Drives the local stack for so many seconds. */
export async function runTraffic(durationSeconds: number): Promise<Traffic> {
  let fromMs = Infinity;
  const seconds = (): number => (Date.now() - fromMs) / 1000;
  await using started = new AsyncDisposableStack();
  const rows: [string, Temper][] = Object.entries(tempers);
  const channels = await Promise.all(
    rows.map(async ([id, temper], index) => {
      const upstream = started.adopt(await startScriptedUpstream(), (open) => open.close());
      upstream.script(answering(temper, seconds));
      return { id, endpoint: upstream.endpoint, models, state: true, priority: -index };
    }),
  );
  const stack = started.adopt(
    await startWatchedStack({
      environmentsMax: 16,
      rows: [
        ...channels.map((row): ['channels', object] => ['channels', row]),
        ['charges', { id: 2, type: 'token-billing', models, input: 0.004, output: 0.012 }],
      ].map(([table, row]) => [table, row] as never),
    }),
    (open) => open.stop(),
  );
  fromMs = Date.now() + warmUpMs;
  const until = { seconds: durationSeconds, now: seconds };
  await Promise.all([clients(stack, until), schedules(stack, until), operator(stack, until)]);
  const untilMs = Date.now();
  await stack.runSchedules();
  return { fromMs, untilMs, lines: [...stack.lines] };
}

interface Until {
  seconds: number;
  now(): number;
}

async function clients(stack: WatchedStack, until: Until): Promise<void> {
  const calls: Promise<void>[] = [];
  while (until.now() < until.seconds) {
    calls.push(call(stack, Math.random()));
    await sleep(spread(0.2, 3.2) * (1000 / requestsPerSecond));
  }
  await Promise.all(calls);
}

async function call(stack: WatchedStack, dice: number): Promise<void> {
  const model = dice < 0.04 ? 'no-such-model' : dice < 0.2 ? 'demo-chat' : (models[dice < 0.7 ? 0 : 1] ?? '');
  const leaving = new AbortController();
  const headers = dice > 0.97 ? { authorization: 'Bearer sk-unknown' } : undefined;
  const messages = [{ role: 'user', content: 'Tell me something about the sea.' }];
  try {
    const response = await stack.post(
      { model, stream: true, messages },
      { signal: leaving.signal, ...(headers && { headers }) },
    );
    if (dice > 0.92) leaving.abort();
    await response.text();
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
}

/** The clock of the local stack is a minute: too slow for a picture of few. */
async function schedules(stack: WatchedStack, until: Until): Promise<void> {
  while (until.now() < until.seconds) {
    await stack.runSchedules();
    await sleep(4_000);
  }
}

/** Makes a mistake in a row, mends it, and gives the demo models a price. */
async function operator(stack: WatchedStack, until: Until): Promise<void> {
  const edits: [atSeconds: number, table: string, row: object][] = [
    [40, 'channels', { id: 'west', endpoint: 'htps://west.example', models: ['atlas'], state: true }],
    [75, 'channels', { id: 'west', endpoint: 'https://west.example/v1', models: ['atlas'], state: false }],
    [120, 'charges', { id: 3, type: 'non-billing', models: ['demo-vision', 'demo-slow', 'demo-error'] }],
  ];
  for (const [atSeconds, table, Item] of edits) {
    await sleep(Math.max(0, Math.min(atSeconds, until.seconds) - until.now()) * 1000);
    await stack.store.documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  }
}
