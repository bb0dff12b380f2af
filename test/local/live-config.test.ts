import { DeleteCommand, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCountedStack, type CountedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';

/**
 * Operators' edits of rows, by plain SDK calls, while a load runs. An edit is live within 10 s on a machine that is not
 * busy with other tests; here it may take a little longer.
 */
const liveWithin = { timeout: 15_000, interval: 300 };
const markedWithin = { timeout: 10_000, interval: 50 };

let upstream: ScriptedUpstream;
let stack: CountedStack;
let load: Load;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startCountedStack({
    environmentsMax: 4,
    rows: [
      ['channels', channel('steady')],
      ['channels', channel('broken', { priority: 'high' })],
      ['channels', channel('mispriced')],
      ['charges', { id: 1, type: 'token-billing', models: ['mispriced'], input: '0,018', output: 0.07 }],
      ['settings', { name: 'limits', value: { request_seconds: 'ten' } }],
    ],
  });
  load = startLoad();
});
afterAll(async () => {
  await load.stop();
  await stack.stop();
  await upstream.close();
});

/** A channel that serves a model with its own name. */
const channel = (id: string, more: Record<string, unknown> = {}) => ({
  id,
  endpoint: upstream.endpoint,
  models: [id],
  state: true,
  ...more,
});

interface Load {
  answered: number;
  /** Answers other than 200. */
  failed: string[];
  stop(): Promise<void>;
}

/** Starts callers that keep calling the steady model and reading the list of models. */
function startLoad(): Load {
  const ending = new AbortController();
  const load: Load = {
    answered: 0,
    failed: [],
    async stop() {
      ending.abort();
      await Promise.all(callers);
    },
  };
  const callers = [ask, ask, offered].map(async (call) => {
    while (!ending.signal.aborted) {
      await call('steady').then(
        (answer) => {
          load.answered += 1;
          if (answer !== 200 && !Array.isArray(answer)) load.failed.push(String(answer));
        },
        (error: unknown) => load.failed.push(String(error)),
      );
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  });
  return load;
}

/** Whether a call of a free model is recorded in its account. */
async function countsCalls(): Promise<boolean> {
  stack.store.calls.length = 0;
  await ask('steady');
  return stack.store.calls.some(({ table, action }) => table === 'relay-quotas' && action === 'UpdateItem');
}

async function ask(model: string): Promise<number> {
  const answer = await stack.post({ model, messages: [{ role: 'user', content: 'hi' }] });
  await answer.text();
  return answer.status;
}

async function offered(): Promise<string[]> {
  const answer = await fetch(`${stack.origin}/v1/models`);
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

const put = (Item: Record<string, unknown>) =>
  stack.store.documents.send(new PutCommand({ TableName: 'relay-channels', Item }));

const set = (id: string, attribute: string, value: unknown) =>
  stack.store.documents.send(
    new UpdateCommand({
      TableName: 'relay-channels',
      Key: { id },
      UpdateExpression: 'SET #attribute = :value',
      ExpressionAttributeNames: { '#attribute': attribute },
      ExpressionAttributeValues: { ':value': value },
    }),
  );

const row = async (id: string) =>
  (await stack.store.documents.send(new GetCommand({ TableName: 'relay-channels', Key: { id } }))).Item;

const problemOf = async (id: string): Promise<unknown> => (await row(id))?.['_problem'];

describe('while a load runs', () => {
  it('a cold start with invalid rows serves the valid ones, and marks the invalid ones with their error', async () => {
    expect(await ask('steady')).toBe(200);
    expect(await ask('broken')).toBe(404);
    await expect
      .poll(() => problemOf('broken'), markedWithin)
      .toBe('priority: found "high", expected a whole number');
    await expect
      .poll(async () => {
        const key = { TableName: 'relay-settings', Key: { name: 'limits' } };
        return (await stack.store.documents.send(new GetCommand(key))).Item?.['_problem'];
      }, markedWithin)
      .toMatch(/^value\.request_seconds: found "ten"/);
  });

  it('a model whose first price is unreadable is neither served nor listed; one without a price is free', async () => {
    expect(await ask('mispriced')).toBe(404);
    expect(await offered()).not.toContain('mispriced');
    expect(await offered()).toContain('steady');
  });

  it('a corrected row loses its mark and is served', async () => {
    await put(channel('broken'));
    await expect.poll(() => ask('broken'), liveWithin).toBe(200);
    await expect.poll(offered, liveWithin).toContain('broken');
    expect(await row('broken')).not.toHaveProperty('_problem');
  });

  it('a new row is served and listed, and an edited row changes', async () => {
    await put(channel('added'));
    await expect.poll(() => ask('added'), liveWithin).toBe(200);
    await expect.poll(offered, liveWithin).toContain('added');
    await set('added', 'models', new Set(['renamed']));
    await expect.poll(() => ask('renamed'), liveWithin).toBe(200);
    await expect.poll(offered, liveWithin).not.toContain('added');
  });

  it('a row that becomes invalid is marked, and its last valid version stays in use', async () => {
    await set('steady', 'weight', -1);
    await expect
      .poll(() => problemOf('steady'), markedWithin)
      .toMatch(/^weight: found -1, .*the last valid version stays in use/);
    await put(channel('other', { priority: 9 }));
    // A later configuration is live, and still contains it.
    await expect.poll(() => ask('other'), liveWithin).toBe(200);
    expect(await ask('steady')).toBe(200);
    await set('steady', 'weight', 2);
    await expect.poll(() => problemOf('steady'), markedWithin).toBeUndefined();
  });

  it('a deleted row is no longer served or listed', async () => {
    await stack.store.documents.send(
      new DeleteCommand({ TableName: 'relay-channels', Key: { id: 'other' } }),
    );
    await expect.poll(() => ask('other'), liveWithin).toBe(404);
    await expect.poll(offered, liveWithin).not.toContain('other');
    expect(await row('other')).toBeUndefined();
  });

  it('no request has failed', async () => {
    await load.stop();
    expect(load.failed).toEqual([]);
    expect(load.answered).toBeGreaterThan(30);
  });
});

it('unreachable tables leave the last configuration in use', async () => {
  const faults = () => stack.lines.filter((line) => line.includes('"request_id":"config"')).length;
  // Counted calls are rejected while nothing can be counted.
  await stack.store.documents.send(
    new PutCommand({ TableName: 'relay-settings', Item: { name: 'limits', value: { count_free: false } } }),
  );
  await expect.poll(countsCalls, liveWithin).toBe(false);
  await stack.killProcesses('chat');
  // A new process caches the key for 30 s; in that time it needs only updates from the store.
  await expect.poll(() => ask('steady'), liveWithin).toBe(200);
  // The next environment has a configuration, even if it was started but never called.
  expect(await offered()).toContain('steady');
  stack.store.failWith({ status: 500, body: { __type: 'com.amazon.coral.service#InternalServerError' } });
  const statuses = new Set<number>();
  await expect
    .poll(async () => {
      statuses.add(await ask('steady'));
      return faults();
    }, liveWithin)
    .toBeGreaterThan(0);
  expect(await ask('steady')).toBe(200);
  expect(await offered()).toContain('steady');
  stack.store.failWith(undefined);
  expect([...statuses]).toEqual([200]);
  // Twice the time that an edit may take, and a start.
}, 60_000);
