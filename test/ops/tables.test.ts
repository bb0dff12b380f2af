import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainStoreError } from '../../infra/ops/session/store-error.ts';
import { openStore } from '../../shared/adapters/dynamodb/operator-client.ts';
import { dynamoRowTables } from '../../shared/adapters/dynamodb/dynamo-row-tables.ts';
import type { RowTables } from '../../shared/operate/row-tables.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';

let emulator: Emulator;
let tables: RowTables;
beforeAll(async () => {
  emulator = await startEmulator();
  const target = { stack: 'relay', endpoint: emulator.endpoint, local: true };
  tables = dynamoRowTables(await openStore(target, (error) => explainStoreError(error, target)));
});
afterAll(async () => emulator.stop());

describe('writing to a row that somebody else changes', () => {
  it('an update of a deleted row does not bring it back', async () => {
    expect(await tables.update('keys', 'gone', { attributes: { enabled: false } })).toBe(false);
    expect(await tables.get('keys', 'gone')).toBeUndefined();
  });

  it('a new row does not replace one with its key', async () => {
    expect(await tables.create('keys', { hash: 'taken', account: 'first' })).toBe(true);
    expect(await tables.create('keys', { hash: 'taken', account: 'second' })).toBe(false);
    expect(await tables.get('keys', 'taken')).toEqual({ hash: 'taken', account: 'first' });
  });

  it('a succession writes both rows, or neither once the old row changed', async () => {
    await tables.create('keys', { hash: 'old', enabled: true });
    const ended = { expires_at: '2027-01-01T00:00:00Z' };
    const update = { key: 'old', attributes: ended, unchanged: { enabled: true } };
    await tables.succeed('keys', { hash: 'new' }, update);
    expect(await tables.get('keys', 'old')).toEqual({ hash: 'old', enabled: true, ...ended });
    expect(await tables.get('keys', 'new')).toEqual({ hash: 'new' });

    await tables.update('keys', 'old', { attributes: { enabled: false } });
    for (const unchanged of [{ enabled: true }, { enabled: undefined }]) {
      await expect(tables.succeed('keys', { hash: 'newer' }, { ...update, unchanged })).rejects.toThrow(
        'the row changed meanwhile and nothing was written',
      );
    }
    expect(await tables.get('keys', 'newer')).toBeUndefined();
  });

  it('a change or a removal that was decided on other values is not made', async () => {
    const row = { id: 'seen', models: new Set(['a']), priority: 1 };
    await tables.create('channels', row);
    const key = { id: 'seen' };
    expect(
      await tables.update('channels', key, { attributes: { priority: 2 }, unchanged: { priority: 9 } }),
    ).toBe(false);
    expect(await tables.remove('channels', key, { models: new Set(['b']) })).toBe(false);
    expect(await tables.remove('channels', key, { models: row.models, mapper: { a: 'b' } })).toBe(false);
    expect(await tables.get('channels', key)).toEqual(row);
    expect(
      await tables.update('channels', key, {
        attributes: { priority: undefined },
        unchanged: { priority: 1 },
      }),
    ).toBe(true);
    expect(await tables.remove('channels', key, { models: row.models, priority: undefined })).toBe(true);
    expect(await tables.get('channels', key)).toBeUndefined();
  });

  it('a scan reads beyond the first page', async () => {
    const padding = 'x'.repeat(200_000);
    const ids = Array.from({ length: 8 }, (_, index) => `c${index}`);
    for (const id of ids) await tables.replace('channels', { id, _padding: padding });
    const rows = await tables.scan('channels');
    expect(rows.map((row) => row['id'])).toEqual(expect.arrayContaining(ids));
  });
});
