/** The DynamoDB cost of storing, as the store itself counts it, compared with docs/cost.md. */
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedReading } from '../../shared/endpoints/responses/stored-input.ts';
import { createStoredPorts } from '../../shared/adapters/dynamodb/responses/response-store.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored.ts';
import { createFollower } from '../../shared/relay/stored/follow.ts';
import { readConversation } from '../../shared/relay/stored/conversation.ts';
import { readPage } from '../docs/pages.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { meteredClient } from '../support/metered-client.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { noise, nowOf, queuedOf, responseOf } from './stored-rig.ts';
import { StoredReader } from '../../shared/relay/stored/reads.ts';

let emulator: Emulator;
let metered: ReturnType<typeof meteredClient>;
let stored: StoredPorts;
const clock = new VirtualClock();
const opened = { clock };
const times = { clock, random: { next: () => 0.5 } };

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  metered = meteredClient(emulator.endpoint);
  const client = tablesOn(DynamoDBDocumentClient.from(metered.client));
  stored = { ...createStoredPorts({ client, clock, stack: 'relay' }), startRun: async () => {} };
});
afterAll(async () => {
  metered.client.destroy();
  await emulator.stop();
});

const isRead = ({ name }: { name: string }): boolean => /^(BatchGetItem|GetItem|Query) /.test(name);

/** Returns the units that the work used, and resets the count. */
async function unitsOf(work: () => Promise<unknown>): Promise<{ reads: number; writes: number }> {
  metered.commands.length = 0;
  await work();
  const sum = (some: typeof metered.commands): number => some.reduce((units, each) => units + each.units, 0);
  return {
    reads: sum(metered.commands.filter(isRead)),
    writes: sum(metered.commands.filter((each) => !isRead(each))),
  };
}

const vocabulary = Array.from({ length: 700 }, (_, i) => noise(2 + (i % 9), i + 1).toLowerCase());

/** Shrinks to less than half, like prose. */
function words(length: number, seed: number): string {
  const picks = noise(length, seed);
  const chosen = Array.from({ length: Math.floor(length / 6) }, (_, i) => {
    const pick = picks.charCodeAt(2 * i) * 256 + picks.charCodeAt(2 * i + 1);
    return vocabulary[Number.isNaN(pick) ? i % 700 : pick % 700] ?? '';
  });
  return chosen.join(' ').slice(0, length);
}

/** Returns an event of a stream. */
function frame(number: number): string {
  const type = 'response.output_text.delta';
  const item = `msg_${'1'.repeat(26)}_0`;
  const data = {
    type,
    sequence_number: number,
    item_id: item,
    output_index: 0,
    content_index: 0,
    delta: ` ${words(6, number)}`,
    logprobs: [],
  };
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Dollars per unit and per GB-second in us-east-1. */
const [readPrice, writePrice, secondPrice] = [0.000000125, 0.000000625, 0.0000133334];

/** Characters in each part of a turn. `seal` is the length of its sealed state. */
interface Loop {
  instructions: number;
  tools: number;
  input: number;
  answer: number;
  seal: number;
}

const loops: Record<string, Loop> = {
  'a conversation': { instructions: 500, tools: 0, input: 200, answer: 1_500, seal: 0 },
  'an agent with tools': { instructions: 6_000, tools: 8_000, input: 4_000, answer: 800, seal: 1_500 },
};
const turns = 20;

/** Stores and reads turns as calls with `previous_response_id` do. */
async function run(account: string, loop: Loop): Promise<{ bytes: number }> {
  let previous: string | undefined;
  let bytes = 0;
  for (let turn = 1; turn <= turns; turn += 1) {
    const unread = storedReading.references({ previous_response_id: previous, input: 'x' });
    const conversation =
      unread && (await readConversation(new StoredReader({ ...times, stored }, account), unread));
    expect(conversation?.earlier ?? []).toHaveLength(turn - 1);
    const id = `resp-${String(turn).padStart(26, '0')}`;
    const head = conversation?.previous;
    const response = responseOf(
      opened,
      { account, id, turn, ancestors: head ? [head.id, ...head.ancestors] : [] },
      {
        input: [{ type: 'message', id: 'msg', role: 'user', content: words(loop.input, turn) }],
        response: {
          id,
          instructions: words(loop.instructions, 1_000),
          tools: [{ type: 'function', name: 'tool', parameters: words(loop.tools, 1_001) }],
          output: [{ type: 'message', content: words(loop.answer, 100 + turn) }],
        },
        ...(loop.seal > 0 && { seal: noise(loop.seal, turn) }),
      },
    );
    await stored.responses.put(response);
    bytes += JSON.stringify(response.body).length;
    previous = id;
  }
  return { bytes };
}

/** The row of the page; each number must be within a tenth of the measured one. */
const page = readPage('docs/cost.md');
function written(name: string): number[] {
  const row =
    page.split('\n').find((line) => line.startsWith(`| ${name} `)) ?? expect.fail(`no row: ${name}`);
  return row
    .split('|')
    .slice(2, -1)
    .map((text) => Number(text.replaceAll(/[ ,]/g, '')));
}
const near = (counted: number): unknown => ({
  asymmetricMatch: (found: number) => Math.abs(found - counted) <= counted / 10,
  toString: () => `about ${counted}`,
});

describe('the storage costs in docs/cost.md hold for', () => {
  it.each(Object.entries(loops))('a loop of 20 turns of %s', async (name, loop) => {
    let bytes = 0;
    const { reads, writes } = await unitsOf(async () => void ({ bytes } = await run(name, loop)));
    const million = 1_000_000 * (reads * readPrice + writes * writePrice);
    expect(written(name)).toEqual([bytes / 1000, writes, reads, million].map(near));
  });

  it('a background response with its run, its events and its readers', async () => {
    const of = { account: 'background', id: `resp-${'1'.repeat(26)}` };
    const run = { ...of, run: 'one' };
    const later = nowOf(opened) + 60;
    const took = {
      'accept it': await unitsOf(() =>
        stored.responses.put(queuedOf(opened, of, { request: { text: words(12_000, 1) } })),
      ),
      'claim it': await unitsOf(() => stored.runs.claim(run, later)),
      'prolong it, every 20 s': await unitsOf(() => stored.runs.renew(run, later)),
      'look at it, every second': await unitsOf(() => stored.responses.heads(of.account, [of.id])),
      'keep half a second of events': await unitsOf(() =>
        stored.events.append(of, { from: 0, frames: Array.from({ length: 25 }, (_, i) => frame(i)) }, later),
      ),
      'a poll without news': await unitsOf(() => stored.events.after(of, 24)),
    };
    for (const [name, { reads, writes }] of Object.entries(took))
      expect([name, ...written(name)]).toEqual([name, ...[writes, reads].map(near)]);
  });

  it('following a background response for a minute while it is written', async () => {
    const of = { account: 'followed', id: `resp-${'2'.repeat(26)}` };
    const run = { ...of, run: 'one' };
    const until = nowOf(opened) + 90;
    await stored.responses.put(queuedOf(opened, of, { request: { text: words(12_000, 1) } }));
    await stored.runs.claim(run, until);
    const reader = new StoredReader({ ...times, stored }, of.account);
    const poll = createFollower({ clock, stored }, reader, { id: of.id, after: 0, until });
    const polled = { reads: 0, writes: 0 };
    for (let half = 0; half < 120; half += 1) {
      const frames = Array.from({ length: 25 }, (_, i) => frame(half * 25 + i + 1));
      await stored.events.append(of, { from: half * 25 + 1, frames }, until + 600);
      const { reads, writes } = await unitsOf(() => poll());
      polled.reads += reads;
      polled.writes += writes;
      await clock.run(clock.sleep(500));
    }
    expect(written('follow it for a minute')).toEqual([polled.writes, polled.reads].map(near));
    const minute = polled.reads * readPrice;
    const both = minute + 120 * writePrice + 60 * readPrice;
    const held = 60 * 0.25 * secondPrice;
    const said = `${minute.toFixed(5)} dollars of reads and ${held.toFixed(4)} of the function`;
    for (const name of ['docs/cost.md', 'docs/decisions/0050-answers-that-are-kept.md'])
      expect(readPage(name).replaceAll(/\s+/g, ' ')).toContain(said);
    expect(page).toContain(`${(1000 * both).toFixed(2)} dollars for a thousand minutes of both`);
  });
});
