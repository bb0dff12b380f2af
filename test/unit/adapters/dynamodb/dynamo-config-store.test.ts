import { DeleteCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { Table } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { readItems } from '../../../../shared/adapters/dynamodb/runtime-items.ts';
import { createSnapshotStore } from '../../../../shared/adapters/dynamodb/config-store.ts';
import { emptyRows } from '../../../../shared/config/rows/read-table.ts';
import { defaultSettings, type Settings } from '../../../../shared/config/settings.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { countedClient, type CountedClient } from './store.ts';

const nowMs = 1_800_000_000_000;

let emulator: Emulator;
let store: CountedClient;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  store = countedClient();
});
afterAll(() => emulator.stop());

const open = () => createSnapshotStore(tablesOn(store.client), 'relay', { now: () => nowMs });
const contentOf = (version: number) => ({
  snapshot: createEmptySnapshot(version),
  rows: { ...emptyRows, settings: [{ name: 'contact', value: String(version) }] },
  digest: `digest-${version}`,
});

async function publish(first: number, last: number): Promise<void> {
  const snapshots = open();
  for (let next = first; next <= last; next += 1) {
    expect(await snapshots.publish(await snapshots.newest(), next, contentOf(next))).toBe('published');
  }
}

/** Opens a store whose first reply to a put of that item is lost after the put was applied. */
function openWithLostReply(id: string) {
  const { client } = countedClient();
  let attempts = 0;
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const reply = await next(args);
      const { body = '' } = args.request as { body?: string };
      if (context['commandName'] !== 'PutItemCommand' || !Buffer.from(body).includes(`{"S":"${id}"}`))
        return reply;
      attempts += 1;
      if (attempts === 1) throw Object.assign(new Error('lost'), { name: 'TimeoutError' });
      return reply;
    },
    { step: 'finalizeRequest', priority: 'low' },
  );
  const snapshots = createSnapshotStore(tablesOn(client), 'relay', { now: () => nowMs });
  return { snapshots, attempts: () => attempts };
}

const expiresOf = async (...ids: string[]) => {
  const items = await readItems(new Table(tablesOn(store.client), 'relay', 'runtime'), ids);
  return ids.map((id) => items.get(id)?.['expires']);
};

describe('published snapshots', () => {
  test('get a unique number, and move the pointer only from the version that they were based on', async () => {
    const snapshots = open();
    expect(await snapshots.publish(undefined, 1, contentOf(1))).toBe('published');
    const first = await snapshots.newest();
    expect(await snapshots.publish(undefined, 1, contentOf(2))).toBe('taken');
    expect(await snapshots.publish(first, 2, contentOf(2))).toBe('published');
    expect(await snapshots.publish(first, 3, contentOf(3))).toBe('moved');
    expect(await snapshots.newest()).toMatchObject({ version: 2, digest: 'digest-2' });
    // A snapshot that the pointer will never name expires.
    const inAWeek = nowMs / 1000 + 7 * 24 * 3600;
    expect(await expiresOf('snapshot#3#0', 'rows#3#0', 'snapshot#2#0')).toEqual([
      inAWeek,
      inAWeek,
      undefined,
    ]);
  });

  test('expire after 50 newer ones, but the newest never expires', async () => {
    await publish(4, 55);
    const snapshots = open();
    const newest = await snapshots.newest();
    if (!newest) throw new Error('nothing was published');
    await snapshots.expireOld(newest);
    const inAWeek = nowMs / 1000 + 7 * 24 * 3600;
    expect(await expiresOf('snapshot#5#0', 'rows#5#0', 'snapshot#1#0')).toEqual([inAWeek, inAWeek, inAWeek]);
    expect(await expiresOf('snapshot#5#0#1', 'snapshot#5#0#7', 'snapshot#6#0#7')).toEqual([
      inAWeek,
      inAWeek,
      undefined,
    ]);
    expect(await expiresOf('snapshot#6#0', 'rows#6#0', 'snapshot#55#0', 'config')).toEqual(
      Array.from({ length: 4 }),
    );
    const kept = Array.from({ length: 50 }, (_, index) => 55 - index);
    // Version 3 never served, because it lost a race.
    const retired = [5, 4, 2, 1];
    const versionsAt = async (ms: number) =>
      (await createSnapshotStore(tablesOn(store.client), 'relay', { now: () => ms }).history(newest)).map(
        ({ version }) => version,
      );
    expect(await versionsAt(nowMs)).toEqual([...kept, ...retired]);
    const [last] = await snapshots.history(newest).then((all) => all.slice(-1));
    expect(last && (await snapshots.rows(last)).settings).toEqual([{ name: 'contact', value: '1' }]);
    expect(await versionsAt(nowMs + 6.9 * 24 * 3_600_000)).toEqual([...kept, ...retired]);
    expect(await versionsAt(nowMs + 7 * 24 * 3_600_000)).toEqual(kept);
    // A request for some versions, or for one, does not read all.
    const some = async (wanted: object) =>
      (await snapshots.history(newest, wanted)).map(({ version }) => version);
    expect(await some({ count: 10 })).toEqual(kept);
    expect(await some({ sinceMs: nowMs })).toEqual(kept);
    expect(await some({ sinceMs: -1 })).toEqual([...kept, ...retired]);
    expect(await snapshots.kept(newest, 5)).toMatchObject({ version: 5 });
    for (const none of [3, 56, 0, -1, 1.5]) expect(await snapshots.kept(newest, none)).toBeUndefined();
  });

  test('are reported as broken when their bytes changed', async () => {
    const snapshots = open();
    const newest = await snapshots.newest();
    if (!newest) throw new Error('nothing was published');
    await store.client.send(
      new UpdateCommand({
        TableName: 'relay-runtime',
        Key: { id: `rows#${newest.version}#0` },
        UpdateExpression: 'SET body = :body',
        ExpressionAttributeValues: { ':body': new Uint8Array([1, 2, 3]) },
      }),
    );
    await expect(snapshots.rows(newest)).rejects.toMatchObject({ name: 'SnapshotBroken' });
    expect(await snapshots.snapshot(newest)).toMatchObject({ version: newest.version });
  });

  test('get the default of a setting that was added after they were published', async () => {
    const snapshots = open();
    const newest = await snapshots.newest();
    const { page: _page, ...older } = defaultSettings;
    const content = contentOf(59);
    const snapshot = { ...content.snapshot, settings: { ...older, contact: 'ops' } as Settings };
    expect(await snapshots.publish(newest, 59, { ...content, snapshot })).toBe('published');
    const pointer = await snapshots.newest();
    if (!pointer) throw new Error('nothing was published');
    expect((await snapshots.snapshot(pointer)).settings).toEqual({ ...defaultSettings, contact: 'ops' });
  });

  test.each(['config', 'snapshot#61#0'])(
    'are published and kept when the reply to the put of %s was lost',
    async (id) => {
      const version = id === 'config' ? 60 : 61;
      const { snapshots, attempts } = openWithLostReply(id);
      const newest = await snapshots.newest();
      expect(await snapshots.publish(newest, version, contentOf(version))).toBe('published');
      expect(attempts()).toBe(2);
      expect(await snapshots.newest()).toMatchObject({ version });
      expect(await expiresOf(`snapshot#${version}#0`, `rows#${version}#0`)).toEqual([undefined, undefined]);
    },
  );

  test('are published and kept when the reply to the very first put of the pointer was lost', async () => {
    await store.client.send(new DeleteCommand({ TableName: 'relay-runtime', Key: { id: 'config' } }));
    const { snapshots, attempts } = openWithLostReply('config');
    expect(await snapshots.publish(undefined, 62, contentOf(62))).toBe('published');
    expect(attempts()).toBe(2);
    expect(await expiresOf('snapshot#62#0', 'rows#62#0')).toEqual([undefined, undefined]);
  });

  test('give up their number if somebody else has it, even with the same content', async () => {
    const snapshots = open();
    expect(await snapshots.publish(await snapshots.newest(), 62, contentOf(62))).toBe('taken');
  });
});
