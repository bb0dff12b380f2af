import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { beforeEach, describe, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { Table } from '../../../../shared/adapters/dynamodb/table-client.ts';
import {
  readItems,
  listSnapshotPartIds,
  listRowsPartIds,
} from '../../../../shared/adapters/dynamodb/runtime-items.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { channelRow, chargeRow, deleteRow, readRow, startCompiler, type Compiler } from './config-rig.ts';

let emulator: Emulator;
let compiler: Compiler;

beforeEach(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  compiler = startCompiler();
  return () => emulator.stop();
});

/** 120 KB that hardly compress. */
const text = () => Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString('hex');

const put = (...row: Parameters<Compiler['store']['put']>) => compiler.store.put(...row);
const served = async () => {
  const pointer = await compiler.snapshots.newest();
  if (pointer === undefined) throw new Error('nothing was published');
  return compiler.snapshots.snapshot(pointer);
};

describe('a compile', () => {
  test('publishes the content of the tables as version 1', async () => {
    await put('channels', channelRow());
    await put('charges', chargeRow);
    const pointer = await compiler.compile();
    expect(pointer).toMatchObject({ version: 1, format: 1, parts: 1, rowParts: 1 });
    expect(await served()).toMatchObject({
      version: 1,
      publishedAt: pointer.publishedAt,
      models: ['gpt-4o'],
      charges: [chargeRow],
    });
    expect(compiler.counted).toEqual([{ badRows: 0, warnedRows: 0, unpricedModels: 0 }]);
  });

  test('of unchanged content writes nothing', async () => {
    await put('channels', channelRow());
    await put('charges', chargeRow);
    const first = await compiler.compile();
    await put('channels', channelRow({ _note: 'seen' }));
    compiler.store.calls.length = 0;
    expect(await compiler.compile()).toEqual(first);
    expect(compiler.store.calls.filter((call) => /^(Put|Update)/.test(call))).toEqual([]);
  });

  test('keeps the last valid version of an invalid row, even in compilers that never read it', async () => {
    await put('channels', channelRow());
    await compiler.compile();
    await put('channels', channelRow({ priority: 'high' }));
    await put('settings', { name: 'contact', value: 'ops@example.com' });
    await startCompiler().compile();
    expect(await served()).toMatchObject({ version: 2, settings: { contact: 'ops@example.com' } });
    expect((await served()).channels).toMatchObject([{ id: 'main', priority: 0 }]);
    await deleteRow(compiler.store, 'channels', 'main');
    await compiler.compile();
    expect((await served()).channels).toEqual([]);
  });

  test('reads tables of several pages and writes snapshots of several items', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
    await Promise.all(
      ids.map((id) =>
        put('channels', channelRow({ id, models: [id], params: { set: { a: text(), b: text() } } })),
      ),
    );
    const pointer = await compiler.compile();
    expect(pointer.parts).toBeGreaterThan(1);
    expect((await served()).models).toEqual(ids);
    const parts = await readItems(new Table(tablesOn(compiler.store.client), 'relay', 'runtime'), [
      ...listSnapshotPartIds(pointer),
      ...listRowsPartIds(pointer),
    ]);
    for (const { body } of parts.values()) expect((body as Uint8Array).length).toBeLessThanOrEqual(300_000);
    expect(await compiler.compile()).toEqual(pointer);
  });

  test('fails with a metric and publishes nothing when the store does not answer', async () => {
    await emulator.stop();
    await expect(compiler.compile()).rejects.toBeInstanceOf(StoreUnavailable);
    expect(compiler.counted).toEqual([{ failed: true }]);
  });
});

describe('the newest snapshot', () => {
  test('is published again if a part of it is lost', async () => {
    await put('channels', channelRow());
    const first = await compiler.compile();
    await deleteRow(compiler.store, 'runtime', 'snapshot#1#0');
    expect(await compiler.compile()).toMatchObject({ version: 2, digest: first.digest });
    expect((await served()).models).toEqual(['gpt-4o']);
    expect(compiler.log.faults).toMatchObject([{ error: { name: 'SnapshotBroken' } }]);
  });

  test('is published again with the last valid rows if its format is unknown', async () => {
    await put('channels', channelRow());
    await compiler.compile();
    await put('channels', channelRow({ priority: 'high' }));
    await compiler.store.client.send(
      new UpdateCommand({
        TableName: 'relay-runtime',
        Key: { id: 'config' },
        UpdateExpression: 'SET #format = :format',
        ExpressionAttributeNames: { '#format': 'format' },
        ExpressionAttributeValues: { ':format': 99 },
      }),
    );
    expect(await compiler.compile()).toMatchObject({ version: 2, format: 1 });
    expect((await served()).channels).toMatchObject([{ id: 'main', priority: 0 }]);
  });

  test('skips a version number that a dead compile left behind', async () => {
    await put('channels', channelRow());
    await compiler.compile();
    const dying = startCompiler({
      snapshots: (real) => ({
        ...real,
        async publish(newest, version, content) {
          await real.publish({ ...newest!, digest: 'never' }, version, content);
          throw new Error('killed');
        },
      }),
    });
    await put('settings', { name: 'contact', value: 'ops@example.com' });
    await expect(dying.compile()).rejects.toThrow('killed');
    const { version } = await compiler.compile();
    expect(version).toBeGreaterThan(2);
    expect(await served()).toMatchObject({ version, settings: { contact: 'ops@example.com' } });
    await put('settings', { name: 'contact', value: 'other' });
    expect(await compiler.compile()).toMatchObject({ version: version + 1 });
  });
});

describe('the marks in rows', () => {
  const problem = 'priority: found "high", expected a whole number';

  test('show a channel’s learned quirks while they are valid, without a new version', async () => {
    await put('channels', channelRow());
    await put('charges', chargeRow);
    const first = await compiler.compile();
    const name = 'speaks:other|main|gpt-4o';
    await put('runtime', { id: 'learned', [name]: Date.now() + 60_000 });
    expect(await compiler.compile()).toEqual(first);
    expect(await readRow(compiler.store, 'channels', 'main')).toMatchObject({
      _warning: expect.stringContaining('in the dialect "other"') as string,
    });
    await put('runtime', { id: 'learned', [name]: Date.now() - 1 });
    await compiler.compile();
    expect(await readRow(compiler.store, 'channels', 'main')).not.toHaveProperty('_warning');
  });

  test('show what is invalid, and disappear when it is corrected', async () => {
    await put('channels', channelRow({ priority: 'high' }));
    await put('charges', { ...chargeRow, output: 72 });
    await compiler.compile();
    expect(await readRow(compiler.store, 'channels', 'main')).toMatchObject({
      priority: 'high',
      _problem: problem,
    });
    expect(await readRow(compiler.store, 'charges', 1)).toMatchObject({
      _warning: expect.stringContaining('looks like a price per million') as string,
    });
    expect(compiler.counted).toEqual([{ badRows: 1, warnedRows: 1, unpricedModels: 0 }]);

    await put('channels', channelRow({ _problem: problem, _note: 'mine' }));
    await put('charges', { ...chargeRow, _warning: 'old' });
    await compiler.compile();
    expect(await readRow(compiler.store, 'channels', 'main')).toEqual(channelRow({ _note: 'mine' }));
    const jump = expect.stringMatching(/^models: at [^;]* falls by 99 %[^;]*$/) as string;
    expect(await readRow(compiler.store, 'charges', 1)).toEqual({ ...chargeRow, _warning: jump });
    await compiler.compile();
    expect(await readRow(compiler.store, 'charges', 1)).toEqual({ ...chargeRow, _warning: jump });
  });
});
