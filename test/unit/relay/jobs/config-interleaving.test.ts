import { setImmediate as turn } from 'node:timers/promises';
import { ScanCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { deleteRow, startCompiler, type Compiler } from './config-rig.ts';
import { countedClient, type CountedClient } from '../../adapters/dynamodb/store.ts';

let emulator: Emulator;
let operator: CountedClient;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  operator = countedClient();
});
afterAll(() => emulator.stop());

const edit = (number: number) => operator.put('settings', { name: 'contact', value: String(number) });

async function forgetSnapshots(): Promise<void> {
  const { Items = [] } = await operator.client.send(new ScanCommand({ TableName: 'relay-runtime' }));
  for (const { id } of Items) await deleteRow(operator, 'runtime', String(id));
}

/** Mulberry32: the same order for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Holds every store call of the compilers until it is picked, so that they run one at a time in any order. */
class Crossroads {
  readonly #waiting: { go: () => void; done: Promise<void> }[] = [];

  stop(tables: TableClient): TableClient {
    return {
      call: async (...given) => {
        const passed = Promise.withResolvers<void>();
        const answered = Promise.withResolvers<void>();
        this.#waiting.push({ go: passed.resolve, done: answered.promise });
        await passed.promise;
        try {
          return await tables.call(...given);
        } finally {
          answered.resolve();
        }
      },
    };
  }

  async pick(random: () => number): Promise<boolean> {
    // Let everything that a reply triggers run before the next call is picked.
    for (let turns = 0; turns < 3; turns += 1) await turn();
    const [picked] = this.#waiting.splice(Math.floor(random() * this.#waiting.length), 1);
    picked?.go();
    await picked?.done;
    return picked !== undefined;
  }
}

async function published(observer: Compiler): Promise<{ version: number; edit: number } | undefined> {
  const pointer = await observer.snapshots.newest();
  if (pointer === undefined) return undefined;
  const { settings } = await observer.snapshots.snapshot(pointer);
  return { version: pointer.version, edit: Number(settings.contact) };
}

test.each(Array.from({ length: 4 }, (_, seed) => seed))(
  'parallel compilers never move the pointer back, and end with the content of the tables (order %i)',
  async (seed) => {
    const random = randomOf(seed);
    const crossroads = new Crossroads();
    const observer = startCompiler();
    await edit(0);
    await forgetSnapshots();
    const seen = [await published(observer)];
    const compiles: Promise<unknown>[] = [];
    let edits = 0;
    const running = new Set<Compiler>();
    const start = (): void => {
      const compiler = startCompiler({ tables: (real) => crossroads.stop(real) });
      running.add(compiler);
      compiles.push(
        compiler.compile().finally(() => {
          running.delete(compiler);
        }),
      );
    };
    for (let compilers = 0; compilers < 3; compilers += 1) start();
    for (let step = 0; running.size > 0 && step < 2000; step += 1) {
      if (edits < 4 && random() < 0.05) {
        edits += 1;
        await edit(edits);
        start();
      }
      await crossroads.pick(random);
      const newest = await observer.snapshots.newest();
      if (newest?.version !== seen.at(-1)?.version) seen.push(await published(observer));
    }
    await Promise.all(compiles);
    expect(await published(observer)).toMatchObject({ edit: edits });
    const versions = seen.slice(1).map((one) => one?.version ?? 0);
    expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b));
    const contents = seen.slice(1).map((one) => one?.edit ?? -1);
    expect(contents).toEqual(contents.toSorted((a, b) => a - b));
  },
);
