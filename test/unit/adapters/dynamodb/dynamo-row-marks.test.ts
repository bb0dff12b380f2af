import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConfigTables, createRowMarks } from '../../../../shared/adapters/dynamodb/row-tables.ts';
import { MarksLost, type ValidatedRow } from '../../../../shared/relay/ports/config-store.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { channelRow, readRow, startCompiler } from '../../relay/jobs/config-rig.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { countedClient, type CountedClient } from './store.ts';
import { tablesOn } from '../../../support/sdk-tables.ts';

let emulator: Emulator;
let store: CountedClient;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  store = countedClient();
});
afterAll(() => emulator.stop());

const problem = 'priority: found "high", expected a whole number';
const validated = (key: string, raw: unknown = { id: key }): ValidatedRow => ({
  table: 'channels',
  key,
  raw,
  result: { problem },
});

test("a row that can't be marked is logged, and the others are marked", async () => {
  const full = channelRow({ id: 'full', priority: 'high', _note: '' });
  const room = 400 * 1024 - JSON.stringify(full).length;
  await store.put('channels', { ...full, _note: 'x'.repeat(room) });
  await store.put('channels', channelRow({ priority: 'high' }));
  const beyond = { id: { N: '9007199254740993' }, type: { S: 'token-billing' } };
  await store.client.send(new PutItemCommand({ TableName: 'relay-charges', Item: beyond }));
  const { channels, charges } = await createConfigTables(tablesOn(store.client), 'relay').rows();
  const log = recordedLog();
  const rows: ValidatedRow[] = [
    ...charges.map((raw): ValidatedRow => ({ table: 'charges', key: 2 ** 53, raw, result: { problem } })),
    ...channels.map((raw) => validated((raw as { id: string }).id, raw)),
  ];
  await createRowMarks({ client: tablesOn(store.client), stack: 'relay', log }).write(rows);
  expect(await readRow(store, 'channels', 'main')).toMatchObject({ _problem: problem });
  const events = log.events.toSorted((a, b) =>
    String(a.fields['table']).localeCompare(String(b.fields['table'])),
  );
  expect(events).toEqual([
    { name: 'mark_failed', fields: { table: 'channels', key: 'full', problem: 'ValidationException' } },
    { name: 'mark_failed', fields: { table: 'charges', key: 2 ** 53, problem: 'Error' } },
  ]);
  // A compile succeeds even with such rows in the tables.
  expect(await startCompiler().compile()).toMatchObject({ version: 1 });
});

test("a long key, such as a key's hash, is not logged", async () => {
  const log = recordedLog();
  const marks = createRowMarks({ client: tablesOn(store.client), stack: 'relay', log });
  await marks.write([validated('k'.repeat(3000))]);
  expect(log.events).toEqual([
    { name: 'mark_failed', fields: { table: 'channels', problem: 'ValidationException' } },
  ]);
});

test('a failed write of one mark is reported after all other rows were marked', async () => {
  await store.put('channels', { id: 'unlucky' });
  const later = Array.from({ length: 12 }, (_, index) => `later-${index}`);
  for (const id of later) await store.put('channels', { id });
  const { client } = countedClient();
  client.middlewareStack.add(
    (next) => (args) => {
      // The document client has plain values here, not yet attributes.
      const { Key } = args.input as { Key?: { id?: unknown } };
      if (Key?.id === 'unlucky') throw Object.assign(new Error('lost'), { name: 'TimeoutError' });
      return next(args);
    },
    { step: 'initialize' },
  );
  const log = recordedLog();
  const marking = createRowMarks({ client: tablesOn(client), stack: 'relay', log }).write(
    ['unlucky', ...later].map((id) => validated(id)),
  );
  await expect(marking).rejects.toBeInstanceOf(MarksLost);
  for (const id of later) expect(await readRow(store, 'channels', id)).toMatchObject({ _problem: problem });
  expect(log.events).toEqual([]);
});
