import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../shared/adapters/dynamodb/open-store.ts';
import { createRowTables } from '../../shared/adapters/dynamodb/row-tables.ts';
import type { RawRow, RowTables } from '../../shared/operate/operator-ports.ts';
import type { TableName } from '../../shared/tables/table-names.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';

let emulator: Emulator;
let tables: RowTables;
/** Author of each written row. */
const author = { _by: 'local', _at: '2026-11-22T09:00:00Z' };
beforeAll(async () => {
  emulator = await startEmulator();
  const target = { stack: 'relay', endpoint: emulator.endpoint, local: true };
  const store = await openStore(target);
  tables = createRowTables(store, async () => author);
});
afterAll(async () => emulator.stop());

const create = (table: TableName, row: RawRow) => tables.write({ kind: 'create', table, row });
const update = (table: TableName, key: RawRow, change: { attributes: RawRow; unchanged?: RawRow }) =>
  tables.write({ kind: 'update', table, key, unchanged: {}, ...change });
const remove = (table: TableName, key: RawRow, unchanged: RawRow) =>
  tables.write({ kind: 'remove', table, key, unchanged });

describe('a write to a row that somebody else changes', () => {
  it('an update of a deleted row does not bring it back', async () => {
    expect(await update('keys', { hash: 'gone' }, { attributes: { enabled: false } })).toBe(false);
    expect(await tables.get('keys', 'gone')).toBeUndefined();
  });

  it('a new row does not replace one with its key', async () => {
    expect(await create('keys', { hash: 'taken', account: 'first' })).toBe(true);
    expect(await create('keys', { hash: 'taken', account: 'second' })).toBe(false);
    expect(await tables.get('keys', 'taken')).toEqual({ hash: 'taken', account: 'first', ...author });
  });

  it('a succession writes both rows, or neither once the old row changed', async () => {
    await create('keys', { hash: 'old', enabled: true });
    const ended = { expires_at: '2027-01-01T00:00:00Z' };
    const succeed = (hash: string, unchanged: RawRow) =>
      tables.writeTogether([
        { kind: 'create', table: 'keys', row: { hash } },
        { kind: 'update', table: 'keys', key: { hash: 'old' }, attributes: ended, unchanged },
      ]);
    await succeed('new', { enabled: true });
    expect(await tables.get('keys', 'old')).toEqual({ hash: 'old', enabled: true, ...ended, ...author });
    expect(await tables.get('keys', 'new')).toEqual({ hash: 'new', ...author });

    await update('keys', { hash: 'old' }, { attributes: { enabled: false } });
    for (const unchanged of [{ enabled: true }, { enabled: undefined }]) {
      await expect(succeed('newer', unchanged)).rejects.toThrow(
        'the row changed meanwhile and nothing was written',
      );
    }
    expect(await tables.get('keys', 'newer')).toBeUndefined();
  });

  it('a change or a deletion is rejected if the row changed since the decision', async () => {
    const row = { id: 'seen', models: new Set(['a']), priority: 1 };
    await create('channels', row);
    const key = { id: 'seen' };
    expect(await update('channels', key, { attributes: { priority: 2 }, unchanged: { priority: 9 } })).toBe(
      false,
    );
    expect(await remove('channels', key, { models: new Set(['b']) })).toBe(false);
    expect(await remove('channels', key, { models: row.models, mapper: { a: 'b' } })).toBe(false);
    expect(await tables.get('channels', 'seen')).toEqual({ ...row, ...author });
    expect(
      await update('channels', key, { attributes: { priority: undefined }, unchanged: { priority: 1 } }),
    ).toBe(true);
    expect(await remove('channels', key, { models: row.models, priority: undefined })).toBe(true);
    expect(await tables.get('channels', 'seen')).toBeUndefined();
  });

  it('a scan reads all pages', async () => {
    const padding = 'x'.repeat(200_000);
    const ids = Array.from({ length: 8 }, (_, index) => `c${index}`);
    for (const id of ids)
      await tables.write({ kind: 'replace', table: 'channels', row: { id, _padding: padding } });
    const rows = await tables.scan('channels');
    expect(rows.map((row) => row['id'])).toEqual(expect.arrayContaining(ids));
  });
});
