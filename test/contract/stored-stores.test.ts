import { paginateQuery } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTableClient, type TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { createStoredPorts } from '../../shared/adapters/dynamodb/responses/response-store.ts';
import { ResponseTooLarge } from '../../shared/relay/ports/stored.ts';
import { endMark, countStoredEvents } from '../../shared/relay/stored/reads.ts';
import { StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryStored } from '../support/memory-stored.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedClient, hotClient, localAccess } from '../unit/adapters/dynamodb/store.ts';
import { storedLogsContract } from './stored-logs.ts';
import { storedResponsesContract } from './stored-responses.ts';
import { noise, nowOf, queuedOf, responseOf, type OpenedStored, type StoredSuite } from './stored-rig.ts';
import { storedRunsContract } from './stored-runs.ts';

const inMemory: StoredSuite = {
  name: 'in memory',
  async open() {
    const clock = new VirtualClock();
    return { stored: new MemoryStored(clock), clock, [Symbol.asyncDispose]: async () => {} };
  },
};

async function onEmulator(
  through = (client: TableClient): TableClient => client,
): Promise<OpenedStored & { emulator: Emulator }> {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const clock = new VirtualClock();
  const stored = createStoredPorts({ client: through(hotClient()), clock, stack: 'relay' });
  return { emulator, stored, clock, [Symbol.asyncDispose]: () => emulator.stop() };
}

const onDynamo: StoredSuite = { name: 'on DynamoDB', open: () => onEmulator() };

/** Sends every call twice, as if the first reply were lost. */
const twice = (client: TableClient): TableClient => ({
  async call(...given) {
    await client.call(...given).catch(() => {});
    return client.call(...given);
  },
});
const repeating: StoredSuite = {
  name: 'on DynamoDB, where each call is carried out twice',
  open: () => onEmulator(twice),
};

for (const suite of [inMemory, onDynamo, repeating]) {
  storedResponsesContract(suite);
  storedRunsContract(suite);
  storedLogsContract(suite);
}

describe('the table of responses', () => {
  let opened: OpenedStored & { emulator: Emulator };
  beforeAll(async () => {
    opened = await onEmulator();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const itemsOf = async (account: string): Promise<Record<string, unknown>[]> => {
    const client = emulatorClient(opened.emulator.endpoint);
    const input = {
      TableName: 'relay-responses',
      KeyConditionExpression: 'account = :account',
      ExpressionAttributeValues: { ':account': { S: account } },
    };
    const items: Record<string, unknown>[] = [];
    for await (const { Items = [] } of paginateQuery({ client }, input))
      items.push(...Items.map((item) => unmarshall(item)));
    return items;
  };
  const idsOf = async (account: string): Promise<string[]> =>
    (await itemsOf(account)).map(({ id }) => String(id));
  /** The mark that stays for a day after a response is deleted. */
  const removedMark = {
    account: 'a',
    id: 'resp-1',
    status: 'removed',
    expires: expect.any(Number) as number,
  };

  it('keeps nothing of a deleted response or of replaced contents', async () => {
    const of = { account: 'a', id: 'resp-1' };
    const { responses, runs, events } = opened.stored;
    await responses.put(queuedOf(opened, of, { request: { text: noise(450_000) } }));
    await runs.claim({ ...of, run: 'one' }, nowOf(opened) + 60);
    for (let from = 0; from < 60; from += 1)
      await events.append(
        of,
        { from, frames: [noise(from === 30 ? 450_000 : 20_000, from + 1)] },
        nowOf(opened) + 60,
      );
    const background = { streamed: true, run: 'one', until: 0, events: 61 };
    const text = noise(450_000, 3);
    const done = responseOf(opened, { ...of, background }, { response: { text } });
    expect(await runs.finish({ ...of, run: 'one' }, done)).toBe(true);
    expect((await idsOf('a')).filter((id) => id.includes('#b#') && !id.includes('#e#'))).toHaveLength(1);
    expect(await responses.remove('a', 'resp-1')).toBe(true);
    expect(await idsOf('a')).toEqual(['resp-1']);
    expect(await itemsOf('a')).toEqual([removedMark]);
  });

  it('keeps nothing of a response that was deleted while it ran', async () => {
    const of = { account: 'b', id: 'resp-1' };
    const { responses, runs, events } = opened.stored;
    await responses.put(queuedOf(opened, of));
    await runs.claim({ ...of, run: 'one' }, nowOf(opened) + 60);
    await responses.remove('b', 'resp-1');
    await events.append(of, { from: 0, frames: ['x'] }, nowOf(opened) + 60);
    const done = responseOf(opened, of, { response: { text: noise(450_000) } });
    expect(await runs.finish({ ...of, run: 'one' }, done)).toBe(false);
    expect(await idsOf('b')).toEqual(['resp-1']);
  });

  it('keeps nothing of a late put after its response was deleted', async () => {
    const { responses } = opened.stored;
    const put = responseOf(opened, { account: 'g', id: 'resp-1' }, { response: { text: noise(450_000) } });
    await responses.put(put);
    await responses.remove('g', 'resp-1');
    await responses.put(put);
    expect(await idsOf('g')).toEqual(['resp-1']);
    await responses.remove('g', 'resp-none');
    expect(await idsOf('g')).toEqual(['resp-1']);
  });

  it('keeps no parts of a queued response that arrives after its run ended', async () => {
    const of = { account: 'h', id: 'resp-1' };
    const run = { ...of, run: 'one' };
    const { responses, runs } = opened.stored;
    const queued = queuedOf(opened, of, { request: { text: noise(450_000) } });
    await responses.put(queued);
    await runs.claim(run, nowOf(opened) + 60);
    await runs.finish(run, responseOf(opened, { ...of, background: { streamed: false, until: 0 } }));
    await responses.put(queued);
    expect(await idsOf('h')).toEqual(['resp-1']);
  });

  it('keeps 9 MB that do not shrink', async () => {
    const { responses } = opened.stored;
    const large = responseOf(
      opened,
      { account: 'large', id: 'resp-1' },
      { response: { text: noise(9_000_000) } },
    );
    await responses.put(large);
    expect((await responses.read('large', ['resp-1'])).get('resp-1')?.body).toEqual(large.body);
  });

  it('rejects more than 12 MB, and keeps nothing of it', async () => {
    const of = { account: 'c', id: 'resp-1' };
    const put = opened.stored.responses.put(
      responseOf(opened, of, { response: { text: noise(16_500_000) } }),
    );
    await expect(put).rejects.toThrow(ResponseTooLarge);
    expect(await idsOf('c')).toEqual([]);
  });

  it('writes a turn once, and reads the turns of a conversation in one batch', async () => {
    const { client, calls } = countedClient();
    const { clock } = opened;
    const { responses, runs, events } = createStoredPorts({
      client: tablesOn(client),
      clock,
      stack: 'relay',
    });
    const ids = Array.from({ length: 32 }, (_, i) => `resp-${i}`);
    await responses.put(responseOf(opened, { account: 'd', id: 'resp-0' }));
    await responses.read('d', ids);
    await responses.heads('d', ids);
    await responses.remove('d', 'resp-0');
    const of = { account: 'd', id: 'resp-1' };
    await responses.put(queuedOf(opened, of));
    await runs.claim({ ...of, run: 'one' }, nowOf(opened) + 60);
    await runs.renew({ ...of, run: 'one' }, nowOf(opened) + 60);
    await events.append(of, { from: 0, frames: ['x'] }, nowOf(opened) + 60);
    await events.after(of, 0);
    await runs.finish({ ...of, run: 'one' }, responseOf(opened, of));
    const counted = calls.map((call) => call.replace(' relay-responses', ''));
    expect(counted.join(' ')).toBe(
      [
        'PutItem BatchGetItem BatchGetItem BatchGetItem PutItem Query',
        'PutItem PutItem UpdateItem BatchGetItem UpdateItem',
        'PutItem Query PutItem BatchWriteItem',
      ].join(' '),
    );
    client.destroy();
  });

  it('counts the events of a long answer by reading a single batch, whatever its other batches hold', async () => {
    const { client, calls } = countedClient();
    const replies: number[] = [];
    const tables = tablesOn(client);
    const measured: TableClient = {
      async call(...given) {
        const reply = await tables.call(...given);
        replies.push(JSON.stringify(reply).length);
        return reply;
      },
    };
    const { events } = createStoredPorts({ client: measured, clock: opened.clock, stack: 'relay' });
    const of = { account: 'i', id: 'resp-1' };
    for (let from = 0; from < 20; from += 1)
      await events.append(of, { from, frames: [noise(100_000, from + 1)] }, nowOf(opened) + 60);
    await events.append(of, { from: 20, frames: ['x', 'y', endMark] }, nowOf(opened) + 60);
    calls.length = 0;
    replies.length = 0;
    expect(await countStoredEvents(events, of)).toBe(22);
    expect(calls).toEqual(['Query relay-responses']);
    expect(replies[0]).toBeLessThan(10_000);
    client.destroy();
  });

  it('finds a response that is replaced between reading its head and its parts', async () => {
    const inner = hotClient();
    const { clock } = opened;
    const other = createStoredPorts({ client: inner, clock, stack: 'relay' });
    const of = { account: 'f', id: 'resp-1' };
    const run = { ...of, run: 'one' };
    const background = { streamed: false, run: 'one', until: nowOf(opened) + 60 };
    const after = responseOf(opened, { ...of, background }, { response: { text: noise(450_000, 2) } });
    await other.responses.put(queuedOf(opened, of, { request: { text: noise(450_000, 1) } }));
    await other.runs.claim(run, background.until);
    let reads = 0;
    const client: TableClient = {
      async call(...given) {
        if (given[0] === 'BatchGetItem' && (reads += 1) === 2) await other.runs.finish(run, after);
        return inner.call(...given);
      },
    };
    const { responses } = createStoredPorts({ client, clock, stack: 'relay' });
    expect((await responses.read('f', ['resp-1'])).get('resp-1')).toEqual(after);
  });

  it('repeats the unprocessed part of a batch, and gives up when nothing is processed', async () => {
    const inner = hotClient();
    let stuck = false;
    /** Processes only the first key of a batch, or none. */
    const busy = {
      async call(operation: string, input: { RequestItems: Record<string, unknown> }) {
        const name = 'relay-responses';
        if (operation === 'BatchWriteItem') {
          const all = input.RequestItems[name] as object[];
          const [first, ...rest] = stuck ? [undefined, ...all] : all;
          if (first) await inner.call(operation, { RequestItems: { [name]: [first as never] } });
          return { UnprocessedItems: rest.length > 0 ? { [name]: rest } : {} };
        }
        if (operation !== 'BatchGetItem') return inner.call(operation as never, input as never);
        const { Keys, ...rest } = input.RequestItems[name] as { Keys: object[] };
        const [key, ...others] = stuck ? [undefined, ...Keys] : Keys;
        const asked = { RequestItems: { [name]: { Keys: [key], ...rest } } };
        const reply = key ? await inner.call(operation, asked as never) : { Responses: {} };
        return { ...reply, UnprocessedKeys: others.length > 0 ? { [name]: { Keys: others } } : {} };
      },
    };
    const client = busy as unknown as TableClient;
    const { responses, events } = createStoredPorts({ client, clock: opened.clock, stack: 'relay' });
    const ids = ['resp-1', 'resp-2', 'resp-3'];
    for (const id of ids) await responses.put(responseOf(opened, { account: 'e', id }));
    expect(await responses.read('e', ids)).toHaveProperty('size', 3);
    const of = { account: 'e', id: 'resp-1' };
    for (let from = 0; from < 4; from += 1)
      await events.append(of, { from, frames: ['x'] }, nowOf(opened) + 60);
    await responses.remove('e', 'resp-1');
    expect([...(await responses.heads('e', ids)).keys()]).toEqual(['resp-2', 'resp-3']);
    expect(await idsOf('e')).toEqual(ids);
    stuck = true;
    await expect(responses.read('e', ids)).rejects.toThrow(StoreUnavailable);
  });

  it('deletes nothing of a response in progress: its parts are written before its head', async () => {
    const inner = hotClient();
    const of = { account: 'racing', id: 'resp-1' };
    const removed: boolean[] = [];
    const raced = {
      ...inner,
      call: async (operation: string, input: { Item?: { status?: unknown } }) => {
        if (operation === 'PutItem' && input.Item?.status)
          removed.push(await opened.stored.responses.remove(of.account, of.id));
        return inner.call(operation as never, input as never);
      },
    };
    const { responses } = createStoredPorts({
      client: raced as TableClient,
      clock: opened.clock,
      stack: 'relay',
    });
    const whole = responseOf(opened, of, { response: { text: noise(900_000) } });
    await responses.put(whole);
    expect(removed).toEqual([false]);
    expect((await responses.read(of.account, [of.id])).get(of.id)).toEqual(whole);
  });

  it('reports that it is unavailable when the store does not answer', async () => {
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = 'http://127.0.0.1:1';
    const client = createTableClient(localAccess);
    const stored = createStoredPorts({ client, clock: opened.clock, stack: 'relay' });
    const of = { account: 'a', id: 'resp-1' };
    const calls = [
      stored.responses.put(responseOf(opened, of)),
      stored.responses.read('a', ['resp-1']),
      stored.responses.remove('a', 'resp-1'),
      stored.events.after(of, 0),
      stored.results.read({ account: 'a', key: 'k' }),
    ];
    for (const result of await Promise.allSettled(calls))
      expect(result).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) });
    await expect(stored.runs.cancel('a', 'resp-1')).rejects.toHaveProperty('name', 'StoreBusy');
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = opened.emulator.endpoint;
  });
});
