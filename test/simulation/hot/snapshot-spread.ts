import { createSnapshotStore } from '../../../shared/adapters/dynamodb/config-store.ts';
import { createConfigSource } from '../../../shared/adapters/dynamodb/runtime-source.ts';
import {
  attributesOf,
  type Attributes,
  type TableClient,
} from '../../../shared/adapters/dynamodb/table-client.ts';
import { emptyRows } from '../../../shared/config/rows/read-table.ts';
import { createEmptySnapshot } from '../../../shared/config/snapshot.ts';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';
import { SeededRandom } from '../seeded-random.ts';
import { Bucket } from './bucket.ts';
import { EventClock } from './event-clock.ts';

const readUnitsPerSecond = 3_000;
const readUnitBytes = 4_096;
const batchTriesMax = 5;
const firstPauseMs = 10;
/** The duration of traffic with the first configuration. */
const beforeMs = 12_000;

interface SpreadOptions {
  environments: number;
  /** Requests per second of each environment. */
  requestsPerSecond: number;
  snapshotBytes: number;
  learnedBytes?: number;
  /** Publishes under one key, like versions before copies existed. */
  singleCopy?: boolean;
  seed?: number;
}

/**
 * Environments that serve one configuration and then receive another, with the real publisher and the real readers, in
 * virtual time. Each key of the table has a maximum of read units per second; a batch returns throttled keys, which are
 * requested again as in the table layer.
 */
export class SnapshotSpread {
  readonly clock = new EventClock();
  readonly #random: SeededRandom;
  readonly #options: SpreadOptions;
  readonly #items = new Map<string, Attributes>();
  readonly #reads = new Map<string, Bucket>();
  faults = 0;
  /**
   * The time after the pointer moved at which each environment last served the old version, in ascending milliseconds.
   */
  readonly staleMs: number[] = [];
  /** Environments that have the new version. */
  live = 0;

  constructor(options: SpreadOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed ?? 1);
    const learned = { id: 'learned' };
    this.#items.set('learned', attributesOf(learned));
    this.#items.set('cooldowns', attributesOf({ id: 'cooldowns' }));
  }

  /** @param untilMs time after the pointer moved */
  async run(untilMs: number): Promise<this> {
    const { clock } = this;
    void this.#publish(1);
    const movedMs = clock.now() + beforeMs;
    for (let started = 0; started < this.#options.environments; started += 1) this.#environment(movedMs);
    clock.after(beforeMs, () => void this.#publish(2));
    await clock.run(movedMs + untilMs);
    this.staleMs.sort((a, b) => a - b);
    return this;
  }

  /** The most units per second read from one key. */
  mostUnits(prefix: string): number {
    const used = [...this.#reads]
      .filter(([id]) => id.startsWith(prefix))
      .flatMap(([, { used: each }]) => Array.from(each.values()));
    return Math.round(Math.max(0, ...used));
  }

  async #publish(version: number): Promise<void> {
    const store = createSnapshotStore(this.#client(), 'relay', this.clock);
    const snapshot = { ...createEmptySnapshot(Math.floor(this.clock.now() / 1000)), models: [`m${version}`] };
    const content = { snapshot, rows: emptyRows, digest: String(version) };
    await store.publish(version === 1 ? undefined : await store.newest(), version, content);
    // The publisher receives the pointer as if it had no copies.
    if (this.#options.singleCopy) delete this.#items.get('config')?.['copies'];
  }

  #environment(movedMs: number): void {
    const { clock } = this;
    const random = this.#random;
    const log = {
      request: () => {},
      event: () => {},
      fault: () => {
        this.faults += 1;
      },
    };
    const config = createConfigSource({ client: this.#client(), clock, random, log, stack: 'relay' });
    let staleMs = 0;
    const ask = async (): Promise<void> => {
      const snapshot = await config.current().catch(() => undefined);
      if (snapshot?.version === 2) {
        this.live += 1;
        this.staleMs.push(staleMs);
        return;
      }
      staleMs = Math.max(0, clock.now() - movedMs);
      const pauseMs = (-Math.log(1 - random.next()) * 1000) / this.#options.requestsPerSecond;
      clock.after(pauseMs, () => void ask());
    };
    // Environments start one after the other, as traffic grows.
    clock.after(1_000 + random.next() * (beforeMs - 2_000), () => void ask());
  }

  #client(): TableClient {
    const call = async (operation: string, input: object): Promise<never> => {
      if (operation === 'PutItem') return (await this.#put((input as { Item: Attributes }).Item)) as never;
      if (operation === 'BatchGetItem') return (await this.#get(input as BatchGet)) as never;
      throw new Error(`not modelled: ${operation}`);
    };
    return { call };
  }

  async #put(item: Attributes): Promise<object> {
    await this.clock.sleep(5);
    this.#items.set(item['id']?.S ?? '', item);
    return {};
  }

  async #get({ RequestItems }: BatchGet): Promise<object> {
    const [[table, wanted] = ['', { Keys: [] }]] = Object.entries(RequestItems);
    const found: Attributes[] = [];
    let ids = wanted.Keys.map(({ id }) => id?.S ?? '');
    for (let tries = 0; ids.length > 0; tries += 1) {
      if (tries === batchTriesMax) throw new StoreUnavailable('throttled');
      await this.clock.sleep(3 + 5 * this.#random.next() + (tries > 0 ? firstPauseMs * 2 ** tries : 0));
      ids = ids.filter((id) => !this.#taken(id, wanted.ConsistentRead === true));
    }
    for (const { id } of wanted.Keys) {
      const item = this.#items.get(id?.S ?? '');
      if (item) found.push(item);
    }
    return { Responses: { [table]: found }, UnprocessedKeys: {} };
  }

  #taken(id: string, consistent: boolean): boolean {
    const reads = this.#reads.get(id) ?? new Bucket(this.clock, readUnitsPerSecond);
    this.#reads.set(id, reads);
    try {
      reads.take(Math.ceil(this.#bytesOf(id) / readUnitBytes) * (consistent ? 1 : 0.5));
      return true;
    } catch {
      return false;
    }
  }

  #bytesOf(id: string): number {
    if (id.startsWith('snapshot#')) return this.#options.snapshotBytes;
    return id === 'learned' ? (this.#options.learnedBytes ?? 1_000) : 1_000;
  }
}

interface BatchGet {
  RequestItems: Record<string, { Keys: Attributes[]; ConsistentRead?: boolean }>;
}
